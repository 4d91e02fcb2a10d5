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


@dataclass(frozen=True, eq=False)
class Flaws:
    """Which rows (N,) have a value that is missing or infinite, and how many rows each column (D,) has it in."""

    missing_rows: NDArray[np.bool_]
    missing: Indices
    infinite_rows: NDArray[np.bool_]
    infinite: Indices


def flaws(rows: Rows) -> Flaws:
    """Count missing and infinite values, in blocks of rows; a text is one column."""
    n, D = len(rows), rows.n_features or 1
    if rows.kind == "text":
        gone = absent(rows.X)
        return Flaws(gone, np.array([gone.sum()]), np.zeros(n, dtype=bool), np.zeros(1, dtype=np.int64))
    found = [(np.zeros(n, dtype=bool), np.zeros(D, dtype=np.int64)) for _ in range(2)]
    for start, block in blocks(rows.X):
        sparse = hasattr(block, "indptr")
        values = block.data if sparse else block
        if np.isfinite(values).all():
            continue
        for (flagged, counts), test in zip(found, (np.isnan, np.isinf), strict=True):
            places = np.nonzero(test(values))
            if sparse:
                (entries,) = places
                places = np.searchsorted(block.indptr, entries, side="right") - 1, block.indices[entries]
            flagged[start + places[0]] = True
            counts += np.bincount(places[1], minlength=D)
    return Flaws(*found[0], *found[1])


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
