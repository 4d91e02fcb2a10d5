"""Spirals: the plane with the decision boundary, and the latent space, in small panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.report.plotting.base import INK, Drawing, colour, drawn, figure_of, to_rgb

LINE, PALE = 0.9, "#BBBBBB"  # width of a boundary, colour of frames


@dataclass(frozen=True)
class MapPanel:
    """One column of `by_map`: samples X (N, 2) of classes y (N,), decision values (P, P) over the square from -edge to
    edge, row by row from below, latent coordinates Z (N, 2), and the SVM (3,), two weights and the bias.
    """

    title: str
    X: NDArray[Any]
    y: NDArray[Any]
    values: NDArray[Any]
    Z: NDArray[Any]
    svm: NDArray[Any]
    edge: float


def by_map(panels: Sequence[MapPanel]) -> Drawing:
    """Return a figure with a column for each map: the plane with the boundary above, the latent space below."""
    figure, axes = figure_of(1.5 * max(2, len(panels)), 3.5, rows=2, columns=max(2, len(panels)), shared=False)
    for axis in np.ravel(axes):
        bare(axis)
    for column, panel in zip(axes.T, panels, strict=False):
        column[0].set_title(panel.title, fontsize=10)
        samples(column[0], panel.X, panel.y)
        boundary(column[0], panel.values, panel.edge)
        samples(column[1], panel.Z, panel.y)
        _svm(column[1], panel.Z, panel.svm)
    axes[0, 0].set_ylabel("input space", color=INK)
    axes[1, 0].set_ylabel("latent space", color=INK)
    return drawn(figure)


def samples(axes: Any, points: NDArray[Any], y: NDArray[Any], size: float = 2.0) -> None:
    """Scatter points (N, 2), in an order that hides no class behind another."""
    order = np.random.default_rng(0).permutation(len(y))
    n_classes = int(y.max()) + 1
    colours = np.array([to_rgb(colour(k, n_classes)) for k in range(n_classes)])
    axes.scatter(*points[order].T, s=size, c=colours[y[order]], linewidths=0, rasterized=True)


def boundary(axes: Any, values: NDArray[Any], edge: float) -> None:
    """Draw where decision values over the square from -edge to edge are 0, and nothing else."""
    if values.min() < 0 < values.max():
        side = np.linspace(-edge, edge, len(values))
        axes.contour(side, side, values, levels=[0.0], colors=[INK], linewidths=LINE)
    axes.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal")


def _svm(axes: Any, Z: NDArray[Any], svm: NDArray[Any]) -> None:
    """Draw where the SVM is 0 (line) and -1 and 1 (dashed), in a square around the latent coordinates."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    half = 0.6 * float((high - low).max()) or 1.0
    x, y = (np.linspace(middle - half, middle + half, 60) for middle in (low + high) / 2)
    values = svm[0] * x + svm[1] * y[:, None] + svm[2]
    for level, style, width in ((-1.0, "--", 0.7), (0.0, "-", LINE), (1.0, "--", 0.7)):
        if values.min() < level < values.max():
            axes.contour(x, y, values, levels=[level], colors=[INK], linewidths=width, linestyles=style)
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), aspect="equal")


def bare(axes: Any) -> None:
    """Leave a frame and nothing else around a panel."""
    axes.grid(visible=False)
    axes.set(xticks=[], yticks=[])
    axes.spines[["top", "right"]].set_visible(True)
    for spine in axes.spines.values():
        spine.set(color=PALE, lw=0.6)
