"""Speed-ups against threads and processes, beside the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ldsvm.report.plotting.base import GRID, INK, OKABE_ITO, Drawing, drawn, figure_of

MARKERS = "os^Dv"


@dataclass(frozen=True)
class Line:
    """The speed-ups of one thing: for each number of threads or processes those of all repeats."""

    name: str
    points: Sequence[tuple[int, Sequence[float]]]


def speedups(parts: Sequence[Line], searches: Sequence[Line], processors: int) -> Drawing:
    """Return a figure of two panels: parts of a fit against threads, searches against processes.

    Points are medians and bars reach from the smallest to the largest repeat. What lies beyond the processors of the
    machine is grey.
    """
    figure, panels = figure_of(9.6, 4.2, columns=2, shared=False)
    labels = (("one fit", "threads"), ("one search", "trials at a time"))
    for axes, lines, (title, label) in zip(panels, (parts, searches), labels, strict=True):
        _panel(axes, lines, processors)
        axes.set(title=title, xlabel=label)
    panels[0].set_ylabel("speed-up (times)")
    return drawn(figure)


def _panel(axes: Any, lines: Sequence[Line], processors: int) -> None:
    numbers = sorted({n for line in lines for n, _ in line.points})
    most = numbers[-1]
    room = max(0.15, 0.04 * most)
    axes.set_xlim(1 - room, most + room)
    high = max([most, *(max(values) for line in lines for _, values in line.points)])
    axes.set_ylim(0, 1.05 * high)
    axes.plot([1, most], [1, most], color=INK, ls="--", lw=1.2)
    if most > processors:
        axes.axvspan(processors, most + room, color=GRID, lw=0)
    axes.set_xticks(numbers)
    wide = max(len(lines) - 1, 1)
    for k, line in enumerate(lines):
        # Bars of several lines at one place would hide each other.
        places = [n + 0.3 * room * (2 * k / wide - 1) * (n > 1) for n, _ in line.points]
        middle = [median(values) for _, values in line.points]
        low = [m - min(values) for m, (_, values) in zip(middle, line.points, strict=True)]
        up = [max(values) - m for m, (_, values) in zip(middle, line.points, strict=True)]
        style = {"color": OKABE_ITO[k], "marker": MARKERS[k % len(MARKERS)], "ms": 5, "lw": 1.4, "capsize": 2}
        axes.errorbar(places, middle, yerr=[low, up], **style)
    ends = [("ideal", float(most), INK)]
    ends += [(line.name, median(line.points[-1][1]), OKABE_ITO[k]) for k, line in enumerate(lines)]
    _name_ends(axes, most + room, ends, 0.058 * 1.05 * high)


def _name_ends(axes: Any, x: float, ends: Sequence[tuple[str, float, str]], gap: float) -> None:
    """Write names beside the ends of their lines, as near as they may be without touching."""
    ordered = sorted(ends, key=lambda end: end[1])
    places = spread([value for _, value, _ in ordered], gap)
    for (name, value, ink), place in zip(ordered, places, strict=True):
        text = name if name == "ideal" else f"{name} {value:.2f}"
        axes.annotate(text, (x, place), xytext=(4, 0), textcoords="offset points", va="center", color=ink, fontsize=9)


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Return ascending values from 0 up moved apart to at least a gap, each group around where it was.

    Examples
    --------
    >>> spread([1.0, 1.0, 5.0], gap=1.0)
    [0.5, 1.5, 5.0]
    """
    groups: list[list[float]] = []
    for value in values:
        groups.append([value])
        while len(groups) > 1 and _least(groups[-2], gap) + gap * len(groups[-2]) > _least(groups[-1], gap):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_least(group, gap) + gap * i for group in groups for i in range(len(group))]


def _least(group: Sequence[float], gap: float) -> float:
    return max(0.0, sum(group) / len(group) - gap * (len(group) - 1) / 2)
