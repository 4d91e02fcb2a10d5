"""Error against two costs, basis functions and time, a line for each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, drawn, figure_of, plain, plain_log

MARKS = ("o", "s", "^", "D", "v")


@dataclass(frozen=True)
class Line:
    """One method: basis functions, microseconds per prediction and error in per cent, of each size."""

    name: str
    n_basis: Sequence[float]
    predict_us: Sequence[float]
    error: Sequence[float]


def dial(lines: Sequence[Line], title: str) -> Drawing:
    """Return a figure of two panels that share the error; the methods are named beside their points on the left."""
    figure, panels = figure_of(9.6, 4.2, columns=2)
    for k, line in enumerate(lines):
        style = {"color": OKABE_ITO[k % len(OKABE_ITO)], "marker": MARKS[k % len(MARKS)], "ms": 5, "lw": 1.6}
        for axes, costs in zip(panels, (line.n_basis, line.predict_us), strict=True):
            axes.plot(costs, line.error, label=plain(line.name), **style)
    for axes, label in zip(panels, ("basis functions", "prediction (µs per sample, one thread)"), strict=True):
        axes.set(xscale="log", yscale="log", xlabel=label)
        plain_log(axes.xaxis)
        plain_log(axes.yaxis)
    panels[0].set_ylabel("test error (%)")
    panels[1].legend(frameon=False, fontsize=9)
    figure.suptitle(plain(title), fontsize=11, color=INK)
    return drawn(figure)
