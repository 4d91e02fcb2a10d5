"""Blocks of rows with labels, read one at a time: arrays, Parquet files and mapped arrays."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ldsvm.checks import label_array
from ldsvm.typing import Array

ROWS = 50_000  # of a block of a file, about


class BlockError(ValueError):
    """A block of rows cannot be read, or is not like the others; the message is one sentence that names it."""


class Block(ABC):
    """Some rows, wherever they are. name: what messages call it. rows: how many, None if unknown before they are read.

    files: where they are read from. live: whether inputs that were read change with the rows, not being a copy.
    """

    name: str
    rows: int | None
    files: tuple[str, ...] = ()
    live = False

    def stamp(self) -> tuple[Any, ...]:
        """Return the size of a file and the time of its last change, to detect changes; None for one that is gone."""
        return tuple(_stamp(file) for file in self.files)

    @abstractmethod
    def read(self) -> tuple[Any, Any]:
        """Return inputs (n, D) of numbers, in the type they are kept in, and labels (n,)."""


@dataclass(frozen=True)
class ArrayBlock(Block):
    """Rows in memory."""

    name: str
    X: Any
    y: Any
    live = True

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.y)

    def read(self) -> tuple[Any, Any]:
        return self.X, self.y


@dataclass(frozen=True)
class MappedBlock(Block):
    """Rows ``part`` of a .npy file X (N, D). y: those of a second file (N,), or the labels of just these rows (n,)."""

    X: str
    y: str | Array
    part: slice
    live = True

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.X, self.y) if isinstance(self.y, str) else (self.X,)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"rows {self.part.start:,} to {self.part.stop:,} of {self.X}"

    @property
    def rows(self) -> int:  # type: ignore[override]
        return int(self.part.stop - self.part.start)

    def read(self) -> tuple[Any, Any]:
        try:
            X = np.load(self.X, mmap_mode="r", allow_pickle=False)[self.part]
            y = np.array(np.load(self.y, mmap_mode="r")[self.part]) if isinstance(self.y, str) else self.y
        except (OSError, ValueError) as error:
            raise BlockError(f"{self.name} cannot be read ({error}).") from error
        return X, y


@dataclass(frozen=True)
class ParquetBlock(Block):
    """Row groups of one Parquet file.

    columns: the inputs, either numbers or one list of D numbers, or D bytes, in every row.
    """

    path: str
    groups: tuple[int, ...]
    count: int
    columns: tuple[str, ...]
    label: str

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.path,)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.path

    @property
    def rows(self) -> int:  # type: ignore[override]
        return self.count

    def read(self) -> tuple[Any, Any]:
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(self.path) as file:
                table = file.read_row_groups(list(self.groups), columns=[*self.columns, self.label], use_threads=False)
        except Exception as error:  # Arrow's own kinds, for a file that is gone, cut or changed
            raise BlockError(f"{self.path} cannot be read ({first_line(error)}).") from error
        if table.num_rows != self.count:
            raise BlockError(f"{self.path} has {table.num_rows:,} rows but had {self.count:,} before.")
        return from_table(table, self.columns, self.label, self.path)


@dataclass(frozen=True)
class Rows:
    """Blocks of rows, with what is done to each as it is read.

    blocks: where the rows are. columns: names of the inputs as they come, or None. steps: fitted transformers of
    scikit-learn that are applied to each block.
    """

    blocks: tuple[Block, ...]
    columns: tuple[str, ...] | None = None
    steps: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.blocks, tuple) or not all(isinstance(block, Block) for block in self.blocks):
            raise BlockError(
                f"{type(self).__name__} has blocks {self.blocks!r:.100}; allowed: those of RowBlocks.arrays, "
                ".parquet, .mapped and .ray."
            )

    def then(self, step: Any) -> Self:
        """Return the same rows with one more fitted transformer of scikit-learn applied to each block."""
        return replace(self, steps=(*self.steps, step))

    def read(self, i: int) -> tuple[Array, Array]:
        """Return block i, after the steps. Raises BlockError, naming the block."""
        block = self.blocks[i]
        X, y = block.read()
        if not self.steps:
            return X, y
        try:
            for step in self.steps:
                X = step.transform(X)
        except Exception as error:
            raise BlockError(f"{block.name}: {type(step).__name__} failed on it ({first_line(error)}).") from error
        return X.astype(np.float32, copy=False), y

    def divided(self, parts: int) -> list[Self]:
        """Divide the blocks into consecutive parts of about as many rows each; fewer where there are fewer blocks."""
        sizes = np.array([block.rows or 1 for block in self.blocks], dtype=np.float64)
        parts = min(parts, len(sizes))
        middles = (np.cumsum(sizes) - sizes / 2) / sizes.sum() * parts
        places = np.minimum(middles.astype(int), parts - 1)
        if len(set(places)) < parts:  # one large block among small ones
            places = np.arange(len(sizes)) * parts // len(sizes)
        return [
            replace(self, blocks=tuple(b for b, p in zip(self.blocks, places, strict=True) if p == i))
            for i in range(parts)
        ]


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def from_table(table: Any, columns: Sequence[str], label: str, name: str) -> tuple[Any, Any]:
    """Return inputs and labels of an Arrow table. Raises BlockError naming what cannot be used."""
    from pyarrow import types

    for column in (*columns, label):
        if table[column].null_count:
            raise BlockError(f"{name}: column {column!r} has {table[column].null_count} missing values.")
    kind = table.schema.field(label).type
    if types.is_decimal(kind) or types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        raise BlockError(f"{name}: column {label!r} of labels is of type {kind}; allowed: numbers or texts.")
    y = table[label].to_numpy()
    if len(columns) == 1 and (X := _vectors(table[columns[0]], columns[0], len(y), name)) is not None:
        return X, y
    kinds = []
    for column in columns:
        kind = table.schema.field(column).type
        if not _numeric(kind):
            raise BlockError(
                f"{name}: column {column!r} is of type {kind}; allowed: numbers (choose the inputs with columns=)."
            )
        kinds.append(kind.to_pandas_dtype())
    X = np.empty((len(y), len(columns)), np.result_type(*kinds))
    for d, column in enumerate(columns):
        X[:, d] = table[column].to_numpy()
    return X, y


def _numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _vectors(column: Any, label: str, n: int, name: str) -> Any:
    """Return the lists, or bytes, of one column as (n, D); None where it holds neither."""
    import pyarrow as pa
    from pyarrow import compute, types

    kind = column.type
    if (types.is_binary(kind) or types.is_large_binary(kind)) and len(column):
        lengths = compute.min_max(compute.binary_length(column)).as_py()
        if lengths["min"] != lengths["max"]:
            raise BlockError(
                f"{name}: the rows in column {label!r} have {lengths['min']} to {lengths['max']} bytes; "
                "all must have the same length."
            )
        column = column.cast(pa.binary(lengths["min"]))
        kind = column.type
    if types.is_fixed_size_binary(kind):
        parts = [_bytes(chunk, kind.byte_width) for chunk in column.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty((0, kind.byte_width), np.uint8)])
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return None
    if not _numeric(kind.value_type):
        raise BlockError(f"{name}: column {label!r} is of type {kind}; allowed: lists of numbers.")
    lengths = compute.min_max(compute.list_value_length(column)).as_py()
    if lengths["min"] != lengths["max"]:
        raise BlockError(
            f"{name}: the lists in column {label!r} have {lengths['min']} to {lengths['max']} numbers; "
            "all must have the same length."
        )
    return compute.list_flatten(column).to_numpy().reshape(n, -1)


def _bytes(chunk: Any, width: int) -> Any:
    """Return fixed-size bytes of an Arrow array as (n, width), without a copy."""
    if not len(chunk):
        return np.empty((0, width), np.uint8)
    start = chunk.offset * width
    return np.frombuffer(chunk.buffers()[1], np.uint8)[start : start + len(chunk) * width].reshape(-1, width)


def check_count(name: str, value: Any, least: int) -> None:
    """Raise BlockError unless the value is a whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise BlockError(f"{name}={value!r} must be a whole number of at least {least}.")


def chosen_columns(columns: Sequence[str], label: str | None) -> tuple[str, ...]:
    """Return the names of inputs that somebody asks for. Raises BlockError for what cannot be meant."""
    found = (columns,) if isinstance(columns, str) else tuple(columns)
    if not found or len(set(found)) < len(found) or label in found:
        raise BlockError(f"columns={columns!r} must name at least one input, each once, and not the label {label!r}.")
    return found


def listed(source: Any, what: str) -> list[Any]:
    """Return a list of blocks. Raises BlockError for anything else."""
    try:
        return list(source)
    except TypeError:
        raise BlockError(f"{what} must be a list with one entry for each block, got {type(source).__name__}.") from None


def pair_of(pair: Any, name: str) -> tuple[Any, Any]:
    """Return inputs (n, D) and labels (n,) as arrays."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise BlockError(f"{name} is not a pair of inputs and labels; allowed: a list of pairs, such as [(X, y)].")
    if sp.issparse(pair[0]):
        raise BlockError(f"{name} has sparse inputs; allowed: dense inputs, as from X.toarray().")
    X = np.asarray(pair[0])
    if X.dtype == object:
        with suppress(TypeError, ValueError):  # the reader of the block says what is wrong
            X = X.astype(np.float64)
    y = pair[1] if np.ndim(pair[1]) == 1 else np.asarray(pair[1])
    if X.ndim != 2 or np.shape(y) not in (X.shape[:1], (len(X), 1)):
        raise BlockError(f"{name} has X of shape {X.shape} and y of shape {np.shape(y)}; allowed: (n, D) and (n,).")
    try:
        return X, label_array(y if np.ndim(y) == 1 else np.ravel(y))
    except ValueError as error:
        raise BlockError(f"{name}: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its kind where it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
