"""How many latent dimensions K classes need, and where they come to lie: K spirals (fig. f:kspirals)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ldsvm.estimator import LDSVMClassifier
from ldsvm.report.html import Picture
from ldsvm.report.plotting import kspirals as plotting
from ldsvm.studies import base, spirals
from ldsvm.studies.collapse import from_simplex, least_from_simplex, within_to_between
from ldsvm.typing import Array

SIMPLEX_BAR, POINT_BAR = 0.1, 0.1  # NC2 and NC1 below which classes count as a simplex, and as points
Fact = dict[str, Any]


class Params(spirals.SpiralParams):
    """The paper's protocol, where it tells: 2 to 6 spirals of 500 samples, 1 to 10 dimensions, every sample a centre.

    starts: where training begins, see `ldsvm.mac.start`; the page shows each. shown: samples of each class in the
    pictures.
    """

    n_samples: int = Field(default=500, ge=2, le=100_000)
    turns: float = Field(default=1.0, ge=0, le=100)
    noise: float = Field(default=0.01, ge=0, le=10)
    gammas: Annotated[tuple[spirals.Positive, ...], Field(min_length=1)] = (3.0, 10.0, 30.0, 100.0)
    penalties: Annotated[tuple[spirals.Positive, ...], Field(min_length=1)] = (0.1, 1.0, 10.0, 100.0)
    n_classes: Annotated[tuple[Annotated[int, Field(ge=2, le=8)], ...], Field(min_length=1)] = (2, 3, 4, 5, 6)
    n_latent: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = tuple(range(1, 11))
    starts: Annotated[tuple[Literal["simplex", "random"], ...], Field(min_length=1)] = ("simplex", "random")
    pixels: int = Field(default=120, ge=2, le=2000)
    shown: int = Field(default=100, ge=1)


def compute(params: Params, context: base.Context) -> base.Found:
    """Choose width and penalty for all K together at L = K - 1, then fit every K, L and start."""
    rows = {K: spirals.data(params, K, context.seed) for K in params.n_classes}
    tried = _tried(params, rows, context)
    best = spirals.choice(tried)
    facts: list[Fact] = []
    arrays: dict[str, Array] = {}
    todo = list(product(params.n_classes, params.starts, params.n_latent))
    for step, (K, start, L) in enumerate(todo):
        context.tell(f"{K} spirals, {L} dimensions, start: {start}", 0.5 + 0.5 * step / len(todo))
        estimator = spirals.model(params, context, n_components=L, n_basis=None, gamma=best["gamma"], init=start)
        fitted = spirals.fit(estimator, rows[K], [best["C"]])[0]
        facts.append({"K": K, "L": L, "start": start} | _measured(fitted, rows[K]))
        arrays[_key("Z", K, L, start)] = _plane(fitted.transform(rows[K].train[0]))[_some(params)]
