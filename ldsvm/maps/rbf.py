"""F(x) = W' phi(x) with Gaussian basis functions phi_m(x) = exp(-gamma |x - c_m|^2) (section "The F step")."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ldsvm.maps.base import Map
from ldsvm.maps.features import Basis, BasisMap, FeatureFamily, row_blocks
from ldsvm.maps.kmeans import kmeans
from ldsvm.maps.landmarks import landmarks
from ldsvm.maps.leave_one_out import CENTERS, FEW, ROWS, WIDTHS, Sample, choose, ridges
from ldsvm.typing import Array

# Above this exponent at the data's edge float32 rounding would show in the features; float64 is used instead.
FLOAT32_RANGE = 500.0
# Beyond these distances in units of the width, and these widths, every feature is 0 whatever the numbers are.
UNEVEN = 100  # times as much variance, from which on columns are called uneven
FAR, LARGEST_GAMMA = 1e100, 1e250
SMALLEST = 1e-18  # what inputs must differ by: float32 still has its square


class Gaussians(Basis):
    """Gaussian basis functions around centres (M, D), with gamma = 1 / (2 sigma^2), one for all or one each (M,)."""

    def __init__(self, centers: Array, gamma: float | Array) -> None:
        self.centers, self.gamma = centers, gamma
        self.size = centers.shape[0]
        # Distances are taken around the centres' mean, so that an offset of the data costs no digits.
        self._shift = centers.mean(axis=0, dtype=np.float64)
        self._root = float(np.sqrt(min(np.max(gamma), LARGEST_GAMMA)))
        self._operands: dict[str, Array] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_operands": {}}

    def _operand(self, dtype: Any) -> Array:
        """(D + 2, M) so that (x, -|x|^2, 1) times it is -gamma |x - c|^2: one product.

        x and c are in units of the smallest width, 1 / sqrt(gamma); columns of wider functions are scaled down.
        """
        key = np.dtype(dtype).char
        if key not in self._operands:
            c = (self.centers.astype(np.float64) - self._shift) * self._root
            square = np.einsum("md,md->m", c, c)
            rows = np.vstack([2.0 * c.T, np.ones((1, self.size)), -square[None, :]])
            if np.ndim(self.gamma):
                rows *= np.minimum(self.gamma, LARGEST_GAMMA) / self._root**2
            self._operands[key] = np.ascontiguousarray(rows, dtype=dtype)
        return self._operands[key]

    def __call__(self, X: Any, dtype: Any) -> Array:
        N, D = X.shape
        x = np.empty((N, D + 2), dtype)
        with np.errstate(over="ignore"):
            np.subtract(X, self._shift, out=x[:, :D], casting="same_kind")
            x[:, :D] *= x.dtype.type(self._root)
            square = np.einsum("nd,nd->n", x[:, :D], x[:, :D])
        if not float(square.max(initial=0.0)) <= (FLOAT32_RANGE if dtype == np.float32 else FAR**2):
            if dtype == np.float32:
                return self(X, np.float64).astype(np.float32)
            np.clip(x[:, :D], -FAR, FAR, out=x[:, :D])
            square = np.einsum("nd,nd->n", x[:, :D], x[:, :D])
        x[:, D] = -square
        x[:, D + 1] = 1.0
        out: Array = x @ self._operand(dtype)
        np.minimum(out, np.zeros(self.size, dtype), out=out)  # several times faster than with one number
        return np.exp(out, out=out)


class RBF(FeatureFamily):
    """Gaussian RBF networks with R(F) = |W|^2.

    Parameters
    ----------
    n_basis : M; None takes every distinct training row as a centre ("nonparametric").
    centers : "kmeans" (Lloyd from random rows), "random" (distinct training rows), an array (M, D), or an estimator
        that finds them (see `landmarks`).
    gamma : 1 / (2 sigma^2), "scale" for 1 / (D Var(X)) as in scikit-learn's SVC, or "auto" for one of WIDTHS times it.
    lam : ridge on W, or "auto" for one of ALPHAS.
    asked : whether n_basis was somebody's choice; only then is its reduction worth a warning.
    """

    largest = 1e18  # centres are kept, and k-means runs, in float32

    def __init__(
        self, n_basis: int | None, centers: Any, gamma: float | str, lam: float | str, asked: bool = True
    ) -> None:
        self.n_basis, self.centers, self.gamma, self.lam, self.asked = n_basis, centers, gamma, lam, asked

    @property
    def automatic(self) -> bool:
        return "auto" in (self.gamma, self.lam)

    def chosen(self, sample: Sample, width: float, widths: tuple[float, ...] = WIDTHS) -> RBF:
        """The width by few rows and centres; the ridge by more, since with fewer centres it would be too small."""
        M, gamma = min(CENTERS, self.n_basis or CENTERS), width
        if self.gamma == "auto":
            gammas = [width * times for times in widths]
            gamma = _chosen(sample.thinned(ROWS // 2), min(M, max(FEW, M // 2)), gammas, ridges(self.lam))[0]
        lam = self.lam if not isinstance(self.lam, str) else _chosen(sample, M, [gamma], ridges(self.lam))[1]
        return RBF(self.n_basis, self.centers, gamma, lam, self.asked)

    def basis(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None
    ) -> Basis:
        if isinstance(near, BasisMap) and isinstance(near.basis, Gaussians):
            return near.basis
        check_spread(float((X.max(axis=0) - X.min(axis=0)).max()))
        moments = cache(lambda: _moments(X, weight))  # at most once, and not where nothing asks for them
        centers = self._choose(X, weight, random_state, moments)
        return Gaussians(centers, self.width_of(*moments()) if isinstance(self.gamma, str) else float(self.gamma))

    def width(self, X: Array, weight: Array | None) -> float:
        return float(self.gamma) if not isinstance(self.gamma, str) else self.width_of(*_moments(X, weight))

    def width_of(self, middle: Array, within: Array) -> float:
        """Return gamma where it is a number, else the one that "scale" stands for.

        middle, within: mean and variance of the columns (D,).
        """
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        warn_of_scales(middle, within)
        variance = float(within.mean() + middle.var())
        return 1.0 / (len(middle) * variance) if variance > 0 else 1.0

    def _choose(
        self,
        X: Array,
        weight: Array | None,
        random_state: np.random.RandomState,
        moments: Callable[[], tuple[Array, Array]],
    ) -> Array:
        if not isinstance(self.centers, str):
            return landmarks(self.centers, X, weight, self.n_basis, random_state)
        distinct = distinct_rows(X)
        M = distinct.size if self.n_basis is None else self.n_basis
        if distinct.size <= M:
            if self.asked:
                warn_of_size(M, distinct.size)
            return X[distinct].astype(np.float32)
        start = X[np.sort(random_state.choice(distinct, M, replace=False))].astype(np.float32)
        return start if self.centers == "random" else kmeans(X, start, weight, float(moments()[1].mean()))


def _chosen(sample: Sample, M: int, gammas: list[float], alphas: tuple[float, ...]) -> tuple[float, float]:
    """Return the best width and ridge with M of the sample's rows as centres."""
    X = sample.X.astype(np.float32).astype(np.float64)  # in the precision of centres
    distinct = distinct_rows(X)
    centers = X[distinct[np.linspace(0, len(distinct) - 1, min(M, len(distinct))).astype(int)]]
    return choose(sample, lambda gamma: Gaussians(centers, gamma)(X, np.float64), gammas, alphas)


def check_spread(spread: float) -> None:
    """Raise ValueError for inputs that differ, but by so little that centres in float32 would be all the same."""
    if 0.0 < spread < SMALLEST:
        raise ValueError(
            f"the columns of X vary by {spread:.2g}; allowed with Gaussians: at least {SMALLEST:g}. Scale them first, "
            "for example with sklearn.preprocessing.StandardScaler."
        )


def warn_of_size(M: int, distinct: int) -> None:
    """Warn where there are fewer distinct rows than centres are wanted."""
    if distinct < M:
        warnings.warn(
            f"n_basis={M} is more than the {distinct} distinct training rows; n_basis is reduced to {distinct}.",
            UserWarning,
            stacklevel=2,
        )


def _moments(X: Array, weight: Array | None) -> tuple[Array, Array]:
    """Return mean and variance of the columns (D,), by blocks so that there is no second copy of X in float64."""
    share = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
    middle, within = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    blocks = list(row_blocks(*X.shape))
    for rows in blocks:
        middle += share[rows] @ X[rows].astype(np.float64)
    for rows in blocks:
        within += share[rows] @ np.square(X[rows] - middle)
    return middle, within


def warn_of_scales(middle: Array, within: Array) -> None:
    """Warn where one width for all columns cannot be right: the variance of all values is that of a few of them.

    middle, within: mean and variance of the columns (D,).
    """
    if np.var(middle) > UNEVEN * np.mean(within):
        what = "offsets"
    elif len(within) > 2 and np.max(within) > (1 - 1 / UNEVEN) * np.sum(within) > 0:
        what = "scales"
    else:
        return
    warnings.warn(
        f"the {what} of the columns of X differ so much that gamma='scale' suits few of them; scale the columns first, "
        "for example with sklearn.preprocessing.StandardScaler, or set gamma.",
        UserWarning,
        stacklevel=2,
    )


def distinct_rows(X: Array) -> Array:
    """Indices of the first occurrence of every distinct row of X (N, D), ascending."""
    rows = np.ascontiguousarray(X + 0.0)  # -0.0 becomes 0.0, so that equal rows have equal bytes
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return np.sort(np.unique(keys, return_index=True)[1])
