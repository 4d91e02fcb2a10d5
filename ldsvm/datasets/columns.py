"""Rows as Arrow columns and back, a group of rows at a time.

Inputs are one column of lists of fixed size (dense), two columns of lists (sparse: column numbers and values), or
one column of texts; labels are dictionary-encoded. Inputs may also lie in files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.column import Column
from ldsvm.datasets.dataset import Rows

EXTRAS = {"groups": "group", "times": "time"}
Table = tuple[Column, ...]
GROUP = 2_000_000  # values in a group of rows: Arrow needs some ten bytes for each while it packs and unpacks lists


def group_size(rows: Rows) -> int:
    """Return how many rows to write together."""
    if rows.kind in ("dense", "table"):
        width = rows.X.shape[1]
    else:
        total = rows.X.nnz if rows.kind == "sparse" else sum(map(len, filter(None, rows.X)))
        width = total // max(1, len(rows))
    return max(1, GROUP // max(1, width))


def to_tables(rows: Rows, inputs: bool = True) -> Iterator[Any]:
    """Yield the rows as Arrow tables, one for each group of rows, so that no second copy of all inputs is made.

    inputs: whether these are among the columns.
    """
    pa = optional("pyarrow")
    small = {"label": pa.array(rows.y).dictionary_encode()}
    for name, column in EXTRAS.items():
        if getattr(rows, name) is not None:
            small[column] = pa.array(getattr(rows, name))
    size = group_size(rows)
    for start in range(0, max(1, len(rows)), size):
        inside = slice(start, start + size)
        more = _inputs(rows.X[inside], rows.kind) if inputs else {}
        yield pa.table({**more, **{k: v[inside] for k, v in small.items()}})


def _inputs(X: Any, kind: str) -> dict[str, Any]:
    pa = optional("pyarrow")
    if kind in ("dense", "table"):
        return {"features": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])}
    if kind == "text":
        # Arrow's own pool keeps what it has had, here as much again as the texts.
        return {"text": pa.array(X, type=pa.large_string(), memory_pool=pa.system_memory_pool())}
    offsets = pa.array(X.indptr.astype(np.int64))
    indices = pa.LargeListArray.from_arrays(offsets, pa.array(X.indices.astype(np.int32)))
    return {"indices": indices, "values": pa.LargeListArray.from_arrays(offsets, pa.array(X.data))}


def read_rows(
    file: Any,
    cuts: list[int],
    columns: tuple[str, ...] | None,
    n_features: int | None,
    table: Table | None = None,
    inputs: list[Any] | None = None,
) -> list[Rows]:
    """Return the parts of a Parquet file that end at the row numbers `cuts`; views where they can be.

    inputs: of each part, where they are in files of their own.

    Raises ValueError for columns of another type, KeyError for missing ones.
    """
    names = file.schema_arrow.names
    small = {name: plain(file.read([name])[name]) for name in names if name in ("label", *EXTRAS.values())}
    if inputs is None:
        reader = {"text": _texts, "features": _dense, "values": _sparse}[next(n for n in names if n != "indices")]
        inputs = reader(file, cuts, n_features)
    parts = []
    for X, start, end in zip(inputs, [0, *cuts], cuts, strict=False):
        extras = {name: small[column][start:end] for name, column in EXTRAS.items() if column in small}
        parts.append(Rows(X, _as_whole_numbers(small["label"][start:end]), columns, **extras, table=table))
    return parts


def _dense(file: Any, cuts: list[int], n_features: int | None) -> list[Any]:
    kind = file.schema_arrow.field("features").type
    if not optional("pyarrow").types.is_fixed_size_list(kind):
        raise ValueError(f"features have type {kind}")
    if kind.list_size != n_features:  # an array of what the metadata promise may be larger than memory
        raise ValueError(f"features have {kind.list_size} columns, not {n_features}")
    X = np.empty((file.metadata.num_rows, kind.list_size), dtype=kind.value_type.to_pandas_dtype())
    at = 0
    for block in _groups(file, "features"):
        X[at : at + len(block)] = block.flatten().to_numpy(zero_copy_only=False).reshape(len(block), -1)
        at += len(block)
    return _views(X, cuts)


def _texts(file: Any, cuts: list[int], _: int | None) -> list[Any]:
    X = np.empty(file.metadata.num_rows, dtype=object)
    at = 0
    for block in _groups(file, "text"):
        X[at : at + len(block)] = block.to_pylist()
        at += len(block)
    return _views(X, cuts)


def _sparse(file: Any, cuts: list[int], n_features: int | None) -> list[Any]:
    from scipy.sparse import csr_matrix

    data, lengths = _lists(file, "values")
    indices, _ = _lists(file, "indices")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    found = []
    for start, end in zip([0, *cuts], cuts, strict=False):
        inside = slice(ends[start], ends[end])
        parts = (data[inside], indices[inside], ends[start : end + 1] - ends[start])
        found.append(csr_matrix(parts, shape=(end - start, n_features)))
    return found


def _lists(file: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the values of a column of lists, one after the other, and the lists' lengths."""
    kind = file.schema_arrow.field(name).type
    if not optional("pyarrow").types.is_large_list(kind):
        raise ValueError(f"{name} have type {kind}")
    blocks = list(_groups(file, name))
    values = [block.flatten().to_numpy(zero_copy_only=False) for block in blocks]
    lengths = [np.diff(block.offsets.to_numpy()) for block in blocks]
    return np.concatenate(values), np.concatenate(lengths)


def _groups(file: Any, name: str) -> Any:
    """Yield a column as one array for each group of rows; at least one."""
    for i in range(file.num_row_groups):
        yield whole(file.read_row_group(i, [name])[name])


def _views(X: NDArray[Any], cuts: list[int]) -> list[Any]:
    return [X[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]


def whole(column: Any) -> Any:
    """Return a column as one array instead of several chunks."""
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, optional("pyarrow").ChunkedArray) else found


def plain(column: Any) -> NDArray[Any]:
    """Return numbers and dates as they are, everything else, and whatever has gaps, as an object array."""
    pa = optional("pyarrow")
    if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
        return np.concatenate([shared(piece) for piece in column.chunks] or [np.zeros(0, dtype=object)])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count or pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found = np.empty(len(column), dtype=object)
        found[:] = column.to_pylist()
        return found
    return np.asarray(column.to_numpy())


def shared(piece: Any) -> NDArray[Any]:
    """Return one piece of few texts as an object array of str and None, one object for equal texts."""
    found = piece if hasattr(piece, "dictionary") else piece.dictionary_encode()
    words = np.array([*found.dictionary.to_pylist(), None], dtype=object)
    gap = len(words) - 1
    return words[found.indices.fill_null(gap).to_numpy(zero_copy_only=False)]


def _as_whole_numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as such also where a gap in another part made Python objects of them all."""
    if labels.dtype == object and len(labels) and all(isinstance(label, int) for label in labels):
        return labels.astype(np.int64)
    return labels
