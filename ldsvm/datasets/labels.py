"""Other readings of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldsvm.datasets.dataset import DataError

HOW = ("original", "parity")


def relabel(y: ArrayLike, how: str) -> NDArray[Any]:
    """Return the labels y (N,) unchanged (``original``), or digits as 0 for even and 1 for odd (``parity``).

    Raises `DataError` for another ``how`` and for the parity of labels that are not whole numbers.

    Examples
    --------
    >>> relabel([3, 8, 5, 0], "parity").tolist()
    [1, 0, 1, 0]
    """
    labels = np.asarray(y)
    if how not in HOW:
        raise DataError(f"how={how!r} is no labelling: use one of {', '.join(HOW)}.")
    if how == "original":
        return labels
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise DataError(f"labels have shape {labels.shape} and dtype {labels.dtype}; parity needs whole numbers.")
    return labels.astype(np.int64) % 2
