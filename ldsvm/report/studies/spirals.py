"""What the studies on spirals share: the data, a fit, and the choice of width and penalty on spirals of their own."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from sklearn.exceptions import ConvergenceWarning

from ldsvm.datasets.spirals import make
from ldsvm.estimator import LDSVMClassifier
from ldsvm.mac.scheme import Labels
from ldsvm.path import fit_path
from ldsvm.report.studies import base
from ldsvm.typing import Array

Positive = Annotated[float, Field(gt=0)]
SourceRows = tuple[Array, Labels]
EDGE = 1.15  # boundaries are drawn in the square from -EDGE to EDGE


class SpiralParams(base.Params):
    """What both studies let a file set.

    n_samples: points of each spiral, as many again to choose on and to test with. turns, noise: of the generator.
    gammas, penalties: the widths and the C among which the validation spirals choose. alpha: ridge of the map, the
    paper's lambda, at the value that it fixes. patience, max_iter: iterations without a lower validation error, and in
    all. pixels: side of the picture of a boundary.
    """

    n_samples: int = Field(ge=2, le=100_000)
    turns: float = Field(ge=0, le=100)
    noise: float = Field(ge=0, le=10)
    gammas: Annotated[tuple[Positive, ...], Field(min_length=1)] = (3.0, 10.0, 30.0, 100.0)
    penalties: Annotated[tuple[Positive, ...], Field(min_length=1)] = (0.1, 1.0, 10.0, 100.0)
    alpha: Positive = 1e-3
    patience: int = Field(default=10, ge=1)
    max_iter: int = Field(default=200, ge=1)
    pixels: int = Field(default=200, ge=2, le=2000)


@dataclass(frozen=True)
class Data:
    """Spirals to train, to choose and to test with: X (N, 2) and y (N,) each, the same but for their noise."""

    train: SourceRows
    valid: SourceRows
    test: SourceRows


def data(params: SpiralParams, n_classes: int, seed: int) -> Data:
    """Return three samples of the same spirals."""
    seeds = np.random.SeedSequence(seed).generate_state(3)
    draw = partial(make, n_classes=n_classes, n_samples=params.n_samples, turns=params.turns, noise=params.noise)
    drawn = [draw(seed=int(s)) for s in seeds]
    train, valid, test = ((X.astype(np.float64), y) for X, y in drawn)
    return Data(train, valid, test)


def model(params: SpiralParams, context: base.Context, **changes: Any) -> LDSVMClassifier:
    """Return an unfitted classifier with the study's settings and some of its own."""
    return LDSVMClassifier(
        centers="random", alpha=params.alpha, n_iter_no_change=params.patience, max_iter=params.max_iter,
        random_state=context.seed, n_jobs=context.n_jobs, **changes,
    )  # fmt: skip


def fit(
    estimator: LDSVMClassifier, data: Data, penalties: Iterable[float], *, early_stopping: bool = True
) -> list[LDSVMClassifier]:
    """Fit for each penalty; early stopping is by the validation spirals. One that max_iter cuts off is as good."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_path(estimator, *data.train, penalties, eval_set=data.valid if early_stopping else None)


def valid_errors(models: Sequence[LDSVMClassifier]) -> list[float]:
    """Return the validation errors of the iterations that were kept."""
    return [float(m.history_[m.best_iter_]["valid_error"]) for m in models]


def means(gamma: float, penalties: Sequence[float], errors: Sequence[Sequence[float]]) -> list[dict[str, float]]:
    """Return a point for each penalty, with the mean of its errors; errors: a row for each fit, a column for each C."""
    columns = zip(penalties, np.mean(errors, axis=0), strict=True)
    return [{"gamma": gamma, "C": C, "valid_error": float(mean)} for C, mean in columns]


def choice(tried: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the point of lowest validation error; of several the smoothest: the widest basis, then the smallest C."""
    return min(tried, key=lambda point: (point["valid_error"], point["gamma"], point["C"]))


def error(estimator: LDSVMClassifier, rows: SourceRows) -> float:
    """Return the share of rows that a fitted classifier gets wrong."""
    return float(np.mean(estimator.predict(rows[0]) != rows[1]))


def square(pixels: int) -> Array:
    """Return the points (pixels * pixels, 2) of the square, row by row from below."""
    side = np.linspace(-EDGE, EDGE, pixels)
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


def choice_table(tried: Sequence[dict[str, float]], over: str) -> base.Table:
    """Return validation errors in per cent, a row for each width and a column for each C; over: whose they are."""
    penalties = sorted({point["C"] for point in tried})
    cells = {(point["gamma"], point["C"]): f"{100 * point['valid_error']:.2f}" for point in tried}
    rows = [[f"{gamma:g}", *(cells[gamma, C] for C in penalties)] for gamma in sorted({p["gamma"] for p in tried})]
    best = choice(tried)
    return base.Table(
        "How width and penalty were chosen: error on validation spirals, %",
        ["gamma", *(f"C = {C:g}" for C in penalties)],
        rows,
        note=f"{over}. Chosen: gamma = {best['gamma']:g}, C = {best['C']:g}, the lowest; of equal ones the "
        "widest basis, then the smallest C.",
    )
