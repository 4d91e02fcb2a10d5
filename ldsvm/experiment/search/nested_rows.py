"""Which training rows a rung of a search gets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def nested_rows(y: NDArray[Any], n: int, seed: int) -> NDArray[np.intp]:
    """Return n row numbers of y (N,), ascending: random, stratified, and part of what a larger n gives.

    Every class has at least two rows, or its only one; beyond that its share is as in y, to within about two rows.
    Raises ValueError when n is smaller than that.
    """
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if n < 2 * len(counts):
        raise ValueError(f"n_samples={n} leaves fewer than two rows for each of {len(counts)} classes")
    keys = np.random.PCG64(seed).random_raw(len(y))  # NumPy promises these bits for ever
    order = np.lexsort((keys, codes))
    ranks = np.empty(len(y), dtype=np.intp)  # each row's shuffled place in its class
    ranks[order] = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    shares = np.where(ranks < 2, 0.0, (ranks + 0.5) / counts[codes])
    return np.sort(np.lexsort((keys, shares))[:n])
