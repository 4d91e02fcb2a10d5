"""Rows, and the same rows in blocks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from ldsvm import LDSVMClassifier, RowBlocks

X, Y = load_digits(return_X_y=True)
X = X / 16
TRAIN, VALID = slice(0, 900), slice(900, 1300)


@pytest.fixture(autouse=True)
def _short_runs() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.fixture
def train() -> tuple[np.ndarray, np.ndarray]:
    return X[TRAIN].copy(), Y[TRAIN].copy()


@pytest.fixture
def valid() -> tuple[np.ndarray, np.ndarray]:
    return X[VALID].copy(), Y[VALID].copy()


@pytest.fixture(scope="session")
def whole() -> LDSVMClassifier:
    """The model of the training rows in one block, to compare with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model().fit(cut((X[TRAIN], Y[TRAIN])))


def cut(data: tuple[np.ndarray, np.ndarray], *edges: int) -> RowBlocks:
    """Rows in blocks that end at the edges."""
    return RowBlocks.arrays(zip(*(np.split(part, edges) for part in data), strict=True))


def model(**params: object) -> LDSVMClassifier:
    given = {"gamma": "scale", "alpha": 1e-3, "mu_max": 1e6, "random_state": 0, "n_jobs": 1}
    chosen = {"n_basis": 60, "C": 0.5, "max_iter": 6} | given
    return LDSVMClassifier(**{**chosen, **params})


def far(a: LDSVMClassifier, b: LDSVMClassifier) -> float:
    """The largest difference of two models' weights, SVMs and centres, of each in units of its size."""
    pairs = [(a.map_.W, b.map_.W), (a.latent_coef_, b.latent_coef_), (a.intercept_, b.intercept_)]
    if hasattr(a, "centers_"):
        pairs.append((a.centers_, b.centers_))
    return float(max(np.abs(p - q).max() / max(np.abs(q).max(), 1e-300) for p, q in pairs))
