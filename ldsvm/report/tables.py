"""Results as rows of text, and rows as Markdown, CSV and a table in the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.search.trial import Trial
from ldsvm.metrics import DEFAULT, metric
from ldsvm.report.marks import escape

BEFORE, AFTER = ("method", "error %"), ("basis functions", "train s", "predict µs/sample", "search s")
MORE = (
    "basis functions, summed over SVMs", "train s, one thread", "predict µs, all threads", "validation error %",
    "parameters kB", "train MiB", "chosen",
)  # fmt: skip
MAJORITY = "always largest class"  # no method: the error of always predicting that class
Rows = list[list[str]]


def main(outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """Return the header and one row for each method, all measured on the test set."""
    header, rows = detail(outcomes)
    return header[: -len(MORE)], [row[: -len(MORE)] for row in rows]


def more(outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """Return the header and one row for each judged method: what `main` leaves out, but for the chosen parameters."""
    judged = [outcome for outcome in outcomes if outcome.judged]
    header, rows = detail(judged)
    start = len(header) - len(MORE)
    return [header[0], *header[start:-1]], [[row[0], *row[start:-1]] for row in rows[: len(judged)]]


def detail(outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """Return the header and one row for each method; a failed one has its reason in the last column.

    The third column is the interval of a single split's error, or the standard deviation over several splits. The last
    row is the error of always answering the largest class.
    """
    splits = max((len(o.results) for o in outcomes), default=1)
    spread = "95 % interval" if splits == 1 else f"std of {splits} splits"
    return [*BEFORE, spread, *AFTER, *MORE], [*map(_row, outcomes), *_majority(outcomes)]


def _majority(outcomes: Sequence[Outcome]) -> Rows:
    """Return the row of the largest class; none where no method was judged on the test set."""
    judged = [outcome for outcome in outcomes if outcome.judged][:1]
    return [[MAJORITY, f"{100 * o.majority_error:.2f}", *["–"] * (1 + len(AFTER) + len(MORE))] for o in judged]


def _row(outcome: Outcome) -> list[str]:
    if not outcome.judged:
        return [outcome.method, outcome.verdict, *["–"] * (len(AFTER) + len(MORE)), outcome.failure or ""]
    return [
        outcome.method,
        f"{100 * outcome.error:.2f}",
        _spread(outcome),
        _count(outcome.n_basis),
        seconds(outcome.train_s),
        _short(outcome.predict_us),
        seconds(outcome.search_s),
        _count(outcome.n_basis_sum),
        "–" if outcome.train_alone_s is None else seconds(outcome.train_alone_s),
        _short(outcome.predict_all_us),
        f"{100 * outcome.valid_error:.2f}",
        f"{outcome.parameter_bytes / 1000:.1f}" if outcome.parameter_bytes else "–",
        "–" if outcome.peak_mib is None else _short(outcome.peak_mib),
        point(outcome.params),
    ]


def _count(number: float | None) -> str:
    return "–" if number is None else f"{number:,.0f}"


def _short(number: float) -> str:
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def seconds(number: float) -> str:
    """Return seconds with two digits, and without a power of ten."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _spread(outcome: Outcome) -> str:
    if outcome.spread is not None:
        return f"{100 * outcome.spread:.2f}"
    low, high = outcome.bounds
    return f"{100 * low:.2f} – {100 * high:.2f}"


def published(config: Config, outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """Return the header and one row for each published figure, with ours and the difference where we ran the method."""
    measured = {o.method: o for o in outcomes if o.judged}
    steps = any(figure.iterations for figure in config.published)
    header = ["method", "published error %", "here", "difference", "published basis functions", "here"]
    header += ["published iterations", "here"] if steps else []
    rows = []
    for figure in config.published:
        here = measured.get(figure.method)
        error = f"{figure.error:.2f}" + (f" ({figure.std:.2f})" if figure.std is not None else "")
        ours = ["–", "–"] if here is None else [f"{100 * here.error:.2f}", f"{100 * here.error - figure.error:+.2f}"]
        size = _count(here.n_basis_sum) if here is not None else "–"
        taken = [_count(figure.iterations), "–" if here is None else _count(here.iterations)] if steps else []
        rows.append([figure.method, error, *ours, _count(figure.n_basis), size, *taken])
    return header, rows


def trial_rows(result: Result, objective: str = DEFAULT) -> tuple[list[str], Rows]:
    """Return the header and one row for each trial: its parameters, its resource if that was limited, its outcome.

    objective: the metric that chose among them, with a column of its own where it is not the error.
    """
    names = list(result.trials[0].params)
    limited = ["resource"] if any(trial.resource is not None for trial in result.trials) else []
    by = [] if objective == DEFAULT else [metric(objective)]
    chosen_by = [f"chosen by {one.name} {'↓' if one.less else '↑'}" for one in by]
    header = [*names, *limited, *chosen_by, "validation error %", "basis functions", "train s", "remark"]
    rows = []
    for trial in result.trials:
        resource = ["all" if trial.resource is None else f"{trial.resource:,}"] * len(limited)
        error = "–" if trial.valid_error is None else f"{100 * trial.valid_error:.2f}"
        reached = ["–" if trial.loss is None else f"{one.loss(trial.loss):.4f}" for one in by]  # the sign back
        size = "–" if trial.n_basis is None else f"{trial.n_basis:,}"
        stop = [trial.stop_reason] if trial.stop_reason else []
        notes = "; ".join([*stop, *(n for n in trial.notes if _is_informative(n, trial))])
        remark = trial.failure.sentence if trial.failure else notes
        found = [*resource, *reached, error, size, seconds(trial.train_s), remark]
        rows.append([*(value(trial.params[n]) for n in names), *found])
    return header, rows


def _is_informative(remark: str, trial: Trial) -> bool:
    """Whether a note is worth showing: of a fit with a part of the resource, convergence warnings are not."""
    return trial.resource is None or not remark.startswith("ConvergenceWarning")


def class_rows(outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """Return the header and one row for each method: test error in each class over all splits, in per cent."""
    judged = [(o.method, *o.confusion) for o in outcomes if o.judged]
    header = ["error % in class", *(str(c) for c in (judged[0][1] if judged else []))]
    rows = []
    for name, _, counts in judged:
        totals = [sum(row) for row in counts]
        errors = [(n - row[i]) / max(n, 1) for i, (n, row) in enumerate(zip(totals, counts, strict=True))]
        rows.append([name, *(f"{100 * error:.1f}" for error in errors)])
    return header, rows


def confusion_rows(outcome: Outcome) -> tuple[list[str], Rows]:
    """Return the header and one row for each true class: how often each class was predicted, on all splits together."""
    classes, counts = outcome.confusion
    names = [str(c) for c in classes]
    rows = [[name, *(str(n) for n in row)] for name, row in zip(names, counts, strict=True)]
    return ["true \\ predicted", *names], rows


def point(params: dict[str, Any]) -> str:
    """Return parameters as "C=10, gamma=0.1"."""
    return ", ".join(f"{k}={value(v)}" for k, v in params.items()) or "no parameters"


def value(item: Any) -> str:
    """Return one parameter's value, floats without needless digits."""
    return f"{item:g}" if isinstance(item, float) else str(item)


def markdown(header: Sequence[str], rows: Rows) -> str:
    """Return a Markdown table that shows just the texts of its cells."""
    cells = [[*map(escape, line)] for line in (header, *rows)]
    lines = [cells[0], ["---"] + ["---:"] * (len(header) - 1), *cells[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def to_csv(header: Sequence[str], rows: Rows) -> str:
    """Return the table as comma-separated values with a header line."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def terminal(title: str, header: Sequence[str], rows: Rows) -> Any:
    """Return a table that a rich console prints."""
    from rich import box
    from rich.markup import escape as plain
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    return table
