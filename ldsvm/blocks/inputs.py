"""The inputs of one worker's rows: what is kept of them between passes, and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ldsvm import memory
from ldsvm.blocks.source import Block, BlockError, Rows
from ldsvm.checks import LARGEST, check_labels, check_values
from ldsvm.maps.features import row_blocks
from ldsvm.maps.kmeans import sums_of_nearest, thinned
from ldsvm.maps.nearest import Nearest
from ldsvm.typing import Array

UNKNOWN = 2**31  # bytes that are taken for free where nothing tells
KINDS = {"O": "texts", "U": "texts", "S": "texts", "T": "texts", "b": "truth values"} | dict.fromkeys("iuf", "numbers")
KEPT = 0.5  # share of the free memory for inputs and features that are kept, over all shards of a machine


class Inputs:
    """Some blocks of the training rows, and of the validation rows.

    memory_bytes: for inputs and features that may be kept between passes; None for the share
    1 / beside of what is free. What does not fit is read, or computed, anew in every pass. n_threads: for its own work.
    """

    def __init__(self, train: Rows, valid: Rows | None, memory_bytes: int | None, beside: int, n_threads: int) -> None:
        self.train, self.valid, self.n_threads = train, valid, n_threads
        if memory_bytes is None:
            memory_bytes = int(KEPT * (memory.available() or UNKNOWN) / beside)
        self.budget = self.free = memory_bytes
        self.X: Any = None  # all inputs, where they may be kept
        self.live = False  # whether those are no copy
        self.sizes: list[int] = []  # of the blocks
        self.offset = 0  # of the first row, in the order of all shards
        self.labels: Any = None
        self.stamps: dict[int, Any] = {}  # of the blocks by id, from the first reading
        self.width, self.largest = 0, LARGEST
        self.stride = 0  # between rows that k-means looks at
        self.drawn: list[Array] | None = None  # their inputs, where they are kept

    def __len__(self) -> int:
        return sum(self.sizes)

    def look(self, largest: float = LARGEST) -> tuple[Any, Array, int]:
        """Read every block once. Return labels, the rows of each, and the number of inputs.

        largest: size of a value that the arithmetic can stand.
        """
        self.sizes, self.X, self.live, self.free, self.largest = [], None, False, self.budget, largest
        labels, width = [], 0
        for i, block in enumerate(self.train.blocks):
            X, y = self._read(self.train, i)
            width = width or X.shape[1]
            if X.shape[1] != width:
                raise BlockError(f"{block.name} has {X.shape[1]} inputs, the blocks before it have {width}.")
            self._keep(X, i)
            self.sizes.append(len(y))
            labels.append((block.name, y))
        self.labels, self.width = joined(labels), width
        found, counts = np.unique(self.labels, return_counts=True)
        return found, counts, width

    def _keep(self, X: Any, i: int) -> None:
        """Put the inputs of block i into one array of all, if that may be kept; a single block is taken as it is.

        Ray's blocks are not kept, since Ray has them in memory already.
        """
        sizes = [block.rows for block in self.train.blocks]
        if len(sizes) == 1 and X.nbytes <= self.free:
            self.X, self.live = X, self.train.blocks[0].live and not self.train.steps
            return
        if i == 0 and None not in sizes:
            whole = sum(size or 0 for size in sizes), X.shape[1]
            if whole[0] * whole[1] * X.itemsize <= self.free:
                self.X = np.empty(whole, X.dtype)
                self.free -= self.X.nbytes
        if self.X is not None:
            if not np.can_cast(X.dtype, self.X.dtype):
                self.X = self.X.astype(np.result_type(X.dtype, self.X.dtype))
            start = sum(self.sizes)
            self.X[start : start + len(X)] = X

    def column_sums(self) -> Array:
        """Sum of x (D,)."""
        return self._sum(lambda x: x.sum(axis=0))

    def column_squares(self, mean: Array) -> Array:
        """Sum of (x - mean)^2 (D,)."""
        return self._sum(lambda x: np.square(x - mean).sum(axis=0))

    def cross_products(self, mean: Array) -> Array:
        """Sum of (x - mean)(x - mean)' (D, D)."""

        def product(x: Array) -> Array:
            centred = x - mean
            out: Array = centred.T @ centred
            return out

        return self._sum(product)

    def inputs(self, numbers: Array) -> tuple[Array, Array]:
        """Those of the rows with these numbers, ascending, that are here: their numbers and inputs (n, D)."""
        here = numbers[(numbers >= self.offset) & (numbers < self.offset + len(self))]
        found = [X[here[self._within(here, rows)] - self.offset - rows.start] for rows, X in self._parts()]
        return here, np.concatenate(found)

    def draw(self, stride: int) -> None:
        """Let `nearest` look at one of every `stride` rows; their inputs are kept while there is memory for them.

        stride 0 ends that.
        """
        self.stride, self.drawn = stride, None
        if not stride or self.X is not None:
            return
        kept, count = [], len(thinned(self.offset, self.offset + len(self), stride))
        for X in self._every():
            if count * X.shape[1] * X.itemsize > self.free:
                return
            kept.append(X.copy())
        self.drawn = kept

    def _every(self) -> Iterator[Array]:
        """Inputs of every row that was drawn, by blocks."""
        if self.drawn is not None:
            yield from self.drawn
            return
        for rows, X in self._parts():
            first = self.offset + rows.start
            yield X if self.stride == 1 else X[thinned(first, first + len(X), self.stride) - first]

    def nearest(self, centers: Array) -> tuple[Array, Array]:
        """Sums (M, D) and counts (M,) of the rows that were drawn, by the centre they are nearest to."""
        nearest = Nearest(centers)
        sums, counts = np.zeros(centers.shape), np.zeros(len(centers))
        for X in self._every():
            some, number = sums_of_nearest(X, nearest)
            sums += some
            counts += number
        return sums, counts

    def _read(self, source: Rows | None, i: int) -> tuple[Any, Any]:
        """Read block i for the first time."""
        assert source is not None
        block = source.blocks[i]
        self.stamps[id(block)] = block.stamp()
        X, y = source.read(i)
        try:
            if X.dtype.kind not in "biuf" or X.ndim != 2 or not X.shape[1]:
                raise ValueError(
                    f"X has type {X.dtype} and shape {X.shape}; allowed: numbers of shape (n, D) with D above 0."
                )
            check_values(X, source.columns if not source.steps else None, self.largest)
            y = check_labels(y) if len(y) else y
        except (TypeError, ValueError) as error:
            raise BlockError(f"{block.name}: {str(error).partition(chr(10))[0]}") from error
        self._check_stamp(block)
        return X, y

    def _again(self, source: Rows | None, i: int, size: int) -> Any:
        """Return the inputs of block i, of so many rows, once more."""
        assert source is not None
        X = source.read(i)[0]
        self._check_same(source, i, X, size)
        return X

    def _check_same(self, source: Rows, i: int, X: Any, size: int) -> None:
        """Raise BlockError unless block i is of the same size and files as at first, and every value is a number."""
        block = source.blocks[i]
        for what, found, before in (("rows", len(X), size), ("inputs", X.shape[1], self.width)):
            if found != before:
                raise BlockError(f"{block.name} has {found:,} {what} but had {before:,} before.")
        self._check_stamp(block)
        try:
            check_values(X, source.columns if not source.steps else None, self.largest)
        except ValueError as error:
            raise BlockError(f"{block.name} has changed since it was first read: {error}") from error

    def _check_stamp(self, block: Block) -> None:
        if block.stamp() != self.stamps[id(block)]:
            raise BlockError(f"{block.name} has changed since it was first read; rows must not change during a fit.")

    def _whole(self) -> Any:
        """Return all inputs if they are kept and have not changed, else None."""
        if self.X is not None and self.live:
            self._check_same(self.train, 0, self.X, len(self))
        return self.X

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield consecutive rows and their inputs: all at once where they are kept, else block by block.

        Files are looked at before and after: those that are mapped are read while the inputs are used.
        """
        if (whole := self._whole()) is not None:
            yield slice(0, len(self)), whole
            if self.live:
                self._check_stamp(self.train.blocks[0])
            return
        start = 0
        for i, size in enumerate(self.sizes):
            yield slice(start, start + size), self._again(self.train, i, size)
            self._check_stamp(self.train.blocks[i])
            start += size

    def _sum(self, function: Callable[[Array], Array]) -> Array:
        total: Any = 0.0
        for _, X in self._parts():
            for rows in row_blocks(*X.shape):
                total = total + function(X[rows].astype(np.float64))
        return np.asarray(total)

    def _within(self, numbers: Array, rows: slice) -> Array:
        local = numbers - self.offset
        return (local >= rows.start) & (local < rows.stop)


def joined(parts: Sequence[tuple[str, Any]]) -> Any:
    """Concatenate labels of blocks by name. Raises BlockError, naming one, for kinds that do not go together.

    Examples
    --------
    >>> joined([("a", np.array([3, 1])), ("b", np.array([])), ("c", np.array([2], dtype=np.uint8))])
    array([3, 1, 2])
    """
    some = [part for part in parts if len(part[1])] or list(parts[:1])
    kinds = [KINDS.get(y.dtype.kind, "other things") for _, y in some]
    for (name, _), kind in zip(some, kinds, strict=True):
        if kind != kinds[0]:
            raise BlockError(f"{name}: its labels are {kind}, those of the blocks before it are {kinds[0]}.")
    every = [y for _, y in some]
    whole = np.concatenate(every)
    if whole.dtype.kind == "f" and all(y.dtype.kind in "iu" for y in every):  # NumPy's rule for signed and unsigned
        if max(int(y.max()) for y in every) > np.iinfo(np.int64).max:
            raise BlockError("the labels are signed and unsigned integers, too large for one type; use texts.")
        whole = np.concatenate([y.astype(np.int64) for y in every])
    if whole.dtype == object:
        try:
            np.unique(whole)
        except TypeError as error:
            raise BlockError(f"{some[0][0]}: its labels are of mixed kinds ({error}).") from error
    return whole
