"""Missing and infinite values, counted in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import Rows, absent
from ldsvm.datasets.split import Indices

BLOCK = 2**21  # values looked at together: the temporary arrays stay below 64 MiB


@dataclass(eq=False)
class Flaw:
    """Where values of one kind are: a mask of the rows (N,), and the columns (k,) with the rows that each has it in.

    Only faulty columns are there, in order: a sparse matrix may have more columns than memory has room for.
    """

    rows: NDArray[np.bool_]
    columns: Indices
    counts: Indices

    @classmethod
    def none(cls, n: int) -> Flaw:
        """Return what n rows without any such value have."""
        return cls(np.zeros(n, dtype=bool), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def add(self, rows: Indices, columns: Indices) -> None:
        """Count values at these places (m,)."""
        self.rows[rows] = True
        new, counts = np.unique(columns, return_counts=True)
        self.columns, place = np.unique(np.concatenate([self.columns, new]), return_inverse=True)
        # Weighted counts are float64: exact, since there are fewer than 2**53 rows.
        self.counts = np.bincount(place, np.concatenate([self.counts, counts])).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Flaws:
    """Where values are missing, and where they are infinite."""

    missing: Flaw
    infinite: Flaw


def flaws(rows: Rows) -> Flaws:
    """Find missing and infinite values, in blocks of rows; a text is one column."""
    missing, infinite = Flaw.none(len(rows)), Flaw.none(len(rows))
    if rows.kind == "text":
        gone = np.flatnonzero(absent(rows.X))
        missing.add(gone, np.zeros_like(gone))
        return Flaws(missing, infinite)
    for start, block in blocks(rows.X):
        sparse = hasattr(block, "indptr")
        values = block.data if sparse else block
        if np.isfinite(values).all():
            continue
        for flaw, test in ((missing, np.isnan), (infinite, np.isinf)):
            places = np.nonzero(test(values))
            if sparse:
                (entries,) = places
                places = np.searchsorted(block.indptr, entries, side="right") - 1, block.indices[entries]
            if len(places[0]):
                flaw.add(start + places[0], places[1].astype(np.int64))
    return Flaws(missing, infinite)


def blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """Yield (first row, block) over X (N, D), dense as it is, sparse as a copy in canonical form without zeros."""
    step = step_of(X)
    for start in range(0, X.shape[0], step):
        yield start, block_of(X, slice(start, start + step))


def step_of(X: Any) -> int:
    """Return how many rows make a block: BLOCK values, of sparse rows of average length."""
    rows, columns = X.shape
    return int(max(1, BLOCK * rows // max(X.nnz, 1) if hasattr(X, "indptr") else BLOCK // max(columns, 1)))


def block_of(X: Any, rows: slice | Indices) -> Any:
    """Return rows of X, sparse ones as a copy in canonical form without zeros."""
    if not hasattr(X, "indptr"):
        return X[rows]
    block = X[rows]  # a copy, so that the caller's matrix stays as it is
    block.sum_duplicates()
    block.eliminate_zeros()
    return block
