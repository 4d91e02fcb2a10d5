"""Predictions of a fitted model for blocks of rows, one block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils import check_array

from ldsvm.blocks.source import BlockError, Rows
from ldsvm.checks import check_values
from ldsvm.typing import Array


def each(model: Any, rows: Rows, function: Callable[[Array], Any]) -> Any:
    """Apply a function of inputs (n, D) to every block and return the answers for all rows, in their order.

    Raises BlockError, naming the block, for rows whose inputs are not those that the fitted model knows.
    """
    return np.concatenate([function(X) for X, _ in _inputs(model, rows)])


def score(model: Any, rows: Rows, function: Callable[[Array], Any]) -> float:
    """Return the share of rows whose labels are those that a function of inputs (n, D) gives."""
    right = total = 0
    for X, y in _inputs(model, rows):
        right += accuracy_score(y, function(X), normalize=False)
        total += len(y)
    return float(right / total)


def _inputs(model: Any, rows: Rows) -> Iterator[tuple[Array, Any]]:
    names = None if rows.steps else rows.columns
    known = getattr(model, "feature_names_in_", None)
    if names is not None and known is not None and names != tuple(known):
        raise BlockError(
            "the rows have different columns from the training rows, or in another order; name them with columns=, or "
            "reorder the table."
        )
    for i, block in enumerate(rows.blocks):
        X, y = rows.read(i)
        if not len(X):
            continue
        try:
            X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False)
            if X.shape[1] != model.n_features_in_:
                raise ValueError(f"has {X.shape[1]} inputs, the training rows have {model.n_features_in_}.")
            check_values(X, names)
        except (TypeError, ValueError) as error:
            raise BlockError(f"{block.name}: {str(error).partition(chr(10))[0]}") from error
        yield X, y
