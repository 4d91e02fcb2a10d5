"""The figures of a contest: latent space, training, and all methods side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.words import cut
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, colour, drawn, figure_of, plain, plain_log

MOST_POINTS = 500  # as many as the paper shows; more only hide each other


def latent_space(Z: NDArray[Any], y: NDArray[Any], title: str, by_scores: NDArray[Any] | None = None) -> Drawing:
    """Return a figure of the training set in the latent space, one colour for each class.

    Of Z (N, L) the first two principal components are drawn, which the paper shows; by_scores: the same rows in the
    plane of `ldsvm.ClassPlane` (N, 2), to stand beside. Of more than MOST_POINTS a random part is drawn. Classes are
    also named at their medians, so that nothing depends on colour alone.
    """
    views = [_principal(Z) if Z.shape[1] > 2 else plane(Z, y)]
    if by_scores is not None:
        views.append((by_scores, "plane of the scores, with a corner for each class", ""))
    figure, panels = figure_of(0.8 + 5.2 * len(views), 5.2, columns=len(views), shared=False)
    for axes, (points, x_label, y_label) in zip(np.ravel(panels), views, strict=True):
        _classes(axes, *some(points, y))
        axes.set(xlabel=x_label, ylabel=y_label)
        if Z.shape[1] == 1:
            axes.set_yticks(range(len(np.unique(y))), [plain(label) for label in np.unique(y)])
        else:
            axes.set_aspect("equal", adjustable="datalim")  # distances mean the same in both directions
    last = np.ravel(panels)[-1]
    last.legend(title="class", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=1.6)
    figure.suptitle(plain(title), fontsize=11, color=INK)
    return drawn(figure)


def _classes(axes: Any, points: NDArray[Any], y: NDArray[Any]) -> None:
    classes = np.unique(y)
    for k, label in enumerate(classes):
        members = points[y == label]
        axes.scatter(*members.T, s=12, color=colour(k, len(classes)), alpha=0.65, linewidths=0, label=plain(label))
        axes.annotate(
            plain(label),
            np.median(members, axis=0),
            ha="center",
            va="center",
            fontweight="bold",
            bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": colour(k, len(classes)), "alpha": 0.85},
        )


def some(points: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return at most MOST_POINTS random rows of both."""
    if len(points) <= MOST_POINTS:
        return points, y
    chosen = np.random.default_rng(0).choice(len(points), MOST_POINTS, replace=False)
    return points[chosen], y[chosen]


def plane(Z: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], str, str]:
    """Return Z (N, L) as points of a plane (N, 2), and what its axes are.

    Two dimensions are left as they are, one is spread out over the class. Of more, the linear projection is taken that
    comes closest to putting class k on corner k of a regular polygon: collapsed classes form a ring, and what lies
    between two corners or in the middle is what the classifier confuses. Two classes have no polygon: there it is the
    first two principal components.
    """
    n_latent = Z.shape[1]
    if n_latent == 1:
        # Points of one class share a line; a fixed jitter keeps them apart.
        jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(Z))
        return np.column_stack([Z[:, 0], np.searchsorted(np.unique(y), y) + jitter]), "latent dimension 1", "class"
    if n_latent == 2:
        return Z, "latent dimension 1", "latent dimension 2"
    classes, k = np.unique(y, return_inverse=True)
    if len(classes) == 2:
        return _principal(Z)
    centred, angle = Z - Z.mean(axis=0), 2 * np.pi * k / len(classes)
    axes = np.linalg.lstsq(centred, np.column_stack([np.cos(angle), np.sin(angle)]), rcond=None)[0]
    return centred @ axes, f"a plane of {n_latent} dimensions", "its other axis"


def _principal(Z: NDArray[Any]) -> tuple[NDArray[Any], str, str]:
    centred = Z - Z.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2].T
    return centred @ axes, f"1st component of {Z.shape[1]} dimensions", "2nd principal component"


def convergence(history: Sequence[dict[str, Any]], title: str, kept: int | None = None) -> Drawing:
    """Return a figure of a training: objectives above, errors below, over the iterations; kept: the one to mark."""
    figure, (top, bottom) = figure_of(6.0, 5.2, rows=2)
    steps = [row["iteration"] for row in history]
    for key, ink, marker in (("nested", OKABE_ITO[0], "o"), ("penalised", OKABE_ITO[1], "s")):
        top.plot(steps, [row[key] for row in history], marker=marker, color=ink, label=f"{key} objective", ms=4)
    for key, name, ink, marker in (
        ("train_error", "training", OKABE_ITO[2], "^"),
        ("valid_error", "validation", OKABE_ITO[3], "v"),
    ):
        if all(row.get(key) is not None for row in history):
            values = [100 * row[key] for row in history]
            bottom.plot(steps, values, marker=marker, color=ink, label=f"{name} error", ms=4)
    top.set(title=plain(title), ylabel="objective (log scale)", yscale="log")
    plain_log(top.yaxis)
    bottom.set(xlabel="MAC iteration", ylabel="error (%)")
    bottom.set_ylim(bottom=0)
    if kept is not None:
        top.axvline(kept, color=INK, ls=":", lw=1.2)
        bottom.axvline(kept, color=INK, ls=":", lw=1.2, label="iteration kept")
    for axes in (top, bottom):
        axes.xaxis.get_major_locator().set_params(integer=True)
        if axes.lines:
            axes.legend(frameon=False)
    return drawn(figure)


def importances(shares: Mapping[str, float], title: str) -> Drawing:
    """Return a figure with a bar for each column's share in per cent, the largest on top."""
    names, values = [*shares], [100 * share for share in shares.values()]
    figure, axes = figure_of(6.4, 1.2 + 0.26 * len(names))
    axes.barh(range(len(names)), values, color=OKABE_ITO[0], height=0.7)
    axes.set_yticks(range(len(names)), [plain(cut(name)) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="share of the squared slope of the scores (%)", title=plain(title))
    return drawn(figure)


def overview(outcomes: Sequence[Outcome], title: str, ours: Sequence[str] = ()) -> Drawing:
    """Return a figure with a line for each method, the best on top: test error, basis functions, prediction time.

    Axes are logarithmic where values span much. ours: names of the methods to stress; all others are grey.
    """
    judged = sorted((outcome for outcome in outcomes if outcome.judged), key=lambda o: -o.error)
    figure, panels = figure_of(9.6, 1.5 + 0.26 * max(3, len(judged)), columns=3)
    several = bool(judged) and len(judged[0].results) > 1
    labels = (
        f"test error (%), {'± one std over splits' if several else '95 % interval'}",
        "basis functions",
        "prediction (µs per sample, one thread)",
    )
    values: list[list[Any]] = [[100 * o.error, o.n_basis, o.predict_us] for o in judged]
    for k, (axes, label) in enumerate(zip(panels, labels, strict=True)):
        numbers = [row[k] for row in values if row[k]]
        if numbers and max(numbers) > 4 * min(numbers):
            axes.set_xscale("log")
        for place, (outcome, row) in enumerate(zip(judged, values, strict=True)):
            style = {"color": OKABE_ITO[0], "ms": 7} if outcome.method in ours else {"color": INK, "ms": 5}
            if k == 0:
                low, high = (100 * bound for bound in outcome.bounds)
                bars = {"xerr": [[max(0.0, row[0] - low)], [max(0.0, high - row[0])]], "capsize": 2, "elinewidth": 1.0}
                axes.errorbar(row[0], place, fmt="o", **bars, **style)
            elif row[k]:
                axes.plot(row[k], place, "o", **style)
        if axes.get_xscale() == "log":
            plain_log(axes.xaxis)
        else:
            axes.set_xlim(left=0)
        axes.set_xlabel(label, fontsize=9)
    _name_lines(panels[0], judged, ours)
    figure.suptitle(plain(title), fontsize=11, color=INK)
    return drawn(figure)


def _name_lines(axes: Any, judged: Sequence[Outcome], ours: Sequence[str]) -> None:
    axes.set_yticks(range(len(judged)), [outcome.method for outcome in judged])
    axes.set_ylim(-0.6, max(0.6, len(judged) - 0.4))
    for outcome, text in zip(judged, axes.get_yticklabels(), strict=True):
        if outcome.method in ours:
            text.set(color=OKABE_ITO[0], fontweight="bold")
