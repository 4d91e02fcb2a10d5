"""The F-step on shards: sums of features go up, weights come down."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ldsvm.blocks.executors import Team
from ldsvm.maps.features import Basis, BasisMap
from ldsvm.maps.lowering import BATCH, SHORTER, Lowering, Solved, descend, middle, revived
from ldsvm.maps.rbf import Gaussians
from ldsvm.solvers.ridge import Ridge
from ldsvm.typing import Array


class ShardRegression(ABC):
    """Fits maps to the coordinates that the shards hold, and leaves F on the shards."""

    def __init__(self, team: Team, lam: float, n_threads: int) -> None:
        self.team, self.lam, self.n_threads = team, lam, n_threads
        self._basis: Basis | None = None
        self._ridge: Ridge | None = None

    @abstractmethod
    def fit(self, mu: float, near: BasisMap | None, V: Array, b: Array) -> BasisMap:
        """argmin_F lam R(F) + mu/2 sum_n |z_n - F(x_n)|^2, where F and Z move at once over Z too.

        near: the map of the last F-step, None in the first. V (K, L), b (K,): the SVMs, for the best Z.
        """

    @property
    def ridge(self) -> Ridge:
        """The regression's normal equations, on the basis that is in use."""
        assert self._ridge is not None
        return self._ridge

    def go(self, mapping: BasisMap) -> None:
        """Let the shards have this map's basis and its F."""
        self._use(mapping.basis)
        self.team.call("map", mapping.W)

    def _use(self, basis: Basis) -> None:
        if basis is not self._basis:
            self._basis = self._ridge = None  # until all shards have it: a worker may be lost on the way
            self.team.tell("use", basis)
            self._basis = basis

    def solve(self, basis: Basis, mu: float, near: BasisMap | None) -> BasisMap:
        """The exact weights on a basis. near: the map on it whose F = Phi W the shards have, None where there is none.

        With G = Phi' Phi, (G + r I) (W + D) = Phi' Z and G W = Phi' F give (G + r I) D = Phi' (Z - F) - r W, which
        takes the features of the rows that have moved, and of no others.
        """
        self._use(basis)
        ridge = 2.0 * self.lam / mu
        if self._ridge is None or near is None:
            gram, cross = self.team.sum("normal")
            self._ridge = Ridge(gram, self.n_threads)
            W = self._ridge.solve(cross, ridge)
        else:
            W = near.W + self._ridge.solve(self.team.sum("cross") - ridge * near.W, ridge)
        self.team.call("map", W)
        return BasisMap(basis, W)


class Fixed(ShardRegression):
    """One basis; its Gram matrix is summed once."""

    def __init__(self, team: Team, basis: Basis, lam: float, n_threads: int) -> None:
        super().__init__(team, lam, n_threads)
        self.basis = basis

    def fit(self, mu: float, near: BasisMap | None, V: Array, b: Array) -> BasisMap:
        return self.solve(self.basis if near is None else near.basis, mu, near)


class Learned(ShardRegression):
    """Gaussians that move, as `AdaptiveRegression` moves them; a batch is divided among the shards.

    spread: of the data. steps: gradient steps in the first F-step. sizes: rows of the shards. follows: whether Z
    follows F in later ones.
    """

    def __init__(
        self, team: Team, begin: Gaussians, lam: float, n_threads: int, spread: float, steps: int, seed: int,
        sizes: list[int], follows: bool,
    ) -> None:  # fmt: skip
        super().__init__(team, lam, n_threads)
        self.follows = follows
        self.begin, self.spread, self.steps, self.seed, self.sizes = begin, spread, steps, seed, sizes

    def fit(self, mu: float, near: BasisMap | None, V: Array, b: Array) -> BasisMap:
        follows = self.follows and near is not None
        steps = self.steps if near is None or follows else max(1, self.steps // SHORTER)
        basis = self.begin if near is None else near.basis
        assert isinstance(basis, Gaussians)
        return LoweringOnShards(self, mu, near, (V, b), steps, follows).lower(basis).mapping

    def back(self, begin: Solved) -> None:
        """Go to a map whose ridge regression is known."""
        self.go(begin.mapping)
        self._ridge = begin.ridge


class LoweringOnShards(Lowering):
    """`Lowering` on the rows of all shards. near: the map of the last F-step. svms: V (K, L) and b (K,)."""

    def __init__(
        self, rows: Learned, mu: float, near: BasisMap | None, svms: tuple[Array, Array], steps: int, follows: bool
    ) -> None:  # fmt: skip
        self.rows, self.mu, self.near, self.svms, self.steps, self.follows = rows, mu, near, svms, steps, follows
        self.there: BasisMap | None = None  # whose F the shards have

    def solve(self, basis: Gaussians) -> Solved:
        near = self.near if self.near is not None and self.near.basis is basis else None
        self.there = mapping = self.rows.solve(basis, self.mu, near)
        distance, _, _, *hinges = self.rows.team.sum("measure", *self.svms)
        lost = float(sum(hinges[len(self.svms[1]) :]))  # at Z
        value = self.rows.lam * mapping.penalty + 0.5 * self.mu * float(distance) + lost
        return Solved(mapping, self.rows.ridge, value)

    def follow(self, mapping: BasisMap) -> None:
        if mapping is not self.there:
            self.rows.go(mapping)
            self.there = mapping
        self.rows.team.call("z_step", *self.svms, self.mu)

    def back(self, begin: Solved) -> None:
        self.rows.back(begin)
        self.there = begin.mapping

    def descend(self, begin: Solved) -> BasisMap:
        rows = self.rows
        basis = revived(begin.mapping.basis, begin.ridge.gram, rows.begin, self._worst)
        sizes = shared(min(BATCH, sum(rows.sizes)), rows.sizes)
        shift, svms = middle(basis), (*self.svms, self.mu) if self.follows else None
        rows.team.each("descend", [(rows.seed + i, size, shift, svms) for i, size in enumerate(sizes)])
        M, D = basis.centers.shape
        ends = [M * D, M * D + M]

        def slopes(center: Array, width: Array, weights: Array) -> list[Array]:
            parts = np.split(rows.team.sum("slopes", center, width, weights), ends)
            return [parts[0].reshape(M, D), parts[1], parts[2].reshape(M, -1)]

        ridge = 2.0 * rows.lam * sum(sizes) / (self.mu * sum(rows.sizes))
        return descend(basis, begin.mapping.W, rows.begin, rows.spread, ridge, self.steps, slopes)

    def _worst(self, count: int) -> Array:
        """Return the inputs of so many rows, those that are fitted worst first."""
        found = self.rows.team.call("worst", count)
        misses, X = (np.concatenate(parts) for parts in zip(*found, strict=True))
        chosen: Array = X[np.argsort(-misses, kind="stable")[:count]]
        return chosen


def shared(rows: int, sizes: list[int]) -> list[int]:
    """Divide so many rows among shards in proportion to theirs, one at least.

    Examples
    --------
    >>> shared(100, [300, 100])
    [75, 25]
    >>> shared(2, [5, 5, 5])
    [1, 1, 1]
    """
    edges = np.round(np.cumsum([0, *sizes]) * rows / sum(sizes)).astype(int)
    return [max(1, int(size)) for size in np.diff(edges)]
