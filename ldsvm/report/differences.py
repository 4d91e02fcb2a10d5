"""What distinguishes the methods where an experiment has several splits: each split, and tests between the methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldsvm.experiment.compare.difference import Difference, corrected_t
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.config.schema import Config
from ldsvm.methods import lookup
from ldsvm.metrics import DEFAULT, metric
from ldsvm.report import metric_tables, tables

TEST = (
    "A difference is the mean over {J} splits, positive if the method's value is larger than that of {base}. Since the "
    "training sets of the splits overlap, intervals and p are those of the corrected resampled t-test (Nadeau and "
    "Bengio 2003), in which the variance of the mean is (1/{J} + {ratio:.3g}) times that of the differences, not 1/{J} "
    "times{all}."
)


@dataclass(frozen=True)
class Tested:
    """How one method differs from the one that all are compared with, by one metric."""

    method: str
    metric: str
    difference: Difference


def base_of(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the method that the others are compared with: the first of ours, else the first; not the best.

    It is known before any result is: the best of several looks better than it is.
    """
    judged = [one for one in outcomes if one.judged]
    return next((one for one in judged if lookup(one.first.estimator).iterative), judged[0] if judged else None)


def tested(config: Config, outcomes: Sequence[Outcome]) -> list[Tested]:
    """Return the tests of all methods by all metrics; none for a single split, and where splits share their test rows.

    Differences in the error are in per cent, less is better.
    """
    base = base_of(outcomes)
    others = [one for one in outcomes if one.judged and one is not base]
    if base is None or len(base.results) < 2 or not others or (ratio := config.split.test_ratio) is None:
        return []
    found = []
    for name in [DEFAULT, *metric_tables.names(outcomes)]:
        own = values(base, name)
        each = {one.method: those for one in others if own and (those := values(one, name))}
        for method, those in each.items():
            apart = [theirs - ours for theirs, ours in zip(those, own, strict=True)]
            found.append(Tested(method, name, corrected_t(apart, ratio, len(each))))
    return found


def values(outcome: Outcome, name: str) -> list[float]:
    """Return a metric of each split, the error in per cent; empty where a split has none."""
    if name == DEFAULT:
        return [100 * score.error for score in outcome.scores]
    found = [score.metrics[name].value for score in outcome.scores if name in score.metrics]
    there = [value for value in found if value is not None]
    return there if len(there) == len(outcome.results) else []


def difference_rows(config: Config, outcomes: Sequence[Outcome]) -> tuple[list[str], tables.Rows]:
    """Return the header and one row for each test; no rows where there is none."""
    base = base_of(outcomes)
    header = ["method", "metric", f"difference to {base.method if base else ''}", "95 % interval", "p", "verdict"]
    return header, [_row(one) for one in tested(config, outcomes)]


def _row(one: Tested) -> list[str]:
    less, digits = metric(one.metric).less, 2 if one.metric == DEFAULT else 4
    found = one.difference
    word = "better" if (found.mean < 0) == less else "worse"
    ends = f"{found.low:+.{digits}f} – {found.high:+.{digits}f}"
    p = "< 0.001" if found.p < 0.001 else f"{found.p:.3f}"
    name = "error %" if one.metric == DEFAULT else one.metric
    name = f"{name} {'↓' if less else '↑'}"
    return [one.method, name, f"{found.mean:+.{digits}f}", ends, p, word if found.is_shown else "no clear difference"]


def sentence(config: Config, outcomes: Sequence[Outcome]) -> str:
    """Return how the tests were made."""
    base, ratio = base_of(outcomes), config.split.test_ratio
    assert base is not None and ratio is not None
    several = sum(one.judged for one in outcomes) > 2
    every = "; both hold for all methods of a metric together (Bonferroni)" if several else ""
    return TEST.format(J=len(base.results), base=base.method, ratio=ratio, all=every)


def split_rows(outcomes: Sequence[Outcome]) -> tuple[list[str], tables.Rows]:
    """Return the header and one row for each split of each judged method."""
    names = metric_tables.names(outcomes)
    header = ["method", "split", "error %", *names, "basis functions", "train s", "chosen"]
    rows = [_split_row(one, names, i) for one in outcomes if one.judged for i in range(len(one.results))]
    return header, rows


def _split_row(outcome: Outcome, names: Sequence[str], i: int) -> list[str]:
    result, score = outcome.results[i], outcome.scores[i]
    measured = [values(outcome, name) for name in names]
    cells = [f"{those[i]:.4f}" if those else "–" for those in measured]
    size = "–" if score.n_basis is None else f"{score.n_basis:,}"
    chosen = [tables.seconds(result.train_s or 0.0), tables.point(result.params)]
    return [outcome.method, str(result.split), f"{100 * score.error:.2f}", *cells, size, *chosen]
