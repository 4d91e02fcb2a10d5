"""Columns that give the label away: each of their values, or of a few ranges of them, goes with one label only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import Rows
from ldsvm.datasets.labels import coded
from ldsvm.datasets.validation import Finding, named

LEAST = 5  # rows of each class, and of each value on average: fewer may agree by chance


def leaks(rows: Rows) -> list[Finding]:
    """Return a warning on the columns of a table, or of dense inputs, that alone determine the label y (N,).

    Examples
    --------
    >>> y = np.array([0, 1] * 10)
    >>> leaks(Rows(np.column_stack([y * 3, np.arange(20) % 7]).astype(np.float32), y, ("paid", "day")))[0].text
    "column 'paid' alone determines the label: list it in dataset.drop unless it is known before the label is."
    """
    if rows.kind not in ("dense", "table"):
        return []
    _, codes = coded(rows.y)
    found = [column for column in range(rows.X.shape[1]) if determines(rows.X[:, column], codes)]
    several = len(found) > 1
    text = f"{named(rows, np.array(found, dtype=np.int64))} alone {'determine' if several else 'determines'} the label"
    rule = "list them in dataset.drop unless they are" if several else "list it in dataset.drop unless it is"
    return [Finding("warning", f"{text}: {rule} known before the label is.")] if found else []


def determines(x: NDArray[Any], codes: NDArray[np.intp]) -> bool:
    """Return whether values x (N,), missing ones aside, determine the class of each row, by value or by range."""
    known = ~np.isnan(x)
    x, codes = x[known], codes[known]
    classes, counts = np.unique(codes, return_counts=True)
    if len(classes) < 2 or counts.min() < LEAST:
        return False
    order = np.lexsort((codes, x))
    x, codes = x[order], codes[order]
    new_value, new_class = np.diff(x) != 0, np.diff(codes) != 0
    if (new_class & ~new_value).any():  # one value with two labels
        return False
    return bool(LEAST * (new_value.sum() + 1) <= len(x) or new_class.sum() == len(classes) - 1)
