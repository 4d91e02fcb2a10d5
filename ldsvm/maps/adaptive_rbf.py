"""Gaussian basis functions whose centres and widths are learned: a step beyond the paper, which fixes them.

The F-step's objective with the weights eliminated (variable projection), for centres c_m and widths gamma_m,

    J(c, gamma) = min_W  lam |W|^2 + mu/2 sum_n w_n |z_n - W' phi(x_n)|^2,   phi_m(x) = exp(-gamma_m |x - c_m|^2),

is lowered by stochastic gradient steps on centres, widths and weights over small batches of rows; then the weights are
solved for exactly, on all rows, and the centres are kept only if J has fallen. So a whole F-step never raises the
penalised objective, as every other step of MAC, and it costs a few passes over the rows instead of one Gram matrix for
every step of the centres.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from ldsvm import threads
from ldsvm.maps.base import Evaluation, Family, Map, Regression
from ldsvm.maps.features import BasisMap, by_groups, row_blocks
from ldsvm.maps.rbf import RBF, Gaussians
from ldsvm.solvers.adam import Adam
from ldsvm.solvers.ridge import Ridge
from ldsvm.typing import Array

BATCH = 100  # rows of a gradient step
RATE = 0.02  # of the first step, in units of the data's spread; it falls to 0 along half a cosine
WIDTHS = 0.1  # share of that rate for log-widths: learned faster, they fit the training rows only
WEIGHTS = 3.0  # the same for the weights, in units of theirs: they follow the centres, as if solved for
SHORTER = 5  # F-steps after the first take so many times fewer steps: they begin where the last one ended
SOME = 10_000  # rows that tell the spread of the data
RANGE = 20.0  # a width may become so many times smaller or larger than the first
DEAD = 1e-6  # sum of a basis function's squares over the rows, and of a difference of two, below which one is of no use


def gradient(
    x: Array, z: Array, weight: Array | None, center: Array, width: Array, W: Array
) -> tuple[float, Array, Array, Array]:
    """Half the squared residual of a batch and its derivatives by centres, log-widths and weights.

    x (B, D), z (B, L), weight (B,) or None for ones; center (M, D), width (M,) logarithms of gamma, W (M, L). Returns
    1/2 sum_n w_n |z_n - W' phi(x_n)|^2, and arrays like center, width and W.

    With R = Phi W - Z and T = (w R W') o Phi: d/dc_m = 2 gamma_m sum_n T_nm (x_n - c_m), d/dlog gamma_m = sum_n T_nm
    log phi_m(x_n), d/dW = Phi' w R.
    """
    gamma = np.exp(width)
    scaled = center * gamma[:, None]
    exponent = x @ (2.0 * scaled.T)
    exponent -= np.einsum("bd,bd->b", x, x)[:, None] * gamma
    exponent -= np.einsum("md,md->m", scaled, center)
    np.minimum(exponent, 0.0, out=exponent)
    Phi = np.exp(exponent)
    R = Phi @ W
    R -= z
    wR = R if weight is None else R * weight[:, None]
    T = wR @ W.T
    T *= Phi
    by_center = T.T @ x
    by_center -= T.sum(axis=0)[:, None] * center
    by_center *= 2.0 * gamma[:, None]
    by_width = np.einsum("bm,bm->m", T, exponent)
    return 0.5 * float(np.einsum("bl,bl->", R, wR)), by_center, by_width, Phi.T @ wR


@dataclass(frozen=True)
class _Solved:
    """A basis with its exact weights and the value of J."""

    basis: Gaussians
    W: Array
    value: float


class AdaptiveEvaluation(Evaluation):
    """Maps whose bases differ, on fixed inputs: features are computed anew, block by block, as for a prediction."""

    def __init__(self, X: Array, n_threads: int) -> None:
        self.X, self.n_threads = X, n_threads

    def values(self, mapping: Map) -> Array:
        return self._values(mapping, np.float32)

    def _values(self, mapping: Map, dtype: Any) -> Array:
        """F (N, L) in float64, with the product of features and weights in the given precision."""
        assert isinstance(mapping, BasisMap)
        W = mapping.W.astype(dtype)
        F = np.empty((len(self.X), W.shape[1]))

        def fill(group: list[slice]) -> None:
            for rows in group:
                F[rows] = mapping.basis(self.X[rows], np.float32).astype(dtype, copy=False) @ W

        by_groups(fill, len(self.X), mapping.basis.size, self.n_threads)
        return F


class AdaptiveRegression(AdaptiveEvaluation, Regression):
    """The F-step on one training set; nothing of N x M numbers is kept between or during steps.

    begin: the basis of the first F-step. steps: gradient steps in it. seed: of the order of the rows.
    """

    def __init__(
        self, X: Array, weight: Array | None, begin: Gaussians, lam: float, steps: int, seed: int, n_threads: int
    ) -> None:
        super().__init__(X, n_threads)
        self.weight, self.begin, self.lam, self.steps, self.seed = weight, begin, lam, steps, seed
        some = X[:: max(1, len(X) // SOME)].astype(np.float64)
        self.spread = float(np.sqrt(np.mean(np.var(some, axis=0)))) or 1.0
        self._ridge: tuple[Gaussians, Ridge] | None = None  # of the basis that was kept last
        self._first: tuple[Array, float, BasisMap] | None = None

    def fit(self, Z: Array, mu: float, near: Map | None = None) -> Map:
        """Lower J from the basis of `near`, or from the first one, and return the map with the exact weights.

        The first F-step of several fits from the same coordinates is the same, so it is done once (`ldsvm.fit_path`).
        """
        if isinstance(near, BasisMap) and isinstance(near.basis, Gaussians):
            return self._lower(near.basis, Z, mu, max(1, self.steps // SHORTER))
        if self._first is None or self._first[0] is not Z or self._first[1] != mu:
            self._first = Z, mu, self._lower(self.begin, Z, mu, self.steps)
        return self._first[2]

    def values(self, mapping: Map) -> Array:
        """F (N, L) with the last product in float64: the objective must see what the ridge solve has gained."""
        return self._values(mapping, np.float64)

    def elsewhere(self, X: Any) -> Evaluation:
        return AdaptiveEvaluation(X, self.n_threads)

    def _lower(self, basis: Gaussians, Z: Array, mu: float, steps: int) -> BasisMap:
        old = self._solved(basis, Z, mu)
        ridge = self._ridge
        moved = self._descend(self._revived(old, Z), old.W, Z, mu, steps)
        if np.isfinite(moved.centers).all():
            new = self._solved(moved, Z, mu)
            if new.value < old.value:
                return BasisMap(new.basis, new.W)
        self._ridge = ridge
        return BasisMap(old.basis, old.W)

    def _solved(self, basis: Gaussians, Z: Array, mu: float) -> _Solved:
        """Solve for the weights on this basis, and measure J by its definition, however rounding treats the weights."""
        known = self._ridge is not None and self._ridge[0] is basis
        gram, cross = self._sums(basis, Z, with_gram=not known)
        if not known:
            self._ridge = basis, Ridge(gram, self.n_threads)
        assert self._ridge is not None
        W = self._ridge[1].solve(cross, 2.0 * self.lam / mu)
        rows = self._misses(BasisMap(basis, W), Z)
        whole = float(rows.sum() if self.weight is None else self.weight @ rows)
        return _Solved(basis, W, self.lam * float(np.einsum("ml,ml->", W, W)) + 0.5 * mu * whole)

    def _misses(self, mapping: BasisMap, Z: Array) -> Array:
        """|z_n - F(x_n)|^2 of every row (N,)."""
        R = self._values(mapping, np.float64)
        R -= Z
        misses: Array = np.einsum("nl,nl->n", R, R)
        return misses

    def _sums(self, basis: Gaussians, Z: Array, *, with_gram: bool) -> tuple[Array, Array]:
        """Phi' w Phi (M, M), where it is wanted, and Phi' w Z (M, L), in float64 from float32 features."""
        gram, cross = (
            np.zeros((basis.size,) * 2 if with_gram else (0, 0), order="F"),
            np.zeros((basis.size, Z.shape[1])),
        )
        with threads.limit(self.n_threads):
            for rows in row_blocks(len(self.X), basis.size):
                Phi = basis(self.X[rows], np.float32).astype(np.float64)
                if self.weight is None:
                    cross += Phi.T @ Z[rows]
                else:
                    cross += Phi.T @ (Z[rows] * self.weight[rows, None])
                    Phi *= np.sqrt(self.weight[rows, None])
                if with_gram:
                    gram = dsyrk(1.0, Phi.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
        gram += np.tril(gram, -1).T
        return gram, cross

    def _revived(self, old: _Solved, Z: Array) -> Gaussians:
        """Move centres that are of no use, far from all rows or equal to another, to the rows that are fitted worst."""
        assert self._ridge is not None
        gram = self._ridge[1].gram
        squares = np.diag(gram)
        apart = squares[:, None] + squares - 2.0 * gram  # sum_n (phi_m - phi_k)^2
        useless = (squares < DEAD) | (np.tril(apart < DEAD * np.maximum(squares, DEAD), -1)).any(axis=1)
        if not useless.any():
            return old.basis
        misses = self._misses(BasisMap(old.basis, old.W), Z)
        worst = np.argsort(-misses, kind="stable")[: np.count_nonzero(useless)]
        centers, gamma = old.basis.centers.copy(), np.broadcast_to(old.basis.gamma, old.basis.size).copy()
        places = np.flatnonzero(useless)[: len(worst)]
        centers[places], gamma[places] = self.X[worst], np.max(self.begin.gamma)
        return Gaussians(centers, gamma)

    def _descend(self, basis: Gaussians, W: Array, Z: Array, mu: float, steps: int) -> Gaussians:
        """Return the basis after stochastic gradient steps on centres, log-widths and weights from the given ones."""
        N, shift = len(self.X), basis.centers.mean(axis=0, dtype=np.float64).astype(np.float32)
        first = np.log(float(np.max(self.begin.gamma)))
        center = basis.centers - shift  # distances around a mean: an offset of the data costs no digits
        width = np.log(np.broadcast_to(basis.gamma, basis.size)).astype(np.float32)
        weights = W.astype(np.float32)
        batch = min(BATCH, N)
        size = float(np.std(weights)) or 1.0
        adam = Adam([center, width, weights], [self.spread, WIDTHS, WEIGHTS * size], RATE, steps)
        ridge, target = 2.0 * self.lam * batch / (mu * N), Z.astype(np.float32)
        rng = np.random.default_rng(self.seed)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not kept
            for rows in _batches(N, batch, steps, rng):
                x = self.X[rows].astype(np.float32, copy=False) - shift
                share = None if self.weight is None else self.weight[rows].astype(np.float32)
                _, by_center, by_width, by_weight = gradient(x, target[rows], share, center, width, weights)
                by_weight += ridge * weights
                adam.step([by_center, by_width, by_weight])
                np.clip(width, first - np.log(RANGE), first + np.log(RANGE), out=width)
        return Gaussians(center + shift, np.exp(width.astype(np.float64)))


def _batches(N: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield row numbers for each step: every row once, in random order, before any comes again."""
    order: Array = rng.permutation(N)
    at = 0
    for _ in range(steps):
        if at + batch > N:
            order, at = rng.permutation(N), 0
        yield order[at : at + batch]
        at += batch


class AdaptiveRBF(Family):
    """Gaussian RBF networks with R(F) = |W|^2 that learn centres and widths, from those of `RBF`.

    steps : gradient steps in the first F-step; later ones take a fifth of them.
    """

    largest = RBF.largest

    def __init__(
        self, n_basis: int | None, centers: str, gamma: float | str, lam: float, steps: int, asked: bool = True
    ) -> None:
        self.begin, self.lam, self.steps = RBF(n_basis, centers, gamma, lam, asked), lam, steps

    def prepare(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None = None
    ) -> Regression:
        basis = self.begin.basis(X, weight, random_state, n_threads, near)
        assert isinstance(basis, Gaussians)
        seed = random_state.randint(2**31 - 1)
        return AdaptiveRegression(X, weight, basis, self.lam, self.steps, seed, n_threads)
