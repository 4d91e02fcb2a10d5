"""Content as one Parquet file per data set: fast to read, verified on every read, never half written.

Inputs that lie in a file, see `ldsvm.datasets.large`, are kept beside it in .npy files, texts in Arrow files; both
are mapped.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.atomic import replacing
from ldsvm.datasets import columns, large
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.column import Column
from ldsvm.datasets.dataset import DataError, Raw, stored_texts, without_stored
from ldsvm.datasets.large import in_file
from ldsvm.datasets.stored_texts import StoredTexts
from ldsvm.datasets.words import cut

# What reading a damaged file may raise; its metadata may give sizes beyond memory, or nest too deep for JSON.
FAULTS = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError,
    StopIteration,
)  # fmt: skip
VERSION = b"2"  # raise it when the layout below changes: older files are then rebuilt


def read(path: Path, sha256: str | None = None) -> Raw | None:
    """Return the content of a prepared file; None when it is absent or unusable.

    sha256: the digest that the content must have; by default the one in the file's metadata. A file that is truncated,
    altered, of another format version or of other content is reported by a `UserWarning`, since the caller is going to
    replace it. Raises `DataError` for a name that the system cannot look up.
    """
    optional("pyarrow")  # also without a file, so that nothing is downloaded that cannot be read later
    try:
        if not path.exists():
            return None
    except OSError as error:  # a name that is too long, or a folder that may not be entered
        raise DataError(f"{cut(str(path), 200)}: the prepared data cannot be read ({error.strerror}).") from error
    found = check(path, sha256)
    if isinstance(found, Raw):
        return found
    warnings.warn(f"{path} is rebuilt: {found}.", UserWarning, stacklevel=4)  # the caller of `load`
    return None


def check(path: Path, sha256: str | None = None) -> Raw | str:
    """Return the content of a prepared file, or in words what is wrong with it."""
    faults = (optional("pyarrow").ArrowException, *FAULTS)
    try:
        raw, promised = _read(path)
    except faults as error:
        return f"it cannot be read ({cut(str(error) or type(error).__name__, 200)})"
    return raw if raw.sha256() == (sha256 or promised) else "its content does not have the expected sha256"


def write(path: Path, raw: Raw, about: Mapping[str, str] | None = None) -> None:
    """Store ``raw`` (training rows first, then test rows) at ``path``; raise `DataError` when that is impossible.

    about: more facts for the file's metadata, such as the configuration it was read with.
    """
    pa, pq = optional("pyarrow"), optional("pyarrow.parquet")
    parts = {name: rows for name, rows in (("train", raw.train), ("test", raw.test)) if rows is not None}
    mapped, table = any(in_file(rows.X) for rows in parts.values()), raw.train.table
    stored = [place for place, column in enumerate(table or ()) if isinstance(column.values, StoredTexts)]
    facts = {
        "version": VERSION.decode(),
        "sha256": raw.sha256(),
        "source": raw.source,
        "train_rows": str(len(raw.train)),
        "test": json.dumps(raw.test is not None),
        "n_features": json.dumps(raw.train.n_features),
        "columns": json.dumps(raw.train.columns),
        "table": json.dumps(table and [asdict(without_stored(column)) for column in table]),
        "mapped": json.dumps(mapped),
        "stored": json.dumps(stored),
        "code": _code_version(),
        **(about or {}),
    }
    metadata = {f"ldsvm.{key}".encode(): value.encode() for key, value in facts.items()}
    tables = (table for rows in parts.values() for table in columns.to_tables(rows, not mapped))
    first = next(tables)
    schema = first.schema.with_metadata(metadata)
    try:
        for name, rows in parts.items() if mapped else ():
            with replacing(_beside(path, f"{name}.npy")) as temporary, temporary.open("wb") as file:
                large.save(file, rows.X)
        for place, texts in zip(stored, stored_texts(raw.train), strict=True):
            with replacing(_beside(path, f"{place}.arrow")) as temporary:
                texts.save(temporary)
        # Without a dictionary and with zstd the lists decode five times faster than with the defaults.
        options: dict[str, Any] = {"compression": "zstd", "use_dictionary": ["label"]}
        options["memory_pool"] = pa.system_memory_pool()
        with replacing(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
            for table in chain([first], tables):
                writer.write_table(table.cast(schema))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: the prepared data cannot be written ({error}).") from error


def _read(path: Path) -> tuple[Raw, str]:
    # The values of categories are in the metadata; pyarrow's own limit is 100 MB.
    limits = dict.fromkeys(("thrift_string_size_limit", "thrift_container_size_limit"), 2**31 - 1)
    file = optional("pyarrow.parquet").ParquetFile(path, memory_map=True, **limits)
    about: dict[bytes, bytes] = file.schema_arrow.metadata or {}
    if about[b"ldsvm.version"] != VERSION:
        raise ValueError(f"format version {about[b'ldsvm.version'].decode()}, not {VERSION.decode()}")
    names, n_features = (json.loads(about[key]) for key in (b"ldsvm.columns", b"ldsvm.n_features"))
    cuts = [int(about[b"ldsvm.train_rows"])]
    if json.loads(about[b"ldsvm.test"]):
        cuts.append(file.metadata.num_rows)
    known = json.loads(about.get(b"ldsvm.table", b"null"))
    for one in known or ():
        one["values"] = tuple(one["values"])
    for place in json.loads(about.get(b"ldsvm.stored", b"[]")):
        known[place]["values"] = StoredTexts.read(_beside(path, f"{place}.arrow"))
    table = None if known is None else tuple(Column(**one) for one in known)
    inputs = None
    if json.loads(about.get(b"ldsvm.mapped", b"false")):
        inputs = [np.load(_beside(path, f"{name}.npy"), mmap_mode="r") for name in ("train", "test")[: len(cuts)]]
    parts = columns.read_rows(file, cuts, None if names is None else tuple(names), n_features, table, inputs)
    raw = Raw(parts[0], parts[1] if len(parts) > 1 else None, about[b"ldsvm.source"].decode())
    return raw, about[b"ldsvm.sha256"].decode()


def _beside(path: Path, name: str) -> Path:
    return path.with_suffix(f".{name}")


def _code_version() -> str:
    try:
        return version("ldsvm")
    except PackageNotFoundError:  # run from a checkout without an installation
        return "unknown"
