"""Checks that inputs and results of the feature steps are finite in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.flaws import step_of
from ldsvm.datasets.split import Indices
from ldsvm.datasets.words import listing, row_list

NONE = np.zeros(0, dtype=np.int64)
WIDEST = 2**26  # columns of sparse inputs: every step keeps some float64 for each, 512 MiB apiece


def called(name: str) -> str:
    """Return what the experiment file calls a step of the pipeline."""
    return "dataset.missing=impute" if name == "impute" else f"features.{name}"


def check_texts(X: NDArray[Any], numbers: Indices | None) -> None:
    """Raise `DataError` unless X (N,) are texts; numbers (N,): of the rows in the source, if not 0, 1, …."""
    wrong = np.flatnonzero([not isinstance(text, str) for text in X])
    if len(wrong):
        raise DataError(f"The inputs have no text in {_row_list(wrong, numbers)}; allowed: texts, which may be empty.")


def check_inputs(X: Any, numbers: Indices | None, *, imputes: bool) -> None:
    """Raise `DataError` for infinite values of X (N, D), dense or CSR, for missing ones, and for too large a D.

    imputes: the first step replaces missing values, so they are allowed.
    """
    if issparse(X) and X.shape[1] > WIDEST:
        raise DataError(
            f"The sparse inputs have {X.shape[1]:,} columns; allowed for feature steps: at most {WIDEST:,}."
        )
    rows = _rows(X, np.isinf if imputes else lambda values: ~np.isfinite(values))
    if len(rows):
        what, allowed = ("infinite", "") if imputes else ("missing or infinite", ', and missing ones with "impute"')
        raise DataError(
            f"The inputs have {what} values in {_row_list(rows, numbers)}; allowed: finite numbers{allowed}."
        )


def check_fitted(name: str, step: Any) -> None:
    """Raise `DataError` for a fitted step whose range of a column is beyond float32: it would make zeros of it."""
    wide = np.flatnonzero(~np.isfinite(getattr(step, "data_range_", np.zeros(0))))
    if len(wide):
        raise DataError(
            f"{called(name)}: the range of the training values is beyond 3.4e38, the range of float32, in "
            f"{listing('column', wide)}; allowed: columns of a smaller range."
        )


def check_output(name: str, X: Any, numbers: Indices | None) -> None:
    """Raise `DataError` unless what a step made, (N, L) dense or sparse, is finite as float32; texts pass."""
    rows = _rows(X, lambda values: ~np.isfinite(values.astype(np.float32, copy=False))) if X.ndim == 2 else NONE
    if len(rows) and len(gaps := _rows(X, np.isnan)):
        raise DataError(
            f"{called(name)}: the results are not numbers (NaN) in {_row_list(gaps, numbers)}; allowed: numbers."
        )
    if len(rows):
        raise DataError(
            f"{called(name)}: the results are beyond ±3.4e38, the range of float32, in "
            f"{_row_list(rows, numbers)}; allowed: smaller values."
        )


def _row_list(rows: Indices, numbers: Indices | None) -> str:
    return row_list(rows if numbers is None else numbers[rows])


def _rows(X: Any, wrong: Any) -> NDArray[np.int64]:
    """Return the numbers of the rows in which a stored value is wrong, looked at in blocks of rows."""
    if issparse(X):
        X = X.tocsr()
        return np.unique(np.searchsorted(X.indptr, np.flatnonzero(wrong(X.data)), side="right") - 1)
    step = step_of(X)
    found = [np.flatnonzero(wrong(X[i : i + step]).any(axis=1)) + i for i in range(0, len(X), step)]
    return np.concatenate([NONE, *found])
