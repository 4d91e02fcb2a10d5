"""Gaussian basis functions whose centres and widths are learned, on one array of rows; the step is `Lowering`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ldsvm import threads
from ldsvm.maps.base import Evaluation, Family, Follower, Map, Regression
from ldsvm.maps.features import BasisMap, Computed, FeatureEvaluation, FeatureRegression
from ldsvm.maps.leave_one_out import WIDTHS, Sample
from ldsvm.maps.lowering import (
    BATCH,
    SHORTER,
    Lowering,
    Slopes,
    Solved,
    batches,
    descend,
    middle,
    revived,
    steps_for,
)
from ldsvm.maps.rbf import RBF, Gaussians
from ldsvm.maps.variable_projection import ROWS, descend_on_all
from ldsvm.typing import Array

SOME = 10_000  # rows that tell the spread of the data
NARROW = tuple(width for width in WIDTHS if width >= 1.0)  # wide functions are steep to part: the descent gets stuck


class AdaptiveEvaluation(Evaluation):
    """Maps whose bases differ, on fixed inputs."""

    def __init__(self, X: Array, n_threads: int) -> None:
        self.X, self.n_threads = X, n_threads

    def values(self, mapping: Map) -> Array:
        return self._values(mapping, np.float32)

    def _values(self, mapping: Map, dtype: Any) -> Array:
        assert isinstance(mapping, BasisMap)
        return FeatureEvaluation(Computed(mapping.basis, self.X), self.n_threads).product(mapping, dtype)


class AdaptiveRegression(AdaptiveEvaluation, Regression):
    """The F-step on one training set; nothing of N x M numbers is kept between or during steps.

    begin: the basis of the first F-step. steps: gradient steps in it, a fifth of them in later ones; None for L-BFGS on
    all rows, and for later ones that only solve for the weights. seed: of the order of the rows. follows: whether Z
    follows F in later ones.
    """

    def __init__(
        self, X: Array, weight: Array | None, begin: Gaussians, lam: float, steps: int | None, seed: int,
        n_threads: int, follows: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(X, n_threads)
        self.weight, self.begin, self.lam, self.steps, self.seed = weight, begin, lam, steps, seed
        self.follows = follows
        some = X[:: max(1, len(X) // SOME)].astype(np.float64)
        self.spread = float(np.sqrt(np.mean(np.var(some, axis=0)))) or 1.0
        self._last: FeatureRegression | None = None  # on the basis that was kept, with its Gram matrix
        self._first: tuple[Array, float, BasisMap] | None = None

    def fit(self, Z: Array, mu: float, near: Map | None = None) -> Map:
        """Lower J from the basis of `near`, or from the first one, and return the map with the exact weights.

        The first F-step of several fits from the same coordinates is the same, so it is done once (`ldsvm.fit_path`).
        """
        if isinstance(near, BasisMap) and isinstance(near.basis, Gaussians):
            if self.steps is None and near.basis is not self.begin:  # a warm start begins with that of the earlier fit
                return self.on(near.basis).fit(Z, mu)
            steps = None if self.steps is None else max(1, self.steps // SHORTER)
            return self._lower(near.basis, LoweringInMemory(self, Z, mu, steps))
        if self._first is None or self._first[0] is not Z or self._first[1] != mu:
            self._first = Z, mu, self._lower(self.begin, LoweringInMemory(self, Z, mu, self.steps))
        return self._first[2]

    def fit_along(self, Z: Array, mu: float, near: Map, follower: Follower) -> tuple[Map, Array]:
        if not self.follows:
            return super().fit_along(Z, mu, near, follower)
        assert isinstance(near, BasisMap) and isinstance(near.basis, Gaussians)
        step = LoweringInMemory(self, Z, mu, self.steps, follower)
        return self._lower(near.basis, step), step.Z

    def values(self, mapping: Map) -> Array:
        """F (N, L) with the last product in float64: the objective must see what the ridge solve has gained."""
        return self._values(mapping, np.float64)

    def elsewhere(self, X: Any) -> Evaluation:
        return AdaptiveEvaluation(X, self.n_threads)

    def _lower(self, basis: Gaussians, step: LoweringInMemory) -> BasisMap:
        found = step.lower(basis)
        self._last = found.ridge
        return found.mapping

    def on(self, basis: Gaussians) -> FeatureRegression:
        """Return the ridge regression on a basis, that of the last F-step where it is the same one."""
        if self._last is not None and self._last.basis is basis:
            return self._last
        with threads.limit(self.n_threads):  # for the Gram matrix
            return FeatureRegression(basis, Computed(basis, self.X), self.weight, self.lam, self.n_threads)


class LoweringInMemory(Lowering):
    """`Lowering` on one array of rows. Z: the coordinates, which change where `follower` gives new ones."""

    def __init__(
        self, rows: AdaptiveRegression, Z: Array, mu: float, steps: int | None, follower: Follower | None = None
    ) -> None:  # fmt: skip
        self.rows, self.Z, self.mu, self.steps, self.follower = rows, Z, mu, steps, follower
        self.follows = follower is not None

    def solve(self, basis: Gaussians) -> Solved:
        """J is measured by its definition, however rounding treats the weights."""
        rows = self.rows
        ridge = rows.on(basis)
        mapping = ridge.fit(self.Z, self.mu)
        assert isinstance(mapping, BasisMap)
        misses = self._misses(mapping)
        whole = float(misses.sum() if rows.weight is None else rows.weight @ misses)
        hinges = 0.0 if self.follower is None else self.follower.hinges(self.Z)
        return Solved(mapping, ridge, rows.lam * mapping.penalty + 0.5 * self.mu * whole + hinges)

    def follow(self, mapping: BasisMap) -> None:
        assert self.follower is not None
        self.Z = self.follower(slice(None), self.rows.values(mapping))

    def back(self, begin: Solved) -> None:
        """Nothing has changed yet."""

    def descend(self, begin: Solved) -> BasisMap:
        rows, Z = self.rows, self.Z
        basis = self.revive(begin)
        if self.steps is None:
            ridge = 2.0 * rows.lam / self.mu
            return descend_on_all(basis, rows.begin, rows.X, Z, rows.weight, rows.spread, ridge, rows.n_threads)
        N, shift = len(rows.X), middle(basis)
        batch, target = min(BATCH, N), Z.astype(np.float32)
        found = Slopes(batch, basis.size, rows.X.shape[1], Z.shape[1])
        order = batches(N, batch, self.steps, np.random.default_rng(rows.seed))

        def slopes(center: Array, width: Array, weights: Array) -> list[Array]:
            some = next(order)
            x = rows.X[some].astype(np.float32, copy=False) - shift
            share = None if rows.weight is None else rows.weight[some].astype(np.float32)
            z = target[some] if self.follower is None else partial(self.follower, some)
            found(x, z, share, center, width, weights)
            return [found.center, found.width, found.weight]

        ridge = 2.0 * rows.lam * batch / (self.mu * N)
        return descend(basis, begin.mapping.W, rows.begin, rows.spread, ridge, self.steps, slopes)

    def revive(self, begin: Solved) -> Gaussians:
        """Return the basis with its useless centres where rows are fitted worst."""

        def worst(count: int) -> Array:
            found: Array = self.rows.X[np.argsort(-self._misses(begin.mapping), kind="stable")[:count]]
            return found

        return revived(begin.mapping.basis, begin.ridge.ridge.gram, self.rows.begin, worst)

    def _misses(self, mapping: BasisMap) -> Array:
        """|z_n - F(x_n)|^2 of every row (N,)."""
        R = self.rows.values(mapping)
        R -= self.Z
        misses: Array = np.einsum("nl,nl->n", R, R)
        return misses


class AdaptiveRBF(Family):
    """Gaussian RBF networks with R(F) = |W|^2 that learn centres and widths, from those of `RBF`.

    steps : gradient steps in the first F-step; "auto" for L-BFGS, or where rows abound for as many as they want.
    follows : whether Z follows F in later ones, which take as many steps then, else a fifth of them.
    """

    largest = RBF.largest

    def __init__(
        self,
        n_basis: int | None,
        centers: Any,
        gamma: float | str,
        lam: float | str,
        steps: int | str,
        follows: bool = False,
        asked: bool = True,
    ) -> None:
        self.begin, self.lam, self.steps = RBF(n_basis, centers, gamma, lam, asked), lam, steps
        self.follows = follows

    @property
    def automatic(self) -> bool:
        return self.begin.automatic

    def chosen(self, sample: Sample, width: float) -> AdaptiveRBF:
        at = self.begin.chosen(sample, width, NARROW)
        return AdaptiveRBF(at.n_basis, at.centers, at.gamma, at.lam, self.steps, self.follows, at.asked)

    def width(self, X: Any, weight: Array | None) -> float:
        return self.begin.width(X, weight)

    def prepare(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None = None
    ) -> Regression:
        basis = self.begin.basis(X, weight, random_state, n_threads, near)
        assert isinstance(basis, Gaussians)
        seed = random_state.randint(2**31 - 1)
        at_once = self.steps == "auto" and len(X) <= ROWS and not self.follows
        steps = None if at_once else steps_for(self.steps, len(X))
        assert not isinstance(self.lam, str)
        return AdaptiveRegression(X, weight, basis, self.lam, steps, seed, n_threads, self.follows)
