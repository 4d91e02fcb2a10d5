"""K spirals: a grid of latent spaces, training errors, and collapse over the latent dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, drawn, figure_of
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


def errors(fits: Sequence[Fact]) -> Drawing:
    """Return a figure of training errors in per cent: K downwards, L to the right, a panel for each start.

    fits: start, K, L, train_error. L = K - 1 is framed.
    """
    starts = list(dict.fromkeys(fact["start"] for fact in fits))
    classes, dimensions = (sorted({fact[key] for fact in fits}) for key in ("K", "L"))
    figure, axes = figure_of(4.8 * len(starts), 0.33 * len(classes) + 1.1, 1, len(starts), shared=False)
    for panel, start in zip(np.atleast_1d(axes), starts, strict=True):
        cells = {(fact["K"], fact["L"]): 100 * fact["train_error"] for fact in fits if fact["start"] == start}
        values = np.array([[cells[K, L] for L in dimensions] for K in classes])
        panel.imshow(np.sqrt(values), cmap="Blues", vmin=0, vmax=10, aspect="auto")  # small errors show, too
        for (i, j), value in np.ndenumerate(values):
            panel.text(j, i, f"{value:.2g}", ha="center", va="center", fontsize=8, color="white" if value > 40 else INK)
            if dimensions[j] == classes[i] - 1:
                panel.add_patch(_frame(j, i))
        panel.grid(visible=False)
        panel.set_xticks(range(len(dimensions)), [str(L) for L in dimensions])
        panel.set_yticks(range(len(classes)), [str(K) for K in classes])
        panel.set(title=f"training error (%), start: {start}", xlabel="latent dimensions L", ylabel="classes K")
    return drawn(figure)


def _frame(x: int, y: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, fill=False, ec=INK, lw=1.6)


def collapse(fits: Sequence[Fact], least: Callable[[int, int], float]) -> Drawing:
    """Return a figure of NC1 and NC2 over L: a row of panels for each start, a line for each K.

    fits: start, K, L, nc1, nc2. least: the smallest NC2 for K and L, drawn dotted. L = K - 1 is ringed.
    """
    starts = list(dict.fromkeys(fact["start"] for fact in fits))
    figure, axes = figure_of(9.6, 2.7 * len(starts) + 0.4, len(starts), 2, shared=False)
    axes = np.reshape(axes, (len(starts), 2))
    for start, (nc1, nc2) in zip(starts, axes, strict=True):
        mine = [fact for fact in fits if fact["start"] == start]
        for i, K in enumerate(sorted({fact["K"] for fact in mine})):
            line = sorted((fact for fact in mine if fact["K"] == K), key=lambda fact: fact["L"])
            _curve(nc1, line, "nc1", i)
            _curve(nc2, line, "nc2", i)
            few = [fact["L"] for fact in line if fact["L"] <= K - 1]
            nc2.plot(few, [least(K, L) for L in few], ":", color=OKABE_ITO[i], lw=1.2)
        nc1.set(title=f"NC1: spread within classes, start: {start}", ylabel="NC1 (log scale)", yscale="log")
        nc2.set(title=f"NC2: distance from a simplex, start: {start}", ylabel="NC2")
        nc2.set_ylim(bottom=-0.03)
    for panel in axes.ravel():
        panel.xaxis.get_major_locator().set_params(integer=True)
    for panel in axes[-1]:
        panel.set_xlabel("latent dimensions L")
    axes[0, 1].legend(frameon=False, fontsize=9)
    return drawn(figure)


def _curve(axes: Any, line: Sequence[Fact], key: str, i: int) -> None:
    K, ink = line[0]["K"], OKABE_ITO[i]
    x, y = [fact["L"] for fact in line], [fact[key] for fact in line]
    axes.plot(x, y, MARKERS[i] + "-", color=ink, ms=3.5, lw=1.2, label=f"K = {K}")
    axes.plot(K - 1, y[x.index(K - 1)], "o", mfc="none", mec=ink, ms=9)
