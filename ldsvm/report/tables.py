"""Results as rows of text, and rows as Markdown, CSV and a table in the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from ldsvm.experiment.results import Result

MAIN = ("method", "error %", "95 % interval", "basis functions", "train s", "predict µs/sample")
DETAIL = (*MAIN, "validation error %", "parameters kB", "chosen")
Rows = list[list[str]]


def main_rows(results: Sequence[Result]) -> Rows:
    """Return one row of MAIN for each method, all measured on the test set."""
    return [row[: len(MAIN)] for row in detail_rows(results)]


def detail_rows(results: Sequence[Result]) -> Rows:
    """Return one row of DETAIL for each method; a failed one has its reason in the last column."""
    return [_row(result) for result in results]


def _row(result: Result) -> list[str]:
    score = result.score
    if score is None:
        return [result.method, "failed", *["–"] * (len(DETAIL) - 3), result.failure or ""]
    return [
        result.method,
        f"{100 * score.error:.2f}",
        f"{100 * score.error_low:.2f} – {100 * score.error_high:.2f}",
        "–" if score.n_basis is None else f"{score.n_basis:,}",
        f"{result.train_s:.2g}",
        f"{score.predict_us:.1f}" if score.predict_us < 100 else f"{score.predict_us:.0f}",
        "–" if result.valid_error is None else f"{100 * result.valid_error:.2f}",
        f"{score.parameter_bytes / 1000:.1f}",
        point(result.params),
    ]


def trial_rows(result: Result) -> tuple[list[str], Rows]:
    """Return the header and one row for each point of the grid: its parameters, then what came of it."""
    names = list(result.trials[0].params)
    header = [*names, "validation error %", "basis functions", "train s", "remark"]
    rows = []
    for trial in result.trials:
        error = "–" if trial.valid_error is None else f"{100 * trial.valid_error:.2f}"
        size = "–" if trial.n_basis is None else f"{trial.n_basis:,}"
        remark = trial.failure or "; ".join([*([trial.stop_reason] if trial.stop_reason else []), *trial.notes])
        rows.append([*(value(trial.params[n]) for n in names), error, size, f"{trial.train_s:.2g}", remark])
    return header, rows


def class_rows(results: Sequence[Result]) -> tuple[list[str], Rows]:
    """Return the header and one row for each method: test error in each class, in per cent."""
    judged = [(r.method, r.score) for r in results if r.score is not None]
    header = ["error % in class", *(str(c) for c in (judged[0][1].classes if judged else []))]
    return header, [[name, *(f"{100 * e:.1f}" for e in score.class_errors)] for name, score in judged]


def confusion_rows(result: Result) -> tuple[list[str], Rows]:
    """Return the header and one row for each true class: how often each class was predicted."""
    assert result.score is not None
    names = [str(c) for c in result.score.classes]
    rows = [[name, *(str(n) for n in row)] for name, row in zip(names, result.score.confusion, strict=True)]
    return ["true \\ predicted", *names], rows


def point(params: dict[str, Any]) -> str:
    """Return parameters as "C=10, gamma=0.1"."""
    return ", ".join(f"{k}={value(v)}" for k, v in params.items()) or "no parameters"


def value(item: Any) -> str:
    """Return one parameter's value, floats without needless digits."""
    return f"{item:g}" if isinstance(item, float) else str(item)


def markdown(header: Sequence[str], rows: Rows) -> str:
    """Return a Markdown table; bars inside cells are escaped."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def to_csv(header: Sequence[str], rows: Rows) -> str:
    """Return the table as comma-separated values with a header line."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def terminal(title: str, header: Sequence[str], rows: Rows) -> Any:
    """Return a table that a rich console prints."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    return table
