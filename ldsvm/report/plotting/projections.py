"""The training set as each method reduces it to a plane or a line, in small panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.report.plotting.base import INK, Drawing, colour, drawn, figure_of, plain
from ldsvm.report.plotting.contest import plane, some

COLUMNS = 4
TRIM = 0.5  # per cent of the points at each end of an axis that may lie outside: single ones would shrink the rest


@dataclass(frozen=True)
class Panel:
    """Latent coordinates Z (N, L) of rows with labels y (N,), and what stands above them."""

    title: str
    Z: NDArray[Any]
    y: NDArray[Any]


def projections(panels: Sequence[Panel], title: str) -> Drawing:
    """Return a figure with a panel for each method; see `plane` for what is drawn of one, three or more dimensions."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = figure_of(2.45 * columns, 0.6 + 2.5 * rows, rows=rows, columns=columns, shared=False)
    for axis, panel in zip(np.ravel(axes), panels, strict=False):
        points, y = _scatter(axis, panel)
        if not np.array_equal(np.unique(panel.y), np.unique(panels[0].y)):
            _name_classes(axis, points, y)
    for axis in np.ravel(axes)[len(panels) :]:
        axis.set_visible(False)
    _legend(figure, panels)
    figure.suptitle(plain(title), fontsize=11, color=INK)
    return drawn(figure)


def _scatter(axes: Any, panel: Panel) -> tuple[NDArray[Any], NDArray[Any]]:
    points, x_label, y_label = plane(panel.Z, panel.y)
    points, y = some(points, panel.y)
    classes = np.unique(panel.y)
    order = np.random.default_rng(0).permutation(len(y))  # so that no class hides another
    inks = np.array([colour(k, len(classes)) for k in range(len(classes))], dtype=object)
    axes.scatter(*points[order].T, s=7, c=list(inks[np.searchsorted(classes, y[order])]), alpha=0.7, linewidths=0)
    low, high = np.percentile(points, [TRIM, 100 - TRIM], axis=0)
    half = 0.56 * (high - low)
    if panel.Z.shape[1] > 1:
        half[:] = half.max()  # distances mean the same in both directions
    middle, half = (low + high) / 2, np.where(half > 0, half, 1.0)
    axes.set(xlim=(middle[0] - half[0], middle[0] + half[0]), ylim=(middle[1] - half[1], middle[1] + half[1]))
    axes.set_title(plain(panel.title), fontsize=9)
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(x_label, fontsize=8)
    axes.set_ylabel(y_label, fontsize=8)
    return points, y


def _name_classes(axes: Any, points: NDArray[Any], y: NDArray[Any]) -> None:
    for label in np.unique(y):
        middle = np.median(points[y == label], axis=0)
        axes.annotate(plain(label), middle, ha="center", va="center", fontsize=8, fontweight="bold")


def _legend(figure: Any, panels: Sequence[Panel]) -> None:
    """Name the colours of the first panel; those with other classes, learnt from finer labels, have names inside."""
    from matplotlib.lines import Line2D

    classes = np.unique(panels[0].y)
    marks = [
        Line2D([], [], ls="", marker="o", color=colour(k, len(classes)), label=plain(label))
        for k, label in enumerate(classes)
    ]
    figure.legend(handles=marks, title="class", frameon=False, loc="outside lower center", ncols=min(10, len(marks)))
