"""The training set as each method reduces it to a plane or a line, in small panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.report.plotting.base import INK, Drawing, colour, drawn, figure_of, plain, to_rgb
from ldsvm.report.plotting.contest import plane, some

COLUMNS = 4
TRIM = 0.5  # per cent of the points at each end of an axis that may lie outside: single ones would shrink the rest


@dataclass(frozen=True)
class Panel:
    """Latent coordinates Z (N, L) with the labels (N,) that were learnt and those that give the colours."""

    title: str
    Z: NDArray[Any]
    learnt: NDArray[Any]
    y: NDArray[Any]


def projections(panels: Sequence[Panel], title: str) -> Drawing:
    """Return a figure with a panel for each method; see `plane` for what is drawn of one, three or more dimensions."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = figure_of(2.45 * columns, 0.6 + 2.5 * rows, rows=rows, columns=columns, shared=False)
    for axis, panel in zip(np.ravel(axes), panels, strict=False):
        _scatter(axis, panel)
    for axis in np.ravel(axes)[len(panels) :]:
        axis.set_visible(False)
    _legend(figure, panels)
    figure.suptitle(plain(title), fontsize=11, color=INK)
    return drawn(figure)


def _scatter(axes: Any, panel: Panel) -> None:
    points, x_label, y_label = plane(panel.Z, panel.learnt)
    classes, code = np.unique(panel.y, return_inverse=True)
    inks = np.array([to_rgb(colour(k, len(classes))) for k in range(len(classes))])
    drawn_points, drawn_code = some(points, code)
    order = np.random.default_rng(0).permutation(len(drawn_code))  # so that no class hides another
    axes.scatter(*drawn_points[order].T, s=7, c=inks[drawn_code[order]], alpha=0.7, linewidths=0)
    if not np.array_equal(panel.learnt, panel.y):
        for label in np.unique(panel.learnt):
            middle = np.median(points[panel.learnt == label], axis=0)
            axes.annotate(plain(label), middle, ha="center", va="center", fontsize=8, fontweight="bold")
    low, high = np.percentile(drawn_points, [TRIM, 100 - TRIM], axis=0)
    half = 0.56 * (high - low)
    if panel.Z.shape[1] > 1:
        half[:] = half.max()  # distances mean the same in both directions
    middle, half = (low + high) / 2, np.where(half > 0, half, 1.0)
    axes.set(xlim=(middle[0] - half[0], middle[0] + half[0]), ylim=(middle[1] - half[1], middle[1] + half[1]))
    axes.set_title(plain(panel.title), fontsize=9)
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(x_label, fontsize=8)
    axes.set_ylabel(y_label, fontsize=8)


def _legend(figure: Any, panels: Sequence[Panel]) -> None:
    from matplotlib.lines import Line2D

    classes = np.unique(panels[0].y)
    marks = [
        Line2D([], [], ls="", marker="o", color=colour(k, len(classes)), label=plain(label))
        for k, label in enumerate(classes)
    ]
    figure.legend(handles=marks, title="class", frameon=False, loc="outside lower center", ncols=min(10, len(marks)))
