"""Gaussian basis functions whose centres and widths are learned: a step beyond the paper, which fixes them.

The F-step's objective with the weights eliminated (variable projection), for centres c_m and widths gamma_m,

    J(c, gamma) = min_W  lam |W|^2 + mu/2 sum_n w_n |z_n - W' phi(x_n)|^2,   phi_m(x) = exp(-gamma_m |x - c_m|^2),

is lowered by a quasi-Newton method on all rows (`ldsvm.maps.variable_projection`) or, where rows abound, by stochastic
gradient steps on centres, widths and weights over small batches of rows, which cost a few passes over the rows instead
of one Gram matrix a step. Then the weights are solved for exactly, on all rows, and the centres are kept only if J has
fallen. So a whole F-step never raises the penalised objective, as every other step of MAC.

Where Z is to follow, every F-step but the first lowers J plus the hinges at Z, over F and Z: each batch takes its
Z-step anew, from f_n = F(x_n). With Z eliminated too, mu/2 |z_n - f_n|^2 plus the hinges at z_n is a smoothed hinge
loss of f_n (their Moreau envelope) whose derivative is mu (f_n - z_n), the same residual. Rows that are right by a
margin then pull at nothing, and one F-step goes where many turns of F and Z would crawl: to a lower objective, which is
a lower error only where rows abound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from ldsvm.maps.features import Basis, BasisMap
from ldsvm.maps.rbf import Gaussians
from ldsvm.typing import Array

BATCH = 100  # rows of a gradient step
RATE = 0.02  # of the first step, in units of the data's spread; it falls to 0 along half a cosine
WIDTHS = 0.1  # share of that rate for log-widths: learned faster, they fit the training rows only
WEIGHTS = 3.0  # the same for the weights, in units of theirs: they follow the centres, as if solved for
SHORTER = 5  # F-steps after the first take so many times fewer steps: towards where Z is they begin near the end
PASSES, LEAST, MOST = 100, 1_000, 50_000  # over the rows, and steps, when nobody says how many
RANGE = 20.0  # a width may become so many times smaller or larger than the first
DEAD = 1e-6  # sum of a basis function's squares over the rows, and of a difference of two, below which one is of no use


class Slopes:
    """Half the squared residual of batches and its derivatives, in arrays that are made once and used for every batch.

    batch, M, D, L: rows of x, at most, centres, and dimensions of rows and coordinates. After a call the derivatives by
    centres (M, D), log-widths (M,) and weights (M, L) are `center`, `width` and `weight`.
    """

    def __init__(self, batch: int, M: int, D: int, L: int, dtype: Any = np.float32) -> None:
        self.center, self.width, self.weight = np.empty((M, D), dtype), np.empty(M, dtype), np.empty((M, L), dtype)
        self._sums, self._operand = (np.empty((M, D + 2), dtype) for _ in range(2))
        self._zeros = np.zeros(M, dtype)  # NumPy compares arrays with one number several times slower
        self._arrays = [np.empty((batch, columns), dtype) for columns in (D + 2, M, M, M, L, L)]

    def __call__(
        self, x: Array, z: Array | Callable[[Array], Array], weight: Array | None, center: Array, width: Array, W: Array
    ) -> float:
        """Return 1/2 sum_n w_n |z_n - W' phi(x_n)|^2 and derive it, with the hinges over mu where z follows.

        x (batch, D), z (batch, L) or what gives the best ones for F (batch, L), weight (batch,) or None for ones;
        center (M, D), width (M,) logarithms of gamma, W (M, L). With R = Phi W - Z and T = (w R W') o Phi: d/dc_m =
        2 gamma_m sum_n T_nm (x_n - c_m), d/dlog gamma_m = sum_n T_nm log phi_m(x_n), d/dW = Phi' w R.
        """
        self.features(x, center, width)
        return self.derive(z, weight, center, W)

    def normal(self, z: Array, weight: Array | None) -> tuple[Array, Array]:
        """Return Phi' w Phi (M, M) and Phi' w z (M, L) for the features as they are."""
        if weight is None:
            return self._Phi.T @ self._Phi, self._Phi.T @ z
        root = np.sqrt(weight)[:, None]
        np.multiply(self._Phi, root, out=self._T)
        return self._T.T @ self._T, self._T.T @ (root * z)  # NumPy computes one half of the product of one array

    def derive(self, z: Array | Callable[[Array], Array], weight: Array | None, center: Array, W: Array) -> float:
        """Do the same with the features as they are."""
        np.matmul(self._Phi, W, out=self._R)
        self._R -= z(self._R) if callable(z) else z
        wR = self._R if weight is None else np.multiply(self._R, weight[:, None], out=self._wR)
        np.matmul(wR, W.T, out=self._T)
        self._T *= self._Phi
        np.matmul(self._T.T, self._x, out=self._sums)  # of T x, T |x|^2 and T
        np.multiply(center, self._sums[:, -1:], out=self.center)
        np.subtract(self._sums[:, :-2], self.center, out=self.center)
        self.center *= -2.0 * self._operand[:, -2:-1]
        np.einsum("bm,bm->m", self._T, self._exponent, out=self.width)
        np.matmul(self._Phi.T, wR, out=self.weight)
        return 0.5 * float(np.einsum("bl,bl->", self._R, wR))

    def by_input(self, center: Array, width: Array) -> Array:
        """Return the derivatives (D,) by the logarithms of factors of the inputs, for centres that stay where they are.

        The inputs x (batch, D) are already multiplied by them: sum_n x_nd d/dx_nd = -2 sum_nm gamma_m T_nm x_nd
        (x_nd - c_md). After `derive`.
        """
        gamma, x = np.exp(width), self._x[:, :-2]
        pulled = np.einsum("nd,nd,n->d", x, x, self._T @ gamma) - np.einsum(
            "md,md,m->d", center, self._sums[:, :-2], gamma
        )
        found: Array = -2.0 * pulled
        return found

    def features(self, x: Array, center: Array, width: Array) -> None:
        """Compute Phi and its logarithms: (x, |x|^2, 1) times (2 gamma c, -gamma, -gamma |c|^2) is -gamma |x - c|^2."""
        gamma = np.exp(width)
        self._x, self._exponent, self._Phi, self._T, self._R, self._wR = (array[: len(x)] for array in self._arrays)
        self._x[:, :-2] = x
        self._x[:, -2] = np.einsum("bd,bd->b", x, x)
        self._x[:, -1] = 1.0
        np.multiply(center, (2.0 * gamma)[:, None], out=self._operand[:, :-2])
        self._operand[:, -2] = -gamma
        self._operand[:, -1] = -gamma * np.einsum("md,md->m", center, center)
        np.matmul(self._x, self._operand.T, out=self._exponent)
        np.minimum(self._exponent, self._zeros, out=self._exponent)
        np.exp(self._exponent, out=self._Phi)


@dataclass(frozen=True)
class Solved:
    """The map with the exact weights on one basis, the ridge regression they are from, and the value of J there."""

    mapping: BasisMap
    ridge: Any
    value: float


class Lowering(ABC):
    """One F-step with learned centres, wherever the rows are. follows: whether Z follows F, and the hinges at Z count.

    Nothing raises J, since the basis that it begins with is kept where the new one is no better.
    """

    follows: bool

    @abstractmethod
    def solve(self, basis: Gaussians) -> Solved:
        """Solve for the weights on a basis, for Z as it is, and measure J."""

    @abstractmethod
    def descend(self, begin: Solved) -> BasisMap:
        """Return where the gradient steps lead to, from a basis whose useless centres are `revived`."""

    @abstractmethod
    def follow(self, mapping: BasisMap) -> None:
        """Take the Z-step from F of this map."""

    @abstractmethod
    def back(self, begin: Solved) -> None:
        """Go back to the map that the step began with; Z is as it was then, unless it follows."""

    def lower(self, basis: Gaussians) -> Solved:
        """Take the whole step; return the better of its end and its beginning."""
        begin = self.solve(basis)
        moved = self.descend(begin)
        assert isinstance(moved.basis, Gaussians)
        if np.isfinite(moved.basis.centers).all() and np.isfinite(moved.W).all():
            if self.follows:
                self.follow(moved)
            end = self.solve(moved.basis)
            if end.value < begin.value:
                return end
            self.back(begin)
        if self.follows:
            self.follow(begin.mapping)
        return begin


def middle(basis: Gaussians) -> Array:
    """Return the mean of the centres (D,): distances are taken around it, so that an offset costs no digits."""
    mean: Array = basis.centers.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


def revived(basis: Basis, gram: Array, begin: Gaussians, worst: Callable[[int], Array]) -> Gaussians:
    """Move centres that are of no use, far from all rows or equal to another, to the rows that are fitted worst.

    gram (M, M): of the features. worst(n): inputs of so many rows at most, the worst first.
    """
    assert isinstance(basis, Gaussians)
    squares = np.diag(gram)
    apart = squares[:, None] + squares - 2.0 * gram  # sum_n (phi_m - phi_k)^2
    useless = (squares < DEAD) | (np.tril(apart < DEAD * np.maximum(squares, DEAD), -1)).any(axis=1)
    if not useless.any():
        return basis
    rows = worst(int(useless.sum()))
    centers, gamma = basis.centers.copy(), np.broadcast_to(basis.gamma, basis.size).copy()
    places = np.flatnonzero(useless)[: len(rows)]
    centers[places], gamma[places] = rows, np.max(begin.gamma)
    return Gaussians(centers, gamma)


def descend(
    basis: Gaussians, W: Array, begin: Gaussians, spread: float, ridge: float, steps: int,
    slopes: Callable[[Array, Array, Array], list[Array]],
) -> BasisMap:  # fmt: skip
    """Return basis and weights after stochastic gradient steps on centres, log-widths and weights.

    begin: the first basis of all. spread: of the data, the unit of centres. ridge: on the weights, beside a batch's
    residual. slopes: the `Slopes` of the next batch, with rows around `middle`; they may be changed.
    """
    from ldsvm.solvers.adam import Adam  # it loads numba

    shift = middle(basis)
    logarithm, most = np.log(np.max(begin.gamma)), np.log(RANGE)
    center = basis.centers - shift
    width = np.log(np.broadcast_to(basis.gamma, basis.size)).astype(np.float32)
    weights = W.astype(np.float32, order="C")
    size = float(np.std(weights)) or 1.0
    adam, share = Adam([center, width, weights], [spread, WIDTHS, WEIGHTS * size], RATE, steps), np.float32(ridge)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not kept
        for _ in range(steps):
            found = slopes(center, width, weights)
            found[2] += share * weights
            adam.step(found)
            np.clip(width, logarithm - most, logarithm + most, out=width)
    return BasisMap(Gaussians(center + shift, np.exp(width.astype(np.float64))), weights.astype(np.float64))


def steps_for(steps: int | str, N: int) -> int:
    """Return the gradient steps of the first F-step; "auto" depends on how many rows there are.

    Examples
    --------
    >>> [steps_for("auto", N) for N in (50, 1_500, 80_000)]
    [1000, 1500, 50000]
    """
    return min(max(PASSES * N // BATCH, LEAST), MOST) if isinstance(steps, str) else steps


def batches(N: int, batch: int, steps: int | None, rng: np.random.Generator) -> Iterator[Array]:
    """Yield row numbers for each step, None for no end of them: every row once, in random order, before any again."""
    order: Array = rng.permutation(N)
    at = 0
    for _ in count() if steps is None else range(steps):
        if at + batch > N:
            order, at = rng.permutation(N), 0
        yield order[at : at + batch]
        at += batch
