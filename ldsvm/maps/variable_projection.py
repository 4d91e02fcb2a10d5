"""Centres and widths that are learned from all rows at once, by a quasi-Newton method.

The objective J of `ldsvm.maps.lowering`, in which the weights are already the best ones for the centres and widths, is
smooth, and by the envelope theorem its derivatives are those with these weights held fixed (Golub & Pereyra, 1973).
L-BFGS-B lowers it, with the logarithms of the widths bounded. That leads lower than stochastic gradient steps do, and
up to some ten thousand rows in less time; where rows abound, a step on all of them costs more than it gains.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from ldsvm import threads
from ldsvm.maps.features import BasisMap, row_blocks
from ldsvm.maps.lowering import RANGE, Slopes, middle
from ldsvm.maps.rbf import Gaussians
from ldsvm.solvers.ridge import Ridge
from ldsvm.typing import Array

ROWS = 100_000  # up to which its lower errors are worth its time
LEAST, MOST, SHARE = 60, 200, 50  # steps of L-BFGS, and rows for each: with more steps, few rows are overfitted
WIDTHS = 0.3  # unit of log-widths where that of centres is the spread of the data: learned faster, they overfit
PARTS, PART = 8, 2_000  # of the rows, at most, which threads share; rows of one, at least
JITTER = 1e-6  # share of the mean squared feature that is the least ridge: the Gram matrix is one of float32 numbers


class Projected:
    """J over mu and its derivatives by centres and log-widths, on all rows; use as a context manager.

    x (N, D), z (N, L), weight (N,) or None; M basis functions; ridge: 2 lam / mu; dtype: of all arrays with N rows. The
    rows are divided into parts that do not depend on the number of threads, so neither do the sums over them.
    """

    def __init__(
        self, x: Array, z: Array, weight: Array | None, M: int, ridge: float, n_threads: int = 1,
        dtype: Any = np.float32,
    ) -> None:  # fmt: skip
        rows = threads.blocks(len(x), PARTS, max(PART, 2 * M))
        self.parts = [
            Part(x[some], z[some].astype(dtype), None if weight is None else weight[some].astype(dtype), M, dtype)
            for some in rows
        ]
        self.M, self.ridge = M, ridge
        self._team = threads.Blocks(len(rows), n_threads, least=1)

    def __enter__(self) -> Projected:
        return self

    def __exit__(self, *exc: object) -> None:
        self._team.__exit__(*exc)

    def __call__(self, center: Array, width: Array) -> tuple[float, Array, Array, Array]:
        """Return J / mu, its derivatives by centres (M, D) and log-widths (M,), and the weights (M, L) it is for."""
        gram, cross = self._sum(lambda part: part.normal(center, width))
        ridge = max(self.ridge, JITTER * float(np.trace(gram)) / self.M)
        W = Ridge(gram).solve(cross, ridge)
        half, by_center, by_width = self._sum(lambda part: part.derive(center, width, W))
        return float(half) + 0.5 * ridge * float(np.einsum("ml,ml->", W, W)), by_center, by_width, W

    def _sum(self, work: Callable[[Part], tuple[Any, ...]]) -> list[Any]:
        """Return the sums over the parts of what `work` gives for each."""
        found = self._team.map(lambda some: [work(part) for part in self.parts[some]])
        return [sum(each[1:], start=each[0]) for each in zip(*chain.from_iterable(found), strict=True)]


class Part:
    """Consecutive rows, worked on in blocks of so many numbers that they stay near the processor."""

    def __init__(self, x: Array, z: Array, weight: Array | None, M: int, dtype: Any) -> None:
        self.x, self.z, self.weight = x, z, weight
        self.blocks = list(row_blocks(len(x), M))
        self.slopes = Slopes(self.blocks[0].stop, M, x.shape[1], z.shape[1], dtype)

    def normal(self, center: Array, width: Array) -> tuple[Array, Array]:
        """Return Phi' w Phi (M, M) and Phi' w z (M, L), in float64."""
        M = len(center)
        gram, cross = np.zeros((M, M)), np.zeros((M, self.z.shape[1]))
        for rows in self.blocks:
            self.slopes.features(self.x[rows], center, width)
            products = self.slopes.normal(self.z[rows], self._weights(rows))
            gram += products[0]
            cross += products[1]
        return gram, cross

    def derive(self, center: Array, width: Array, W: Array) -> tuple[float, Array, Array]:
        """Return half the squared residual and its derivatives by centres and log-widths, W being the weights."""
        half, by_center, by_width = 0.0, np.zeros(center.shape), np.zeros(width.shape)
        W = W.astype(self.z.dtype, order="C")
        for rows in self.blocks:
            if len(self.blocks) > 1:  # else they are still there
                self.slopes.features(self.x[rows], center, width)
            half += self.slopes.derive(self.z[rows], self._weights(rows), center, W)
            by_center += self.slopes.center
            by_width += self.slopes.width
        return half, by_center, by_width

    def _weights(self, rows: slice) -> Array | None:
        return None if self.weight is None else self.weight[rows]


def steps_on_all(N: int) -> int:
    """Return the steps of L-BFGS for so many rows.

    Examples
    --------
    >>> [steps_on_all(N) for N in (500, 5_000, 10_000)]
    [60, 100, 200]
    """
    return min(max(N // SHARE, LEAST), MOST)


def descend_on_all(
    basis: Gaussians, begin: Gaussians, X: Array, Z: Array, weight: Array | None, spread: float, ridge: float,
    n_threads: int,
) -> BasisMap:  # fmt: skip
    """Return basis and weights where L-BFGS-B leads to from a basis; the arguments are those of `lowering.descend`."""
    from scipy.optimize import minimize

    shift, (M, D) = middle(basis), basis.centers.shape

    def parts(at: Array) -> tuple[Array, Array]:
        return (spread * at[: M * D].reshape(M, D)).astype(np.float32), (WIDTHS * at[M * D :]).astype(np.float32)

    def value(at: Array) -> tuple[float, Array]:
        found, by_center, by_width, _ = J(*parts(at))
        return found, np.concatenate([spread * by_center.ravel(), WIDTHS * by_width])

    logarithm, most = np.log(np.max(begin.gamma)), np.log(RANGE)
    widths = np.log(np.broadcast_to(basis.gamma, M))
    start = np.concatenate([((basis.centers - shift) / spread).ravel(), widths / WIDTHS])
    bounds = [(None, None)] * (M * D) + [((logarithm - most) / WIDTHS, (logarithm + most) / WIDTHS)] * M
    options = {"maxiter": steps_on_all(len(X))}
    x = (X - shift).astype(np.float32)
    with threads.alone(), Projected(x, Z, weight, M, ridge, n_threads) as J:
        end = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        center, width = parts(end)
        W = J(center, width)[-1]
    return BasisMap(Gaussians(center + shift, np.exp(width.astype(np.float64))), W)
