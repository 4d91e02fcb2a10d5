"""k-means by Lloyd's steps, in memory and by blocks of rows: the same centres, however the rows lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ldsvm.maps.features import row_blocks
from ldsvm.maps.nearest import Nearest
from ldsvm.typing import Array

# Lloyd steps after a random start, at least and at most; between them one per row and centre: the fewer rows a centre
# has, the sooner it settles. On MNIST a tenth of the time of k-means++, and the model's test error is the same.
STEPS = 3, 20
PER_CENTRE = 256  # rows for each centre that k-means looks at, up to twice that: more hardly move it
GOLDEN = 2654435769  # the golden ratio's part beyond one, in units of 2^-32
CLOSE = 1e-4  # it ends when the centres move less than this share of the variance, as scikit-learn's


def kmeans_work(N: int, M: int) -> tuple[int, int]:
    """Return which rows of N k-means looks at, every so many, and how many steps it takes at most for M centres.

    Examples
    --------
    >>> kmeans_work(10_000, 2_500), kmeans_work(60_000, 50)
    ((1, 4), (4, 20))
    """
    stride = max(1, N // (PER_CENTRE * M))
    return stride, int(np.clip(N // stride // M, *STEPS))


def thinned(start: int, stop: int, stride: int) -> Array:
    """Return one of every `stride` rows from start to stop, by number: the same ones in any part of all rows.

    Which one changes along the golden ratio, so that rows that repeat themselves are all represented.

    Examples
    --------
    >>> thinned(0, 20, 4), thinned(10, 20, 4)
    (array([ 0,  6,  8, 15, 17]), array([15, 17]))
    """
    windows = np.arange(start // stride, -(-stop // stride))
    rows = windows * stride + (windows * GOLDEN % 2**32) * stride // 2**32
    return rows[(start <= rows) & (rows < stop)]


def lloyd(
    step: Callable[[Array], tuple[Array, Array]],
    start: Array,
    most: int,
    variance: float,
    report: Callable[[str], Any] = lambda message: None,
) -> Array:
    """Return centres (M, D) float32 after at most `most` steps; a centre that no row is nearest to stays.

    step: sums (M, D) and weights (M,) of the rows nearest to each centre. variance: of the columns, their mean.
    """
    centers = start.astype(np.float64)
    for i in range(most):
        report(f"k-means, step {i + 1} of at most {most}")
        sums, counts = step(centers)
        some = counts > 0
        moved = np.where(some[:, None], sums / np.where(some, counts, 1.0)[:, None], centers)
        shift = float(np.square(moved - centers).sum())
        centers = moved
        if shift <= CLOSE * variance:
            break
    found: Array = centers.astype(np.float32)
    return found


def sums_of_nearest(X: Any, nearest: Nearest, weight: Array | None = None) -> tuple[Array, Array]:
    """Sums (M, D) and weights (M,) of rows X (N, D) by the centre they are nearest to.

    Sums are of inputs as they are: of float32 numbers or bytes they are exact, in any order.
    """
    M, D = nearest.shape
    sums, counts = np.zeros((M, D)), np.zeros(M)
    for rows in row_blocks(len(X), max(M, D)):
        x = X[rows]
        place = nearest(x)
        share = np.ones(len(x)) if weight is None else weight[rows]
        sums += sp.csr_array((share, place, np.arange(len(x) + 1)), shape=(len(x), M)).T @ x.astype(np.float64)
        counts += np.bincount(place, share, minlength=M)
    return sums, counts


def kmeans(X: Array, start: Array, weight: Array | None, variance: float) -> Array:
    """Return centres (M, D) float32 of rows X (N, D), from a start (M, D); weight (N,): how often a row counts."""
    positive = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    stride, most = kmeans_work(len(positive), len(start))
    if stride > 1:
        positive = positive[thinned(0, len(positive), stride)]
    if len(positive) < len(X):
        X, weight = X[positive], None if weight is None else weight[positive]
    return lloyd(lambda centers: sums_of_nearest(X, Nearest(centers), weight), start, most, variance)
