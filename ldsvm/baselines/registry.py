"""Name -> how to make a method and how to measure its size. Ours goes through the same door as the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from ldsvm.baselines import neighbours, svm


@dataclass(frozen=True)
class Method:
    """One classifier that experiments may name.

    make: returns an unfitted estimator. count: fitted -> number of basis functions, None where there are none.
    arrays: fitted -> the arrays a prediction needs. iterative: True when `fit` takes `eval_set`, the training keeps
    a `history_`, and points that differ only in C share their work through `ldsvm.fit_path`.
    """

    make: Callable[[], Any]
    count: Callable[[Any], int | None]
    arrays: Callable[[Any], list[np.ndarray]]
    iterative: bool = False


def _ours() -> Any:
    from ldsvm import LDSVMClassifier

    return LDSVMClassifier()


def _count_ours(fitted: Any) -> int | None:
    return int(fitted.n_basis_) if hasattr(fitted, "centers_") else None  # a linear map has none


def _arrays_ours(fitted: Any) -> list[np.ndarray]:
    """Centres (M, D) where the map has them, its weights (M, L), and the machines' (K, L) and (K,)."""
    centers = [fitted.centers_] if hasattr(fitted, "centers_") else []
    return [*centers, fitted.map_.W, fitted.coef_, fitted.intercept_]


METHODS: dict[str, Method] = {
    "ldsvm": Method(_ours, _count_ours, _arrays_ours, iterative=True),
    "nearest_neighbour": Method(neighbours.nearest, neighbours.count, neighbours.arrays),
    "linear_svm": Method(svm.linear, svm.count_linear, svm.arrays_linear),
    "gaussian_svm": Method(svm.gaussian, svm.count_gaussian, svm.arrays_gaussian),
}


def lookup(name: str) -> Method:
    """Return the method called `name`; raise KeyError with one sentence when there is none."""
    if name in METHODS:
        return METHODS[name]
    near = get_close_matches(name, METHODS, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    raise KeyError(f'unknown estimator "{name}"{hint} Allowed: {", ".join(METHODS)}')
