"""Pictures of `tabular`: mean ranks with the critical difference, and error against the cost of a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Result
from benchmarks.tabular import TUNED, critical_difference, means, ranks
from ldsvm.report.plotting.base import GRID, OKABE_ITO, drawn, figure_of, plain_log

OTHERS, OURS = OKABE_ITO[:2]


def draw(result: Result, path: Path) -> None:
    """Write the picture as PNG."""
    figure, (left, right) = figure_of(12, 5, columns=2, shared=False)
    errors = means(result.settings["measured"], "error %")
    _ranks(left, ranks(errors), len(next(iter(errors.values()))))
    _costs(right, result.rows)
    path.write_bytes(drawn(figure).png)


def _colour(name: str) -> str:
    return OURS if name.startswith("ours") else OTHERS


def _ranks(axes: Any, rank: dict[str, float], tables: int) -> None:
    """One line for each method, best first; a bar of one critical difference that starts at the best."""
    names = sorted(rank, key=lambda name: rank[name])
    width = critical_difference(len(names), tables) if len(names) > 1 else 0.0
    best = rank[names[0]]
    axes.axvspan(best, best + width, color=GRID, zorder=0, label=f"critical difference {width:.1f}")
    for place, name in enumerate(names):
        axes.plot([1, rank[name]], [place, place], color=_colour(name), lw=1, alpha=0.5)
        axes.plot(rank[name], place, "o", color=_colour(name))
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel=f"mean rank of {len(names)} by error on {tables} tables, 1 is best", xlim=(1, None))
    axes.legend(loc="upper right", frameon=False)


def _costs(axes: Any, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        filled = row["method"].endswith(TUNED)
        colour = _colour(row["method"])
        axes.plot(row["us a row"], row["error %"], "o", color=colour, mfc=colour if filled else "white")
        axes.annotate(row["method"].removesuffix(TUNED), (row["us a row"], row["error %"]), xytext=(5, 3),
                      textcoords="offset points", fontsize=8, color=colour)  # fmt: skip
    values = np.array([row["error %"] for row in rows])
    axes.set(xscale="log", xlabel="microseconds a row, median of the tables", ylabel="mean test error, %")
    plain_log(axes.xaxis)
    axes.set(title="filled: after a search; empty: defaults", ylim=(values.min() - 0.5, values.max() + 0.5))
