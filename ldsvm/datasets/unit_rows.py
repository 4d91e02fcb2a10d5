"""A step of our own for rows: Euclidean length 1, whatever the size of their values.

It is stored with a model, so it is an ordinary scikit-learn transformer; skops asks to trust it by name. The module
imports what is heavy: `ldsvm.datasets.features` imports it only when a step is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import validate_data

from ldsvm.datasets.flaws import step_of

KINDS = (np.float64, np.float32)


class UnitRows(Normalizer):  # type: ignore[misc]
    """Rows divided by their Euclidean length; rows of zeros stay as they are.

    scikit-learn's `Normalizer` squares in the precision of its inputs: in float32, rows above 1e19 become zeros, and
    it leaves rows shorter than 1e-6 alone. Here lengths are float64, in blocks of rows.

    Examples
    --------
    >>> UnitRows().fit_transform(np.float32([[3e30, 4e30], [0, 5e-20], [0, 0]])).round(6).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 1.0], [0.0, 0.0]]
    """

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """Return X (N, D), dense or sparse, with rows of length 1 or 0; ``copy`` means nothing, it is always one."""
        X = validate_data(self, X, accept_sparse="csr", dtype=KINDS, copy=True, reset=False)
        if issparse(X):
            lengths = np.diff(X.indptr)
            values = X.data.astype(np.float64)
            X.data = (values / np.repeat(_divisors(_sums(values**2, X.indptr)), lengths)).astype(X.dtype)
            return X
        step = step_of(X)
        for start in range(0, len(X), step):
            block = X[start : start + step].astype(np.float64)
            X[start : start + step] = block / _divisors(np.einsum("ij,ij->i", block, block))[:, None]
        return X


def _sums(values: NDArray[np.float64], indptr: NDArray[Any]) -> NDArray[np.float64]:
    """Return the sum of the stored values of each row (N,)."""
    sums, starts = np.zeros(len(indptr) - 1), indptr[:-1]
    some = np.diff(indptr) > 0
    if some.any():
        sums[some] = np.add.reduceat(values, starts[some])
    return sums


def _divisors(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.sqrt(squares)
    return np.where(lengths > 0, lengths, 1.0)
