"""The loss of LargeMarginNN and its gradient: every impostor counts, read from a list or searched block by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from ldsvm.typing import Array

BLOCK = 2**20  # numbers in a block of distances or differences: 8 MB
SKIN = 1.0  # the list also holds pairs this far (squared) beyond reach: as wide as the margin itself


class Loss:
    """The loss on rows X (N, D) of classes y (N,): targets (N, k), ``real`` (N, k) False where there are fewer."""

    def __init__(self, X: Array, y: Array, n_neighbors: int, weight: float, max_impostors: int) -> None:
        self.X, self.y, self.weight, self.max_impostors = X, y, weight, max_impostors
        self.targets, self.real = _targets(X, y, n_neighbors)
        self._listed: tuple[Array, Array, Array] | None = None  # pairs, and Z (N, L) and rims (N,) when they were found

    def __call__(self, A: Array) -> tuple[float, Array]:
        """Loss and gradient (L, D) at A (L, D).

        The gradient is 2/N A X' Q X, Q the Laplacian of pairs with weights: Q Z is summed block by block.
        """
        Z = self.X @ A.T
        near = self._spread(Z)
        limit = np.where(self.real, 1.0 + near, -np.inf)
        pull, push = np.where(self.real, 1.0 - self.weight, 0.0), 0.0
        hits, QZ = np.zeros(limit.shape), np.zeros_like(Z)
        for rows, cols, distance in self._pairs(Z, 1.0 + near.max(axis=1)):
            count = np.zeros(len(rows))
            for j in range(limit.shape[1]):  # one target at a time: blocks stay in one dimension
                excess = limit[:, j][rows] - distance
                active = excess > 0.0
                push += float(excess[active].sum())
                hits[:, j] += np.bincount(rows[active], minlength=len(Z))
                count += active
            QZ -= self.weight * _laplacian(rows, cols, count, Z)
        rows = np.repeat(np.arange(len(Z)), limit.shape[1])
        QZ += _laplacian(rows, self.targets.ravel(), (pull + self.weight * hits).ravel(), Z)
        return (float((pull * near).sum()) + self.weight * push) / len(Z), 2.0 / len(Z) * QZ.T @ self.X

    def size(self, A: Array) -> float:
        """Root mean squared distance to the targets, or a thousandth of that to the mean where targets coincide."""
        Z = self.X @ A.T
        near = (self._spread(Z) * self.real).sum() / max(1, self.real.sum())
        return float(np.sqrt(max(near, 1e-6 * np.square(Z).sum() / len(Z)))) or 1.0

    def _spread(self, Z: Array) -> Array:
        """Squared distances (N, k) to the targets."""
        return np.stack([np.square(Z - Z[j]).sum(axis=1) for j in self.targets.T], axis=1)

    def _pairs(self, Z: Array, reach: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Blocks of rows i, cols l of another class and their squared distance: all that is less than reach (N,)."""
        if not self._complete(Z, reach):
            keys = self._search(Z, reach + SKIN)
            self._listed = None if keys is None else (keys, Z, np.sqrt(reach + SKIN))
        return self._blocks(Z, reach) if self._listed is None else _read(Z, reach, self._listed[0])

    def _complete(self, Z: Array, reach: Array) -> bool:
        """Whether no unlisted pair can be within reach: by the triangle inequality, ends moved less than the skin."""
        if self._listed is None:
            return False
        _, origin, rim = self._listed
        moved = np.sqrt(np.square(Z - origin).sum(axis=1))
        return bool(np.all(np.sqrt(reach) + moved + moved.max() <= rim))

    def _search(self, Z: Array, reach: Array) -> Array | None:
        """Pairs within reach as numbers i N + l, or None when they are too many to keep."""
        found, count = [np.empty(0, dtype=np.int64)], 0
        for rows, cols, _ in self._blocks(Z, reach):
            count += len(rows)
            if count > self.max_impostors:
                return None
            found.append(rows * len(Z) + cols)
        return np.concatenate(found)

    def _blocks(self, Z: Array, reach: Array) -> Iterator[tuple[Array, Array, Array]]:
        for block in _slices(len(Z), len(Z)):
            distance = euclidean_distances(Z[block], Z, squared=True)
            rows, cols = np.nonzero((distance < reach[block, None]) & (self.y[block, None] != self.y))
            yield rows + block.start, cols, distance[rows, cols]


def _slices(n: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // width)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))


def _read(Z: Array, reach: Array, keys: Array) -> Iterator[tuple[Array, Array, Array]]:
    """As `Loss._blocks`, of listed pairs."""
    for block in _slices(len(keys), Z.shape[1]):
        rows, cols = np.divmod(keys[block], len(Z))
        across = Z.take(rows, axis=0) - Z.take(cols, axis=0)  # take and einsum: several times faster for a small L
        distance = np.einsum("pl,pl->p", across, across)
        near = np.flatnonzero(distance < reach[rows])
        yield rows[near], cols[near], distance[near]


def _laplacian(rows: Array, cols: Array, weight: Array, Z: Array) -> Array:
    """Sum over pairs of weight (e_row - e_col)(z_row - z_col)', (N, L), by products with one sparse matrix."""
    W = csr_array((weight, (rows, cols)), shape=(len(Z), len(Z)))
    product: Array = (W.sum(axis=0) + W.sum(axis=1))[:, None] * Z - W @ Z - W.T @ Z
    return product


def _targets(X: Array, y: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Indices (N, k) of the nearest rows of the same class; a row stands in for targets that it lacks."""
    k = max(1, min(n_neighbors, int(np.bincount(y).max()) - 1))
    targets, real = np.repeat(np.arange(len(X))[:, None], k, axis=1), np.zeros((len(X), k), dtype=bool)
    for members in (np.flatnonzero(y == c) for c in range(int(y.max()) + 1)):
        own = min(k, len(members) - 1)
        if own > 0:
            near = NearestNeighbors(n_neighbors=own).fit(X[members]).kneighbors(return_distance=False)
            targets[members, :own], real[members, :own] = members[near], True
    return targets, real
