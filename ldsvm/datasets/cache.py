"""Content as one Parquet file per data set: fast to read, verified on every read, never half written.

Inputs are one column of lists of fixed size (dense), two columns of lists (sparse: column numbers and values), or
one column of texts; labels are dictionary-encoded.
"""

from __future__ import annotations

import json
import os
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError, Raw, Rows

VERSION = b"2"  # raise it when the layout below changes: older files are then rebuilt
EXTRAS = {"groups": "group", "times": "time"}


def read(path: Path, sha256: str | None = None) -> Raw | None:
    """Return the content of a prepared file; None when it is absent or unusable.

    sha256: the digest that the content must have; without it the file's own promise counts, which a damaged or
    altered file breaks. A file that is truncated, altered, of another format version or of other content is
    reported by a `UserWarning`, since the caller is going to replace it.
    """
    if not path.exists():
        return None
    found = check(path, sha256)
    if isinstance(found, Raw):
        return found
    warnings.warn(f"{path} is rebuilt: {found}.", UserWarning, stacklevel=4)  # the caller of `load`
    return None


def check(path: Path, sha256: str | None = None) -> Raw | str:
    """Return the content of a prepared file, or in words what is wrong with it."""
    pa = optional("pyarrow")
    try:
        raw, promised = _read(path)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        return f"it cannot be read ({error})"
    return raw if raw.sha256() == (sha256 or promised) else "its content does not have the expected sha256"


def write(path: Path, raw: Raw, about: Mapping[str, str] | None = None) -> None:
    """Store ``raw`` (training rows first, then test rows) at ``path``; raise `DataError` when that is impossible.

    about: more facts for the file's metadata, such as the configuration it was read with.
    """
    pa, pq = optional("pyarrow"), optional("pyarrow.parquet")
    tables = [_table(rows) for rows in (raw.train, raw.test) if rows is not None]
    facts = {
        "version": VERSION.decode(),
        "sha256": raw.sha256(),
        "source": raw.source,
        "train_rows": str(len(raw.train)),
        "test": str(raw.test is not None),
        "n_features": str(raw.train.n_features),
        "columns": json.dumps(raw.train.columns),
        "code": _code_version(),
        **(about or {}),
    }
    metadata = {f"ldsvm.{key}".encode(): value.encode() for key, value in facts.items()}
    table = pa.concat_tables(tables).unify_dictionaries().replace_schema_metadata(metadata)
    try:
        with _replacing(path) as temporary:
            # Without a dictionary and with zstd the lists decode five times faster than with the defaults.
            pq.write_table(table, temporary, compression="zstd", use_dictionary=["label"])
    except OSError as error:
        raise DataError(f"{path}: the prepared data cannot be written ({error}).") from error


def _table(rows: Rows) -> Any:
    pa = optional("pyarrow")
    columns: dict[str, Any] = {}
    if rows.kind == "dense":
        columns["features"] = pa.FixedSizeListArray.from_arrays(pa.array(rows.X.ravel()), rows.X.shape[1])
    elif rows.kind == "sparse":
        offsets = pa.array(rows.X.indptr.astype(np.int64))
        columns["indices"] = pa.LargeListArray.from_arrays(offsets, pa.array(rows.X.indices.astype(np.int32)))
        columns["values"] = pa.LargeListArray.from_arrays(offsets, pa.array(rows.X.data))
    else:
        columns["text"] = pa.array(rows.X, type=pa.large_string())
    columns["label"] = pa.array(rows.y).dictionary_encode()
    for name, column in EXTRAS.items():
        if getattr(rows, name) is not None:
            columns[column] = pa.array(getattr(rows, name))
    return pa.table(columns)


def _read(path: Path) -> tuple[Raw, str]:
    table = optional("pyarrow.parquet").read_table(path, memory_map=True)
    about: dict[bytes, bytes] = table.schema.metadata or {}
    if about[b"ldsvm.version"] != VERSION:
        raise ValueError(f"format version {about[b'ldsvm.version'].decode()}, not {VERSION.decode()}")
    train = int(about[b"ldsvm.train_rows"])
    names = json.loads(about[b"ldsvm.columns"])
    columns = None if names is None else tuple(names)
    n_features = about[b"ldsvm.n_features"].decode()
    parts = [_rows(table[:train], columns, n_features)]
    if about[b"ldsvm.test"] == b"True":
        parts.append(_rows(table[train:], columns, n_features))
    raw = Raw(parts[0], parts[1] if len(parts) > 1 else None, about[b"ldsvm.source"].decode())
    return raw, about[b"ldsvm.sha256"].decode()


def _rows(table: Any, columns: tuple[str, ...] | None, n_features: str) -> Rows:
    extras = {name: _plain(table[column]) for name, column in EXTRAS.items() if column in table.column_names}
    return Rows(_inputs(table, n_features), _plain(table["label"]), columns, **extras)


def _inputs(table: Any, n_features: str) -> Any:
    if "text" in table.column_names:
        return _plain(table["text"])
    if "features" in table.column_names:
        features = _whole(table["features"])
        if not optional("pyarrow").types.is_fixed_size_list(features.type):
            raise ValueError(f"features have type {features.type}")
        return features.flatten().to_numpy().reshape(len(features), int(n_features))
    from scipy.sparse import csr_matrix

    indices, values = _whole(table["indices"]), _whole(table["values"])
    # A slice of lists keeps the offsets of the whole column; flattening drops what lies before and after.
    offsets = values.offsets.to_numpy()
    parts = (values.flatten().to_numpy(), indices.flatten().to_numpy(), offsets - offsets[0])
    return csr_matrix(parts, shape=(len(values), int(n_features)))


def _whole(column: Any) -> Any:
    """Return a column as one array instead of several chunks."""
    found = column.combine_chunks()
    chunked = optional("pyarrow").ChunkedArray
    return found.chunk(0) if isinstance(found, chunked) else found


def _plain(column: Any) -> NDArray[Any]:
    """Return numbers and dates as they are, everything else, and whatever has gaps, as an object array."""
    pa = optional("pyarrow")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count or pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found = np.empty(len(column), dtype=object)
        found[:] = column.to_pylist()
        return found
    return np.asarray(column.to_numpy())


def _code_version() -> str:
    try:
        return version("ldsvm")
    except PackageNotFoundError:  # run from a checkout without an installation
        return "unknown"


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name in the same folder and move it onto ``path`` only if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
