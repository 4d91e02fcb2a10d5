"""How many latent dimensions K classes need, and where they come to lie: K spirals (fig. f:kspirals)."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from ldsvm.estimator import LDSVMClassifier
from ldsvm.report.studies import base, spirals
from ldsvm.report.studies.collapse import from_simplex, within_to_between
from ldsvm.typing import Array

LONG_TOL = 1e-4  # a hundredth of the default


class Params(spirals.SpiralParams):
    """The paper's protocol, as far as stated: 2 to 6 spirals of 500 samples, 1 to 10 dimensions, every sample a centre.

    starts: where training begins, see `ldsvm.mac.start`; the page shows each. long_iter: iterations, at most, of the
    trainings without early stopping that show what more of them change. shown: samples of each class in the pictures.
    """

    n_samples: int = Field(default=500, ge=2, le=100_000)
    turns: float = Field(default=1.0, ge=0, le=100)
    noise: float = Field(default=0.01, ge=0, le=10)
    gammas: Annotated[tuple[spirals.Positive, ...], Field(min_length=1)] = (10.0, 30.0, 100.0)
    penalties: Annotated[tuple[spirals.Positive, ...], Field(min_length=1)] = (0.1, 1.0, 10.0)
    n_classes: Annotated[tuple[Annotated[int, Field(ge=2, le=8)], ...], Field(min_length=1)] = (2, 3, 4, 5, 6)
    n_latent: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = tuple(range(1, 11))
    starts: Annotated[tuple[Literal["simplex", "random"], ...], Field(min_length=1)] = ("simplex", "random")
    long_iter: int = Field(default=300, ge=1)
    pixels: int = Field(default=120, ge=2, le=2000)
    shown: int = Field(default=100, ge=1)

    @model_validator(mode="after")
    def _has_the_ideal(self) -> Params:
        missing = sorted({K - 1 for K in self.n_classes} - set(self.n_latent))
        if missing:
            raise ValueError(f"allowed: n_latent that has {missing[0]} too, one less than n_classes {missing[0] + 1}")
        return self


def compute(params: Params, context: base.Context) -> base.Found:
    """Choose width and penalty for all K together at L = K - 1, then fit every K, L and start."""
    rows = {K: spirals.data(params, K, context.seed) for K in params.n_classes}
    tried = _tried(params, rows, context)
    best = spirals.choice(tried)
    facts: list[dict[str, Any]] = []
    long: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {f"X {K}": rows[K].train[0][some(params, K)].astype(np.float32) for K in rows}
    todo = list(product(params.n_classes, params.starts, params.n_latent))
    for step, (K, start, L) in enumerate(todo):
        context.tell(f"{K} spirals, {L} dimensions, start: {start}", 0.4 + 0.6 * step / len(todo))
        where = {"K": K, "L": L, "start": start}
        estimator = spirals.model(params, context, n_components=L, n_basis=None, gamma=best["gamma"], init=start)
        fitted = spirals.fit(estimator, rows[K], [best["C"]])[0]
        facts.append(where | _measured(fitted, rows[K]))
        arrays[f"Z {K} {start} {L}"] = _plane(fitted.transform(rows[K].train[0]))[some(params, K)]
        if L == K - 1:
            arrays[f"g {K} {start}"] = _scores(fitted, params.pixels)
            estimator.set_params(tol=LONG_TOL, max_iter=params.long_iter)
            longer = spirals.fit(estimator, rows[K], [best["C"]], early_stopping=False)[0]
            long.append(where | _measured(longer, rows[K]))
    return base.Found({"tried": tried, "fits": facts, "long": long}, arrays)


def some(params: Params, K: int) -> Array:
    """Return the numbers of the samples that are shown, evenly along each arm, class after class."""
    chosen = np.unique(np.linspace(0, params.n_samples - 1, min(params.shown, params.n_samples)).astype(int))
    return (params.n_samples * np.arange(K)[:, None] + chosen).ravel()


def _tried(params: Params, rows: dict[int, spirals.Data], context: base.Context) -> list[dict[str, float]]:
    """Mean validation error over all K, with L = K - 1 from the simplex, at each width and penalty."""
    tried = []
    for step, gamma in enumerate(params.gammas):
        errors = []
        for i, K in enumerate(params.n_classes):
            share = (step + i / len(params.n_classes)) / len(params.gammas)
            context.tell(f"gamma = {gamma:g}, {K} spirals", 0.4 * share)
            estimator = spirals.model(params, context, n_basis=None, gamma=gamma)
            errors.append(spirals.valid_errors(spirals.fit(estimator, rows[K], params.penalties)))
        tried += spirals.means(gamma, params.penalties, errors)
    return tried


def _measured(fitted: LDSVMClassifier, rows: spirals.Data) -> dict[str, Any]:
    Z, y = fitted.transform(rows.train[0]), rows.train[1]
    return {
        "train_error": spirals.error(fitted, rows.train),
        "test_error": spirals.error(fitted, rows.test),
        "nc1": within_to_between(Z, y),
        "nc2": from_simplex(Z, y),
        "nested": float(fitted.history_[fitted.best_iter_]["nested"]),
        "iterations": int(fitted.best_iter_),
    }


def _plane(Z: Array) -> Array:
    """Principal coordinates (N, 2) of Z (N, L), or Z itself for L = 1."""
    if Z.shape[1] == 1:
        return Z.astype(np.float32)
    centred = Z - Z.mean(axis=0)
    return (centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T).astype(np.float32)


def _scores(fitted: LDSVMClassifier, pixels: int) -> Array:
    """Scores (pixels, pixels, K) over the square."""
    scores = fitted.decision_function(spirals.square(pixels))
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    return scores.reshape(pixels, pixels, -1).astype(np.float32)
