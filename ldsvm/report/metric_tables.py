"""The metrics that an experiment asks for beside the error: values with intervals, and why some are missing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from ldsvm.datasets.words import shown
from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.metrics import DEFAULT, Measured, metric
from ldsvm.report.tables import Rows


def names(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the metrics that were measured, cost first, but for the error, which has a table of its own."""
    found = dict.fromkeys(name for o in outcomes for score in o.scores for name in score.metrics)
    return sorted((name for name in found if name != DEFAULT), key=lambda name: name != "cost")


def standing_in(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return every judged method's value of a metric in one line, such as "ours 0.3958, NN –"."""
    return ", ".join(f"{o.method} {_cell(_of(o, name)).partition(' ')[0]}" for o in outcomes if o.judged)


def threshold(score: Score) -> str:
    """Return in words the threshold from which the second class is predicted; nothing without costs of mistakes."""
    return "" if score.threshold is None else f"{score.threshold_of} ≥ {score.threshold:.4g}"


def metric_rows(outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """Return the header and one row for each judged method; no rows where only the error was measured.

    A cell has the value with its 95 % interval, over several splits the mean with the standard deviation; arrows say
    whether less or more is better. Where mistakes cost differently, the last column is the first split's threshold.
    """
    wanted = names(outcomes)
    judged = [outcome for outcome in outcomes if outcome.judged]
    header = ["method", *(f"{name} {'↓' if metric(name).less else '↑'}" for name in wanted)]
    rows = [[o.method, *(_cell(_of(o, name)) for name in wanted)] for o in judged]
    if any(o.scores[0].threshold is not None for o in judged):
        header = [*header, f"threshold of {shown(judged[0].scores[0].classes[1])}"]
        rows = [[*row, threshold(o.scores[0]) or "–"] for row, o in zip(rows, judged, strict=True)]
    return header, rows if wanted else []


def reasons(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each metric that a method has no value of."""
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        for name in names(outcomes) if outcome.judged else ():
            why = next((one.reason for one in _of(outcome, name) if one.reason), None)
            if why is not None:
                found.setdefault(f"{outcome.method}: {why}", []).append(name)
    return [f"No {', '.join(those)} of {why}." for why, those in found.items()]


def _of(outcome: Outcome, name: str) -> list[Measured]:
    return [score.metrics[name] for score in outcome.scores if name in score.metrics]


def _cell(found: Sequence[Measured]) -> str:
    there = [one.value for one in found if one.value is not None]
    if not there or len(there) < len(found):
        return "–"
    if len(there) > 1:
        return f"{fmean(there):.4f} (std {stdev(there):.4f})"
    low, high = found[0].low, found[0].high
    return f"{there[0]:.4f}" + ("" if low is None or high is None else f" ({low:.4f} – {high:.4f})")
