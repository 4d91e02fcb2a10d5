"""Centres and widths that are learned from few rows: all of them at once, by a quasi-Newton method.

The objective J of `ldsvm.maps.lowering`, in which the weights are already the best ones for the centres and widths, is
smooth, and by the envelope theorem its derivatives are those with these weights held fixed (Golub & Pereyra, 1973).
L-BFGS-B lowers it, with the logarithms of the widths bounded. Where rows are few, that leads lower than stochastic
gradient steps do, in less time; where they abound, a step on all rows costs more than it gains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldsvm.maps.features import BasisMap
from ldsvm.maps.lowering import RANGE, Slopes, middle
from ldsvm.maps.rbf import Gaussians
from ldsvm.solvers.ridge import Ridge
from ldsvm.typing import Array

ROWS = 10_000  # up to so many, this is better than gradient steps on batches
LEAST, MOST, SHARE = 60, 200, 50  # steps of L-BFGS, and rows for each: with more steps, few rows are overfitted
WIDTHS = 0.3  # unit of log-widths where that of centres is the spread of the data: learned faster, they overfit
JITTER = 1e-6  # share of the mean squared feature that is the least ridge: the Gram matrix is one of float32 numbers


class Projected:
    """J over mu and its derivatives by centres and log-widths, on all rows.

    x (N, D), z (N, L), weight (N,) or None; M basis functions; ridge: 2 lam / mu; dtype: of all arrays with N rows.
    """

    def __init__(
        self, x: Array, z: Array, weight: Array | None, M: int, ridge: float, dtype: Any = np.float32
    ) -> None:  # fmt: skip
        self.x, self.z, self.ridge = x, z.astype(dtype), ridge
        self.weight = None if weight is None else weight.astype(dtype)
        self.slopes = Slopes(len(x), M, x.shape[1], z.shape[1], dtype)

    def __call__(self, center: Array, width: Array) -> tuple[float, Array]:
        """Return J / mu and the weights W (M, L) that it is for; the derivatives are then in `slopes`."""
        gram, cross = self.slopes.normal(self.x, self.z, self.weight, center, width)
        gram = gram.astype(np.float64)
        ridge = max(self.ridge, JITTER * float(np.trace(gram)) / len(gram))
        W = Ridge(gram).solve(cross.astype(np.float64), ridge)
        half = self.slopes.derive(self.z, self.weight, center, W.astype(self.z.dtype, order="C"))
        return half + 0.5 * ridge * float(np.einsum("ml,ml->", W, W)), W


def steps_on_all(N: int) -> int:
    """Return the steps of L-BFGS for so many rows.

    Examples
    --------
    >>> [steps_on_all(N) for N in (500, 5_000, 10_000)]
    [60, 100, 200]
    """
    return min(max(N // SHARE, LEAST), MOST)


def descend_on_all(
    basis: Gaussians, begin: Gaussians, X: Array, Z: Array, weight: Array | None, spread: float, ridge: float
) -> BasisMap:  # fmt: skip
    """Return basis and weights where L-BFGS-B leads to from a basis; the arguments are those of `lowering.descend`."""
    from scipy.optimize import minimize

    shift, (M, D) = middle(basis), basis.centers.shape
    J = Projected((X - shift).astype(np.float32), Z, weight, M, ridge)

    def parts(at: Array) -> tuple[Array, Array]:
        return (spread * at[: M * D].reshape(M, D)).astype(np.float32), (WIDTHS * at[M * D :]).astype(np.float32)

    def value(at: Array) -> tuple[float, Array]:
        found, _ = J(*parts(at))
        slope = np.concatenate([spread * J.slopes.center.ravel(), WIDTHS * J.slopes.width])
        return found, slope.astype(np.float64)

    logarithm, most = np.log(np.max(begin.gamma)), np.log(RANGE)
    widths = np.log(np.broadcast_to(basis.gamma, M))
    start = np.concatenate([((basis.centers - shift) / spread).ravel(), widths / WIDTHS])
    bounds = [(None, None)] * (M * D) + [((logarithm - most) / WIDTHS, (logarithm + most) / WIDTHS)] * M
    options = {"maxiter": steps_on_all(len(X))}
    end = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    center, width = parts(end)
    _, W = J(center, width)
    return BasisMap(Gaussians(center + shift, np.exp(width.astype(np.float64))), W)
