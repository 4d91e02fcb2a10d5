"""Columns whose values are large beside the differences between them: float32 keeps too few digits of these."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError

# The step from one float32 to the next, as a part of the column's range: from here on it is refused, or told.
COARSE, FINE = 2.0**-10, 2.0**-16
SAME = 1e-12  # a range that is smaller, beside the values, is float64's own rounding, unless these are whole numbers
WHOLE = 2.0**53  # up to here float64 holds whole numbers without rounding


def check(X: NDArray[np.float32], exact: Callable[[int], NDArray[Any]], named: Callable[[int], str]) -> None:
    """Refuse columns of X (N, D) in which float32 cannot tell the values apart, and warn where it hardly can.

    A column of whole numbers that float32 holds is always right. exact: returns the values (N,) before they became
    float32. named: returns file and column for a message. Raises `DataError`.

    Examples
    --------
    >>> seconds = 1.7e9 + np.arange(60.0)
    >>> check(np.float32(seconds[:, None]), lambda _: seconds, lambda _: "a.csv: column 't'")
    Traceback (most recent call last):
    ...
    ldsvm.datasets.dataset.DataError: a.csv: column 't' has values that are too close together for float32, whose \
steps are 128 at this size; subtract its smallest value from all, or leave the column out.
    """
    if not len(X):
        return
    low, high = (np.asarray(f.reduce(X, axis=0), np.float64) for f in (np.fmin, np.fmax))
    steps = np.spacing(np.maximum(abs(low), abs(high)).astype(np.float32)).astype(np.float64)
    for column in np.flatnonzero(2 * steps > FINE * (high - low)):
        values = np.asarray(exact(int(column)), np.float64)
        spread = np.fmax.reduce(values) - np.fmin.reduce(values)
        there = ~np.isnan(values)
        largest = abs(values[there]).max(initial=0)
        whole = largest <= WHOLE and (values == np.rint(values))[there].all()
        if spread <= (0 if whole else SAME * largest) or (values == X[:, column])[there].all():
            continue
        step = steps[column]
        start, rule = f"{named(int(column))} has values that", "subtract its smallest value from all"
        if step > COARSE * spread:
            raise DataError(
                f"{start} are too close together for float32, whose steps are {step:.3g} at this size; {rule}, or "
                "leave the column out."
            )
        if step > FINE * spread:
            warnings.warn(
                f"{start} float32 rounds to steps of {step:.3g} in a range of {spread:.3g}; {rule} to keep the digits.",
                UserWarning,
                stacklevel=2,
            )
