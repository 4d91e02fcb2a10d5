"""What the estimator asks of its inputs, each failure one sentence: the thing, the value, what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _get_feature_names, validate_data

from ldsvm.typing import Array


def check_X(estimator: Any, X: Any, *, sparse: bool, reset: bool) -> Any:
    """X (N, D) as float32 or float64, dense or CSR, finite; learns or checks the number and names of features."""
    if sp.issparse(X) and not sparse:
        raise TypeError(
            f"Sparse data was passed for X, but map={estimator.map!r} needs dense data: use X.toarray(), a reduction "
            "such as sklearn.decomposition.TruncatedSVD before it, or map='linear'."
        )
    names = _get_feature_names(X)
    X = validate_data(
        estimator, X, accept_sparse="csr" if sparse else False, dtype=[np.float64, np.float32],
        ensure_all_finite=False, reset=reset,
    )  # fmt: skip
    check_finite(X, names)
    return X


def check_finite(X: Any, names: Any = None) -> None:
    """Raise ValueError naming the first column of X with NaN or infinity."""
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a temporary settles the usual case
        return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    columns = X.indices[bad] if sp.issparse(X) else np.flatnonzero(bad.any(axis=0))
    column = int(columns.min())
    what = "NaN" if np.isnan(X[:, [column]].toarray() if sp.issparse(X) else X[:, column]).any() else "infinity (inf)"
    name = f"{column} ({names[column]!r})" if names is not None else str(column)
    raise ValueError(f"Input X contains {what} in column {name}; every value must be a finite number.")


def check_weight(sample_weight: Any, n_rows: int) -> Array | None:
    """Sample weights (N,) in float64, or None when all are equal to one."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"sample_weight: Sample weights must be 1D array or scalar, got shape {weight.shape}.")
    if weight.shape[0] != n_rows:
        raise ValueError(f"sample_weight has {weight.shape[0]} values but X has {n_rows} rows; they must be equal.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        raise ValueError(f"sample_weight[{bad}] is {weight[bad]}; every weight must be finite and not negative.")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; at least one weight must be positive.")
    return None if np.all(weight == 1.0) else weight


def check_classes(classes: Any, n_rows: int) -> None:
    """Raise ValueError unless there are two or more classes."""
    if len(classes) < 2:
        raise ValueError(
            f"y contains one class only, {classes[0]!r}, in {n_rows} rows with positive weight; a classifier needs at "
            "least two classes."
        )
