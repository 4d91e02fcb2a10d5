"""The interface between MAC and a family of maps F.

A `Family` holds hyper-parameters. ``prepare(X)`` does once what the iterations share (centres, features, Gram matrix)
and returns a `Regression`; its ``fit(Z, mu)`` is the F-step and returns a `Map`, which keeps none of the training data
(nonparametric centres and some regressors excepted).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from ldsvm.maps.leave_one_out import Sample
from ldsvm.typing import Array


class Map(ABC):
    """A fitted F: (N, D) -> (N, L)."""

    n_basis: int  # basis functions evaluated per sample

    @property
    @abstractmethod
    def penalty(self) -> float:
        """R(F), the regulariser's value (0 where the family regularises itself)."""

    @abstractmethod
    def __call__(self, X: Any) -> Array:
        """F(X) (N, L), in the precision of X."""

    def decide(self, X: Any, V: Array, b: Array) -> Array:
        """g(F(X)) (N, K) for SVMs V (K, L), b (K,), folded into one product where the family allows."""
        F = self(X)
        return F @ V.T.astype(F.dtype, copy=False) + b.astype(F.dtype, copy=False)

    def both(self, X: Any, V: Array, b: Array) -> tuple[Array, Array]:
        """The same bits as `decide(X, V, b)` and F(X), in less time if they can share the features."""
        return self.decide(X, V, b), self(X)


class Evaluation(ABC):
    """Values of successive maps of one family on fixed inputs, with everything reused that does not change."""

    @abstractmethod
    def values(self, mapping: Map) -> Array:
        """F (N, L) in float64."""


class Follower(Protocol):
    """The coordinates that suit a map best while the SVMs stand still: the Z-step, for any rows, at any time."""

    def __call__(self, rows: Any, F: Array) -> Array:
        """Return the coordinates (n, L) of these rows, an index of them, that minimise the objective given F (n, L)."""

    def hinges(self, Z: Array) -> float:
        """Return sum_nk C_nk hinge of all rows at coordinates Z (N, L)."""


class Regression(Evaluation):
    """The F-step's regression problem on one training set; `values` are those on the training inputs."""

    @abstractmethod
    def fit(self, Z: Array, mu: float, near: Map | None = None) -> Map:
        """argmin_F lam R(F) + mu/2 sum_n w_n |z_n - F(x_n)|^2 for targets Z (N, L).

        near: the map of the last F-step, from which families without a closed solution go on.
        """

    def fit_along(self, Z: Array, mu: float, near: Map, follower: Follower) -> tuple[Map, Array]:
        """Lower the penalised objective over F, from `near`, and return F and its coordinates.

        Those are Z itself, unless a family moves both at once.
        """
        return self.fit(Z, mu, near), Z

    def left_out(self, Z: Array, mu: float, rows: Array) -> tuple[Array, Array] | None:
        """Return what gives the value of each row in the regression of Z (N, L) without this row.

        That is the values (n, L) of the regression with all rows, and their leverages (n,), of one unit of a weight
        above 1. None for families without a closed form. rows: their numbers (n,).
        """
        return None

    @abstractmethod
    def elsewhere(self, X: Any) -> Evaluation:
        """An evaluation on other inputs, e.g. the validation set."""


class Family(ABC):
    """Hyper-parameters of F."""

    #: whether sparse X is accepted, and the largest size of a value in it that the arithmetic can stand
    sparse = False
    largest = 1e150
    #: the ridge, "auto" where `chosen` is to find it; 0 for families that regularise themselves
    lam: float | str = 0.0

    @property
    def automatic(self) -> bool:
        """Whether parameters are left to `chosen`."""
        return isinstance(self.lam, str)

    def chosen(self, sample: Sample, width: float) -> Family:
        """Return the family with numbers for what is "auto": those with the fewest leave-one-out errors.

        sample: some training rows. width: see `width`.
        """
        return self

    def width(self, X: Any, weight: Array | None) -> float:
        """Return gamma where it is a number, else the one that "scale" stands for; 1 for families without widths."""
        return 1.0

    @abstractmethod
    def prepare(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None = None
    ) -> Regression:
        """Everything that does not depend on Z and mu. ``near``: an earlier map whose basis is kept (warm start)."""
