"""The figure of two ways to lower one objective: over the iterations, and over the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, drawn, figure_of, plain_log

MARKERS = "os^D"


@dataclass(frozen=True)
class Run:
    """One method: its nested objective (n + 1,) after each iteration, 0 the start, and the seconds by then."""

    name: str
    nested: NDArray[Any]
    seconds: NDArray[Any]


def progress(runs: Sequence[Run], lowest: float, title: str) -> Drawing:
    """Return a figure of the nested objective: left over the iterations, right over the seconds, all logarithmic.

    Iterations begin with 1, since 0 has no place on such an axis; over the seconds each line begins at the left with
    the start, and steps down when an iteration ends. Dashed: the last value, to the edge. lowest: the least value
    there is, a dotted line.
    """
    figure, (left, right) = figure_of(9.6, 4.2, columns=2)
    first, last = (f(float(run.seconds[place]) for run in runs) for f, place in ((min, 1), (max, -1)))
    most = max(len(run.nested) for run in runs) - 1
    for k, run in enumerate(runs):
        _line(left, np.arange(1, len(run.nested)), run.nested[1:], 1.15 * most, k)
        _line(right, np.r_[0.5 * first, run.seconds[1:]], run.nested, 1.3 * last, k, drawstyle="steps-post")
    for axes, label, edge in ((left, "iteration", 1.15 * most), (right, "seconds", 1.3 * last)):
        axes.axhline(lowest, color=INK, ls=":", lw=1.2)
        axes.set(xscale="log", yscale="log", xlabel=f"{label} (log scale)")
        axes.set_xlim(right=edge)
    right.set_xlim(left=0.5 * first)
    for axis in (left.xaxis, right.xaxis, left.yaxis):
        _ticks(axis)
    left.set_ylabel("nested objective (log scale)")
    _names(left, runs, lowest)
    figure.suptitle(title, fontsize=11, color=INK)
    return drawn(figure)


def _ticks(axis: Any) -> None:
    """Label with plain numbers; over more than three decades only their beginnings, which would else overlap."""
    from matplotlib.ticker import LogLocator

    plain_log(axis)
    low, high = axis.get_view_interval()
    if high > 1000 * low:
        axis.set_major_locator(LogLocator())


def _line(axes: Any, x: NDArray[Any], y: NDArray[Any], edge: float, k: int, **more: Any) -> None:
    style = {"color": OKABE_ITO[k], "zorder": 4 - k}
    axes.plot(x, y, marker=MARKERS[k], ms=3.5, lw=1.4, **style, **more)
    axes.plot([x[-1], edge], [y[-1]] * 2, ls="--", lw=1.2, **style)


def _names(axes: Any, runs: Sequence[Run], lowest: float) -> None:
    """Name each line in a legend of the same colours and marks."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=OKABE_ITO[k], marker=MARKERS[k], ms=4, label=run.name) for k, run in enumerate(runs)]
    lines.append(Line2D([], [], color=INK, ls=":", label=f"lowest possible, {lowest:.4g}"))
    axes.legend(handles=lines, frameon=False, fontsize=9)
