"""Read any format with one call, and check what must be true of all formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldsvm.datasets.dataset import DataError, Raw, Rows
from ldsvm.datasets.files import arrays, tables, texts
from ldsvm.datasets.files.csv_text import DELIMITERS
from ldsvm.datasets.files.find import TABLES, Found, find
from ldsvm.datasets.files.spec import FileSpec

Reader = Callable[[Found, Found | None, FileSpec], tuple[Rows, Rows | None]]
READERS: dict[str, Reader] = {
    **dict.fromkeys(TABLES, tables.read),
    "npz": arrays.npz,
    "svmlight": arrays.svmlight,
    "idx": arrays.images,
    "text": texts.read,
}
TITLES = {"parquet": "Parquet", "csv": "CSV", "semicolon": "CSV", "pipe": "text", "blanks": "text", "tsv": "TSV"}
TITLES |= {"arrow": "Arrow"}
# Which fields mean something, beyond those that every format knows.
TEXT = ("encoding", "header")
SOURCES = ("sheet", "table", "query")  # of what is no plain file, see `snapshots`
COLUMNS = ("label", "columns", "roles", "drop", "text", "group", "time", "decimal", "thousands", "missing_values")
FIELDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(TABLES, COLUMNS),
    **dict.fromkeys(DELIMITERS, (*COLUMNS, *TEXT)),
    "npz": ("label", "group", "time"),
    "idx": ("label",),
    "svmlight": (),
    "text": (),
}


def read(spec: FileSpec) -> Raw:
    r"""Read a user's files; see `FileSpec` for what they may be.

    Returns a `Raw` whose X is (N, D) float32 with NaN for what is missing, a CSR matrix for svmlight and sparse NPZ
    files, (N,) texts, or, for IDX images, unscaled uint8; whose labels are int64 or str, None where missing.
    Raises `DataError` with one sentence for everything that is wrong with the files or with the fields of ``spec``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "flowers.csv").write_text("size,label\n1.5,rose\n,lily\n")
    ...     raw = read(FileSpec(f"{folder}/flowers.csv"))
    >>> raw.train.X.tolist(), raw.train.y.tolist(), raw.source
    ([[1.5], [nan]], ['rose', 'lily'], 'flowers.csv, label column label.')
    """
    return read_found(*find(spec), spec)


def read_found(train: Found, test: Found | None, spec: FileSpec) -> Raw:
    """Read the files that `find` found for ``spec``."""
    _check_fields(train.format, spec)
    rows, rows_test = READERS[train.format](train, test, spec)
    if rows_test is not None:
        _check_alike(rows, rows_test, train.given, train.given if test is None else test.given)
    return Raw(rows, rows_test, _sentence(train, test, spec))


def _check_fields(format: str, spec: FileSpec) -> None:
    for field in (*COLUMNS, *TEXT, *SOURCES):
        if getattr(spec, field) not in (None, (), True) and field not in FIELDS[format]:
            allowed = ", ".join(("path", "test_path", "format", *FIELDS[format]))
            raise DataError(
                f"{spec.path}: dataset.{field} does not apply to format {format}; leave dataset.{field} out; "
                f"allowed: {allowed}."
            )


def _check_alike(train: Rows, test: Rows, given: str, given_test: str) -> None:
    """Raise `DataError` unless both sets have as many inputs and the same kinds of labels, groups and times."""
    facts = {
        "inputs": (train.kind, test.kind),
        "numbers of inputs": (train.n_features, test.n_features),
        "labels": (_kind(train.y), _kind(test.y)),
        "groups": (_kind(train.groups), _kind(test.groups)),
        "times": (_kind(train.times), _kind(test.times)),
    }
    for what, (found, found_test) in facts.items():
        if found != found_test:
            raise DataError(
                f"{what} differ: {found} in the training set of {given}, but {found_test} in the test set of "
                f"{given_test}; both must be the same."
            )


def _kind(array: Any) -> str:
    """Return what an array holds, the way pyarrow and the cache tell types apart."""
    if array is None:
        return "none"
    if array.dtype != object:
        return {"M": "dates", "f": "fractions"}.get(array.dtype.kind, "whole numbers")
    return "text" if isinstance(next(value for value in array if value is not None), str) else "whole numbers"


def _sentence(train: Found, test: Found | None, spec: FileSpec) -> str:
    parts = [_counted(train)]
    if test is not None:
        parts.append(f"test set {_counted(test)}")
    if train.format in TABLES:
        parts.append(f"label column {spec.label or 'label'}")
    return ", ".join(parts) + "."


def _counted(found: Found) -> str:
    if found.format == "text":
        classes = len({file.relative_to(found.root).parts[0] for file in found.files})
        return f"{len(found.files):,} texts in {classes} class folders"
    if found.format == "idx" or len(found.files) == 1:
        # A name that is no UTF-8 could be neither stored nor printed.
        return " with ".join(file.name.encode("utf-8", "replace").decode() for file in found.files)
    return f"{len(found.files)} {TITLES[found.format]} files"
