"""Starting coordinates Z (section "The role of dimension reduction" tells what good ones look like)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from ldsvm import threads
from ldsvm.mac.scheme import Labels
from ldsvm.typing import Array

CLASS_STARTS = ("simplex", "random")  # a point for each class
STARTS = (*CLASS_STARTS, "pca")
MANY = 50  # classes above which the search for a start is bounded
MOST = 50  # dimensions that n_components="auto" takes


def dimensions(asked: int | str, K: int) -> int:
    """Return L for K classes: the number asked for, "auto" for K - 1 and MOST at most.

    Examples
    --------
    >>> dimensions("auto", 10), dimensions("auto", 300), dimensions(100, 300)
    (9, 50, 100)
    """
    return min(K - 1, MOST) if isinstance(asked, str) else int(asked)


def simplex_points(K: int, L: int) -> Array:
    """K points of norm 1 in L dimensions (K, L), as far from each other as L allows.

    L >= K - 1: corners of a regular simplex, padded with zeros. L = 2: a regular K-gon. L = 1: equally spaced in
    [-1, 1]. Between these: points on the sphere that repel each other (lowest energy of several seeded descents).

    Examples
    --------
    >>> P = simplex_points(3, 2)
    >>> np.round(P @ P.T, 6) + 0.0
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    if L >= K - 1:
        # The triangular form: column l tells class l from the classes after it, so L > 1 needs no rotation.
        points = np.zeros((K, L))
        for axis in range(K - 1):
            rest = K - axis - 1
            points[axis, axis] = rest
            points[axis + 1 :, axis] = -1.0
            points[axis:, axis] *= np.sqrt(1.0 - np.sum(points[axis, :axis] ** 2)) / rest
        return points
    if L == 1:
        return np.linspace(-1.0, 1.0, K)[:, None]
    if L == 2:
        angle = 2.0 * np.pi * np.arange(K) / K
        return np.column_stack([np.cos(angle), np.sin(angle)])
    return _repelled_points(K, L)


def _repelled_points(K: int, L: int) -> Array:
    def energy(flat: Array) -> tuple[float, Array]:
        free = flat.reshape(K, L)
        norm = np.linalg.norm(free, axis=1, keepdims=True)
        P = free / norm
        square = 2.0 - 2.0 * (P @ P.T)
        np.fill_diagonal(square, 1.0)
        inverse = square**-4.0  # a steep power: the closest pair counts
        np.fill_diagonal(inverse, 0.0)
        pull = inverse / square
        slope = -16.0 * (pull.sum(axis=1)[:, None] * P - pull @ P)
        slope = (slope - np.einsum("il,il->i", slope, P)[:, None] * P) / norm
        return float(inverse.sum()), slope.ravel()

    rng = np.random.default_rng(0)
    # An evaluation costs K^2 L. One descent of many points ends all but as low as the best of ten.
    tries, steps = (10, 15_000) if K <= MANY else (1, max(10, 100 * MANY // K))
    how: Any = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": steps}}
    with threads.alone():  # the same sums, whatever n_jobs is
        found = [scipy.optimize.minimize(energy, rng.normal(size=K * L), **how) for _ in range(tries)]
    points: Array = min(found, key=lambda result: result.fun).x.reshape(K, L)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def starting_coordinates(
    init: str | Array, X: Any, y: Labels, K: int, L: int, random_state: np.random.RandomState
) -> Array:
    """Z (N, L) for a start by name, or an array of that shape as given.

    ``random`` gives every class one random centroid, normal, the K of them with mean zero (F has no bias: what they had
    in common would have to be paid for by the ridge) and mean square norm 1, as the simplex has. Coordinates that are
    random row by row, of any size, are no use as a start for exactly solved one-vs-all SVMs: with many classes the
    multipliers of the many negative rows can balance those of the few positive ones, so V = 0, b = -1 is the best
    SVM, the Z-step then moves nothing, and MAC stays there. (An inexact SVM solver leaves that point by its error.)
    """
    if not isinstance(init, str):
        return np.array(init, dtype=np.float64)
    if init == "pca":
        return _principal_coordinates(X, L, random_state)
    Z: Array = class_points(init, K, L, random_state)[y]
    return Z


def class_points(init: str, K: int, L: int, random_state: np.random.RandomState) -> Array:
    """One point for each class (K, L), for the starts "simplex" and "random"."""
    if init == "simplex":
        return simplex_points(K, L)
    points = random_state.standard_normal((K, L))
    points -= points.mean(axis=0)
    return points / np.sqrt(np.mean(np.einsum("kl,kl->k", points, points)))


def _principal_coordinates(X: Any, L: int, random_state: np.random.RandomState) -> Array:
    """PCA of X (truncated SVD when sparse), padded with zeros where X has rank below L, scaled to unit deviation."""
    from sklearn.decomposition import PCA, TruncatedSVD

    Z = np.zeros((X.shape[0], L))
    rank = min(L, min(X.shape) - (1 if sp.issparse(X) else 0))
    constant = not sp.issparse(X) and not np.ptp(X, axis=0).any()
    if rank < 1 or constant:
        return Z
    reducer = TruncatedSVD if sp.issparse(X) else PCA
    scores = reducer(rank, random_state=random_state).fit_transform(X).astype(np.float64)
    spread = float(scores.std())
    Z[:, :rank] = scores / spread if spread > 0 else scores
    return Z
