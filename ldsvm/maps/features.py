"""Maps that are linear in their weights, F(x) = W' phi(x): what linear and RBF maps share.

Rows are blocks: every quantity is a sum or a concatenation over blocks, so that no float64 copy of the N x M features
ever exists.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ldsvm import threads
from ldsvm.maps.base import Evaluation, Family, Map, Regression
from ldsvm.solvers.ridge import Ridge
from ldsvm.typing import Array

T = TypeVar("T")

BLOCK = 1_000_000  # float64 numbers in the temporary copy of a block of rows: 8 MB, near the processor
KEPT = 4 * BLOCK  # features up to which training keeps them in float64
LEAST = 1_000  # rows that are worth an addition of M x M numbers
GROUPS = 16  # of consecutive blocks that are worked on at a time, and so the most threads


def row_blocks(n_rows: int, width: int, numbers: int = BLOCK) -> Iterator[slice]:
    """Consecutive slices of rows of at most ``numbers`` numbers, at least one row each.

    Fewer where ``sklearn.set_config(working_memory=...)`` allows less than these numbers take in float64.
    """
    if (sklearn := sys.modules.get("sklearn")) is not None:  # else nobody has set it
        numbers = min(numbers, int(sklearn.get_config()["working_memory"] * 2**20) // 8)
    size = max(1, numbers // max(1, width))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def by_groups(work: Callable[[list[slice]], T], n_rows: int, width: int, n_threads: int) -> list[T]:
    """Call `work` on groups of consecutive blocks of rows, several at a time, and return its results in order.

    The groups do not depend on the threads, so sums over them are the same for any number. Each thread calls BLAS by
    itself: its own threads would have to be woken for every block, and would hold the cores for a while afterwards.
    """
    every = list(row_blocks(n_rows, width))
    if len(every) < 2:
        return [work(every)] if every else []
    groups = [every[part] for part in threads.blocks(len(every), GROUPS, least=1)]
    with threads.alone(), threads.Blocks(len(groups), n_threads, least=1) as team:
        return [
            result for results in team.map(lambda part: [work(group) for group in groups[part]]) for result in results
        ]


class Basis(ABC):
    """phi: (N, D) -> (N, M)."""

    size: int

    @abstractmethod
    def __call__(self, X: Any, dtype: Any) -> Any:
        """phi(X) in the given precision, all rows at once: callers pass blocks."""

    def keep(self, X: Any, n_threads: int) -> Any:
        """phi(X) (N, M) to be kept during training: float32."""
        Phi = np.empty((X.shape[0], self.size), np.float32)
        self.fill(X, Phi, n_threads)
        return Phi

    def fill(self, X: Any, Phi: Array, n_threads: int, dtype: Any = np.float32) -> None:
        """Write phi(X) to Phi (N, M), by blocks, computed in the given precision."""

        def fill(group: list[slice]) -> None:
            for rows in group:
                Phi[rows] = self(X[rows], dtype)

        by_groups(fill, X.shape[0], max(self.size, X.shape[1]), n_threads)


class BasisMap(Map):
    """F(x) = W' phi(x), W (M, L)."""

    def __init__(self, basis: Basis, W: Array) -> None:
        self.basis, self.W = basis, W

    @property
    def penalty(self) -> float:
        return float(np.einsum("ml,ml->", self.W, self.W))

    @property
    def n_basis(self) -> int:  # type: ignore[override]
        return self.basis.size

    def __call__(self, X: Any) -> Array:
        (out,) = self._apply(X, self.W)
        return out

    def decide(self, X: Any, V: Array, b: Array) -> Array:
        # U = W V' (M, K): one product with the features instead of two
        (out,) = self._apply(X, self.W @ V.T)
        out += b.astype(out.dtype)
        return out

    def both(self, X: Any, V: Array, b: Array) -> tuple[Array, Array]:
        out, F = self._apply(X, self.W @ V.T, self.W)
        out += b.astype(out.dtype)
        return out, F

    def _apply(self, X: Any, *weights: Array) -> list[Array]:
        """phi(X) U for each U (M, K) of the weights."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        every = [np.ascontiguousarray(U, dtype=dtype) for U in weights]
        if sp.issparse(X):
            return [X @ U for U in every]
        outs = [np.empty((X.shape[0], U.shape[1]), dtype) for U in every]
        # Blocks bound the memory. Smaller ones would fit a nearer cache, but wake BLAS threads for too little work:
        # ten times slower on a busy machine, and no faster on one thread.
        for rows in row_blocks(X.shape[0], max(self.basis.size, X.shape[1]), 2_500_000):
            Phi = self.basis(X[rows], dtype)
            for U, out in zip(every, outs, strict=True):
                np.matmul(Phi, U, out=out[rows])
        return outs


class FeatureEvaluation(Evaluation):
    """Maps on one basis, on inputs whose features Phi (N, M) are kept, in their precision: as a prediction would."""

    def __init__(self, Phi: Any, n_threads: int = 1) -> None:
        self.Phi, self.n_threads = Phi, n_threads

    def values(self, mapping: Map) -> Array:
        return self.product(mapping, self.Phi.dtype)

    def product(self, mapping: Map, dtype: Any) -> Array:
        """Phi W (N, L) in float64, computed in the given precision."""
        assert isinstance(mapping, BasisMap)
        W = mapping.W.astype(dtype, copy=False)
        if sp.issparse(self.Phi):
            product: Array = self.Phi @ W
            return product.astype(np.float64, copy=False)
        F = np.empty((self.Phi.shape[0], W.shape[1]))

        def fill(group: list[slice]) -> None:
            for rows in group:
                F[rows] = self.Phi[rows].astype(dtype, copy=False) @ W

        N, M = self.Phi.shape
        by_groups(fill, N, M, self.n_threads)
        return F


class Computed:
    """phi(X) (N, M) in float32 as an array of which only the rows that are asked for are computed, and none are kept.

    precision: of the computation.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, basis: Basis, X: Array, precision: Any = np.float32) -> None:
        self.basis, self.X, self.shape, self.precision = basis, X, (len(X), basis.size), precision

    def __getitem__(self, rows: Any) -> Array:
        features: Array = self.basis(self.X[rows], self.precision).astype(np.float32, copy=False)
        return features


class FeatureSums(FeatureEvaluation):
    """What a weighted ridge regression on features Phi (N, M) needs of their rows."""

    def __init__(self, Phi: Any, weight: Array | None = None, n_threads: int = 1) -> None:
        super().__init__(Phi, n_threads)
        self.weight = weight
        self.root = None if weight is None else np.sqrt(weight)[:, None]

    def values(self, mapping: Map) -> Array:
        """F (N, L) with every product in float64: the objective must see what the ridge solve has gained."""
        return self.product(mapping, np.float64)

    def normal(self, Z: Array, gram: Array | None = None, cross: Array | None = None) -> tuple[Array, Array]:
        """Phi' w Phi (M, M) and Phi' r Z (M, L), r the root of the weights w, in one pass; added to those given."""
        N, M = self.Phi.shape
        gram = np.zeros((M, M)) if gram is None else gram
        cross = np.zeros((M, Z.shape[1])) if cross is None else cross
        if sp.issparse(self.Phi):
            block = self.rows(slice(None))
            return gram + (block.T @ block).toarray(), cross + block.T @ Z
        product = np.empty((M, M))
        with threads.hold(self.n_threads):  # threads of our own would want a sum of M x M each
            for rows in row_blocks(N, M, max(BLOCK, LEAST * M)):
                block = self.rows(rows)
                # NumPy sees one array twice and computes one half. SciPy's in-place dsyrk holds the interpreter, and
                # its BLAS is another one, whose threads and NumPy's would wait for each other on the same cores.
                np.matmul(block.T, block, out=product)
                gram += product
                cross += block.T @ Z[rows]
        return gram, cross

    def cross(self, Z: Array, at: Array | None = None) -> Array:
        """Phi' r Z (M, L), r the root of the weights. at: rows that Z is of, where it is 0 on all others."""

        def add(group: list[slice]) -> Array:
            total = np.zeros((M, Z.shape[1]))
            for rows in group:
                total += self.rows(rows if at is None else at[rows]).T @ Z[rows]
            return total

        M = self.Phi.shape[1]
        total: Array = sum(by_groups(add, len(Z), M, self.n_threads), start=np.zeros((M, Z.shape[1])))
        return total

    def rows(self, rows: slice | Array) -> Any:
        """Rows of the features in float64, scaled by the square root of their weights."""
        block = self.Phi[rows].astype(np.float64, copy=False)
        if self.root is None:
            return block
        return block.multiply(self.root[rows]).tocsr() if sp.issparse(block) else block * self.root[rows]


class FeatureRegression(FeatureSums, Regression):
    """Weighted ridge regression on kept features.

    W solves (Phi' w Phi + (2 lam / mu) I) W = Phi' w Z in float64 (a float32 Gram matrix is not positive definite in
    practice); with fewer rows than features the dual form W = Phi' (Phi Phi' + (2 lam / mu) I)^-1 Z.
    """

    def __init__(self, basis: Basis, Phi: Any, weight: Array | None, lam: float, n_threads: int = 1) -> None:
        N, M = Phi.shape
        if isinstance(Phi, np.ndarray) and N * M <= KEPT:
            Phi = Phi.astype(np.float64)  # the same values, made once: every pass would do it for each block
        super().__init__(Phi, weight, n_threads)
        self.basis, self.lam = basis, lam
        self.dual = N < M
        self.ridge = Ridge(self._outer_gram() if self.dual else self.normal(np.empty((N, 0)))[0], n_threads)

    def fit(self, Z: Array, mu: float, near: Map | None = None) -> Map:
        ridge = 2.0 * self.lam / mu
        Z = Z if self.root is None else Z * self.root
        if self.dual:
            return BasisMap(self.basis, self.cross(self.ridge.solve(Z, ridge)))
        return BasisMap(self.basis, self.ridge.solve(self.cross(Z), ridge))

    def left_out(self, Z: Array, mu: float, rows: Array) -> tuple[Array, Array]:
        return self.values(self.fit(Z, mu))[rows], self._leverages(rows, 2.0 * self.lam / mu)

    def _leverages(self, rows: Array, ridge: float) -> Array:
        """phi' (Phi' w Phi + ridge I)^-1 phi of these rows (n,), times their weights below 1."""
        found = np.empty(len(rows))
        for part in row_blocks(len(rows), min(self.Phi.shape)):
            some = rows[part]
            if self.dual:
                found[part] = self.ridge.solve(self.ridge.gram[:, some], ridge)[some, np.arange(len(some))]
            else:
                block = self.rows(some)
                found[part] = self.ridge.products(block.toarray() if sp.issparse(block) else block, ridge)
        return found if self.weight is None else found * np.minimum(self.weight[rows], 1.0) / self.weight[rows]

    def elsewhere(self, X: Any) -> Evaluation:
        return FeatureEvaluation(self.basis.keep(X, self.n_threads), self.n_threads)

    def _outer_gram(self) -> Array:
        block = self.rows(slice(None))
        product = block @ block.T
        out: Array = product.toarray() if sp.issparse(product) else product
        return out


class FeatureFamily(Family):
    """A family that is linear in its weights, with ridge ``lam``."""

    @abstractmethod
    def basis(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None
    ) -> Basis:
        """The basis for training inputs X."""

    def prepare(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None = None
    ) -> Regression:
        basis = self.basis(X, weight, random_state, n_threads, near)
        assert not isinstance(self.lam, str)
        return FeatureRegression(basis, basis.keep(X, n_threads), weight, self.lam, n_threads)
