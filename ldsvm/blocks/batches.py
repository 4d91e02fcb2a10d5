"""Batches of a shard's rows in random order, for gradient steps on learned centres."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ldsvm.maps.lowering import Slopes, batches
from ldsvm.typing import Array

Target = Callable[[Array], Any]  # of row numbers: their coordinates (n, L), or what gives them for values of F


class Batches:
    """Endless batches. X: all inputs, in random order of all rows; or None and `read(i)` gives block i of `sizes` rows.

    Then each block is read in its turn, blocks in random order and their rows in random order, so that one block at a
    time is in memory. target: what the rows of a batch are to become.
    """

    def __init__(
        self, X: Any, read: Callable[[int], Any] | None, sizes: Sequence[int], batch: int, seed: int, shift: Array,
        target: Target,
    ) -> None:  # fmt: skip
        self.shift, self.target, self.size = shift, target, min(batch, sum(sizes))
        rng = np.random.default_rng(seed)
        self._next = self._whole(X, rng) if read is None else self._by_blocks(read, sizes, rng)
        self._slopes: Slopes | None = None

    def slopes(self, center: Array, width: Array, W: Array) -> Array:
        """Derivatives for the next batch: (M D + M + M L,) float32."""
        x, rows = next(self._next)
        if self._slopes is None:
            self._slopes = Slopes(self.size, center.shape[0], center.shape[1], W.shape[1])
        s = self._slopes
        s(x, self.target(rows), None, center, width, W)
        return np.concatenate([s.center.ravel(), s.width, s.weight.ravel()])

    def _whole(self, X: Any, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
        for rows in batches(len(X), self.size, None, rng):
            yield self._shifted(X[rows]), rows

    def _by_blocks(
        self, read: Callable[[int], Any], sizes: Sequence[int], rng: np.random.Generator
    ) -> Iterator[tuple[Array, Array]]:  # fmt: skip
        starts = np.cumsum([0, *sizes])
        x, rows = np.empty((0, len(self.shift)), np.float32), np.empty(0, dtype=np.intp)  # left of the block before
        while True:
            for i in rng.permutation(len(sizes)):
                X, order = read(i), rng.permutation(sizes[i])
                while len(rows) + len(order) >= self.size:
                    take, order = np.split(order, [self.size - len(rows)])
                    rows = np.concatenate([rows, starts[i] + take])
                    yield np.concatenate([x, self._shifted(X[take])]), rows
                    x, rows = x[:0], rows[:0]
                x, rows = np.concatenate([x, self._shifted(X[order])]), np.concatenate([rows, starts[i] + order])

    def _shifted(self, x: Any) -> Array:
        out: Array = x.astype(np.float32, copy=False) - self.shift
        return out
