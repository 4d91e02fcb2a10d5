"""Errors of several methods over something that is varied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, drawn, figure_of, plain, plain_log

MARKERS = "osD^v<>PX*"
WIDTH = 0.011  # of a letter of a tick's label, as a share of the axis


@dataclass(frozen=True)
class Line:
    """One method: its place among all methods, which gives its colour everywhere, and an error with bounds per value.

    family: number of its estimator in the registry, 0 for ours. None where it has no result.
    """

    name: str
    family: int
    error: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]


def curves(
    values: Sequence[Any], lines: Sequence[Line], title: str, label: str, *, log: bool, several: bool
) -> Drawing:
    """Return a figure of test errors in per cent over values, each line named at its end; ours are the thick ones.

    Values that are no numbers are spread evenly. several: whether the bands are a standard deviation over splits.
    """
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    x = np.asarray(values if numbers else range(len(values)), dtype=float)
    figure, axes = figure_of(8.4, 5.2)
    counts = accumulate((line.family == 0 for line in lines), initial=0)  # ours so far, which differ by their dashes
    ends = [_draw(axes, x, line, k) for k, line in zip(counts, lines, strict=False)]
    axes.set(
        title=plain(title),
        xlabel=plain(label),
        ylabel="test error (%)" + (", ± one std over splits" if several else ""),
    )
    if numbers and log:
        axes.set_xscale("log")
    axes.set_xticks(x, _apart(np.log(x) if numbers and log else x, [f"{v:,}" if numbers else plain(v) for v in values]))
    axes.minorticks_off()
    shown = [e for line in lines for e in line.error if e is not None and e > 0]
    if shown and max(shown) > 5 * min(shown):
        axes.set_yscale("log")
        plain_log(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
    _name_ends(axes, x[-1], [end for end in ends if end is not None])
    return drawn(figure)


def _apart(places: Any, labels: list[str]) -> list[str]:
    """Return the labels, without those that would run into the next one to the right."""
    span, right, shown = float(np.ptp(places)) or 1.0, np.inf, []
    for place, label in zip(reversed(places), reversed(labels), strict=True):
        fits = right - place > span * WIDTH * (len(label) + 1)
        right = place if fits else right
        shown.append(label if fits else "")
    return shown[::-1]


def _style(family: int, k: int) -> dict[str, Any]:
    if family == 0:
        return {"color": OKABE_ITO[0], "lw": 2.6, "ls": ("-", "--", ":")[k % 3], "zorder": 3}
    colours = OKABE_ITO[1:7]
    return {"color": colours[family % 6], "lw": 1.3, "ls": ("-", "--", "-.", ":")[family // 6 % 4]}


def _draw(axes: Any, x: Any, line: Line, k: int) -> tuple[float, str, Any] | None:
    there = [i for i, error in enumerate(line.error) if error is not None]
    if not there:
        return None
    error, low, high = ([float(part[i] or 0.0) for i in there] for part in (line.error, line.low, line.high))
    style = _style(line.family, k)
    axes.plot(x[there], error, marker=MARKERS[line.family % len(MARKERS)], ms=4.5, **style)
    axes.fill_between(x[there], low, high, color=style["color"], alpha=0.12, lw=0)
    return error[-1], line.name, style["color"]


def _name_ends(axes: Any, right: float, ends: list[tuple[float, str, Any]]) -> None:
    """Write each name beside the end of its line, moved apart where they would cover each other."""
    transform = axes.transData
    heights = [transform.transform((right, error))[1] for error, _, _ in ends]
    placed: list[float] = []
    gap = 10.5 * axes.figure.dpi / 72  # a line of the text below
    for k in np.argsort(heights):
        placed.append(max(heights[k], placed[-1] + gap if placed else -np.inf))
        error, name, colour = ends[k]
        axes.annotate(
            plain(name), (right, error), xytext=(12, (placed[-1] - heights[k]) * 72 / axes.figure.dpi),
            textcoords="offset points", va="center", fontsize=8.5, color=colour if colour != "#F0E442" else INK,
            annotation_clip=False,
        )  # fmt: skip
