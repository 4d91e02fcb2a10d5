"""How runs from different starts go on: objective and error over the iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldsvm.report.plotting.base import OKABE_ITO, Drawing, drawn, figure_of, plain_log


@dataclass(frozen=True)
class Curve:
    """One run: nested objective and validation error (a fraction) by iteration; kept, stop: iterations to mark."""

    start: str
    nested: Sequence[float]
    valid_error: Sequence[float]
    kept: int
    stop: int


def curves(runs: Sequence[Curve], title: str) -> Drawing:
    """Return a figure of two panels, nested objective and validation error, a line for each run.

    Runs of one start have one colour and one kind of line. A dot marks the iteration kept, a ring where the paper's
    rule stops.
    """
    figure, panels = figure_of(9.6, 4.0, columns=2, shared=False)
    starts = list(dict.fromkeys(run.start for run in runs))
    for axes, key, scale, label in zip(
        panels, ("nested", "valid_error"), (1, 100), ("nested objective", "validation error (%)"), strict=True
    ):
        for run in runs:
            k = starts.index(run.start)
            values = [scale * value for value in getattr(run, key)]
            style = {"color": OKABE_ITO[k], "ls": ("-", "--", ":")[k % 3]}
            axes.plot(range(len(values)), values, lw=1.3, alpha=0.85, **style)
            axes.plot(run.kept, values[run.kept], "o", color=OKABE_ITO[k], ms=6)
            axes.plot(run.stop, values[run.stop], "o", color=OKABE_ITO[k], mfc="none", ms=10, mew=1.2)
        lowest = min(min(getattr(run, key)) for run in runs)
        if lowest > 0:
            axes.set_yscale("log")
            plain_log(axes.yaxis)
            label += ", log scale"
        axes.set(xlabel="MAC iteration", ylabel=label)
        axes.xaxis.get_major_locator().set_params(integer=True)
    handles = [
        panels[0].plot([], [], color=OKABE_ITO[k], ls=("-", "--", ":")[k % 3], lw=1.6, label=start)[0]
        for k, start in enumerate(starts)
    ]
    panels[1].legend(handles=handles, title="start", frameon=False)
    figure.suptitle(title, fontsize=11)
    return drawn(figure)
