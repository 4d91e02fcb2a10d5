"""Other readings of digit labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldsvm.datasets.dataset import DataError

HOW = ("original", "parity")


def relabel(y: ArrayLike, how: str) -> NDArray[np.int64]:
    """Return the digit labels y (N,) unchanged (``original``) or as 0 for even and 1 for odd (``parity``).

    Raises `DataError` for another ``how`` and for labels that are not integers.

    Examples
    --------
    >>> relabel([3, 8, 5, 0], "parity").tolist()
    [1, 0, 1, 0]
    """
    digits = np.asarray(y)
    if how not in HOW:
        raise DataError(f"how={how!r} is no labelling: use one of {', '.join(HOW)}.")
    if digits.ndim != 1 or not np.issubdtype(digits.dtype, np.integer):
        raise DataError(f"y has shape {digits.shape} and dtype {digits.dtype}, but must be one row of integers.")
    digits = digits.astype(np.int64)
    return digits % 2 if how == "parity" else digits
