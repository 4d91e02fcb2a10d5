"""K spirals: a grid of latent spaces, and curves of error and collapse over the latent dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, colour, drawn, figure_of
from ldsvm.report.plotting.spirals import bare, boundary, samples

MARKERS = "os^Dv<>P"
Fact = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One row of `latent_spaces`: K spirals X (n, 2) of classes y (n,), scores (P, P, K) over the square from -edge to
    edge, and by L the latent samples, (n, 2) or (n, 1), with the training error.
    """

    K: int
    X: NDArray[Any]
    y: NDArray[Any]
    scores: NDArray[Any]
    cells: Mapping[int, tuple[NDArray[Any], float]]
    edge: float


def latent_spaces(rows: Sequence[Row]) -> Drawing:
    """Return a figure with a row for each K: the spirals with their boundary, then the latent space for each L."""
    dimensions = list(rows[0].cells)
    figure, axes = figure_of(
        1.15 * (len(dimensions) + 1), 1.25 * len(rows) + 0.3, len(rows), len(dimensions) + 1, shared=False
    )
    axes = np.reshape(axes, (len(rows), -1))
    for line, row in zip(axes, rows, strict=True):
        for panel in line:
            bare(panel)
        line[0].set_ylabel(f"K = {row.K}", color=INK)
        samples(line[0], row.X, row.y)
        for k in range(row.K):
            others = np.delete(row.scores, k, axis=2).max(axis=2)
            boundary(line[0], row.scores[:, :, k] - others, row.edge)
        for panel, (L, (Z, error)) in zip(line[1:], row.cells.items(), strict=True):
            _latent(panel, Z, row.y)
            panel.set_xlabel(f"{100 * error:.1f} %", fontsize=8, color=INK, labelpad=2)
            if L == row.K - 1:
                for spine in panel.spines.values():
                    spine.set(color=INK, lw=2.0)
    for panel, text in zip(axes[0], ["data", *(f"L = {L}" for L in dimensions)], strict=True):
        panel.set_title(text, fontsize=9)
    return drawn(figure)


def _latent(axes: Any, Z: NDArray[Any], y: NDArray[Any]) -> None:
    if Z.shape[1] == 1:
        samples(axes, np.column_stack([Z[:, 0], y]), y, size=4.0)
        axes.set_ylim(-1.0, y.max() + 1.0)
        return
    samples(axes, Z, y, size=4.0)
    middle, half = (Z.max(axis=0) + Z.min(axis=0)) / 2, 0.6 * float(np.ptp(Z, axis=0).max()) or 1.0
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half), aspect="equal")


def collapse(fits: Sequence[Fact], least: Callable[[int, int], float]) -> Drawing:
    """Return a figure of training error, NC1 and NC2 over L: a row of panels for each start, a line for each K.

    fits: start, K, L, train_error, nc1, nc2. least: the smallest NC2 for K and L.
    """
    starts = list(dict.fromkeys(fact["start"] for fact in fits))
    figure, axes = figure_of(9.6, 2.7 * len(starts) + 0.4, len(starts), 3, shared=False)
    axes = np.reshape(axes, (len(starts), 3))
    for start, (error, nc1, nc2) in zip(starts, axes, strict=True):
        mine = [fact for fact in fits if fact["start"] == start]
        for i, K in enumerate(sorted({fact["K"] for fact in mine})):
            line = sorted((fact for fact in mine if fact["K"] == K), key=lambda fact: fact["L"])
            _curve(error, line, lambda fact: 100 * fact["train_error"], i)
            _curve(nc1, line, lambda fact: fact["nc1"], i)
            _curve(nc2, line, lambda fact: fact["nc2"], i)
            few = [fact["L"] for fact in line if fact["L"] <= K - 1]
            nc2.plot(few, [least(K, L) for L in few], ":", color=OKABE_ITO[i], lw=1.2)
        error.set(ylabel=f"start: {start}", title="training error (%)")
        nc1.set(title="NC1: spread within classes", yscale="log")
        nc2.set(title="NC2: distance from a simplex")
        error.set_ylim(bottom=-1)
        nc2.set_ylim(bottom=-0.03)
    for panel in axes.ravel():
        panel.xaxis.get_major_locator().set_params(integer=True)
    for panel in axes[-1]:
        panel.set_xlabel("latent dimensions L")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return drawn(figure)


def _curve(axes: Any, line: Sequence[Fact], value: Callable[[Fact], float], i: int) -> None:
    K, ink = line[0]["K"], colour(i, 8)
    axes.plot([fact["L"] for fact in line], [value(fact) for fact in line], MARKERS[i] + "-", color=ink, ms=3.5, lw=1.2,
              label=f"K = {K}")  # fmt: skip
    ideal = [fact for fact in line if fact["L"] == K - 1]
    axes.plot([fact["L"] for fact in ideal], [value(fact) for fact in ideal], "o", mfc="none", mec=ink, ms=9)
