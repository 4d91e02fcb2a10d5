"""Which files a user's data come from, and which rows are whose: to tell new files from those that were read before."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import faults, tables
from ldsvm.datasets.files.find import TABLES, Found, find
from ldsvm.datasets.files.spec import FileSpec


@dataclass(frozen=True)
class Part:
    """One file: its name below the path that was given, the digest of its bytes, and its number of rows."""

    name: str
    sha256: str
    rows: int


def inventory(spec: FileSpec) -> list[Part]:
    r"""Return the files of ``spec.path`` in the order in which `read` reads their rows.

    Raises `DataError` for formats whose data are one file, and for files that cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in "ab":
    ...         _ = Path(folder, f"{name}.csv").write_text("size,label\n1.5,rose\n2,lily\n")
    ...     [(part.name, part.rows) for part in inventory(FileSpec(folder))]
    [('a.csv', 2), ('b.csv', 2)]
    """
    found, _ = find(spec)
    if found.format not in (*TABLES, "text"):
        where = (
            "an array of times in it, dataset.time" if found.format == "npz" else "a table, or an NPZ file with times"
        )
        raise DataError(
            f"{found.given}: {found.format} data are a single file, so new rows cannot be told apart; allowed: {where}."
        )
    return [_part(file, found, spec) for file in found.files]


def listing(spec: FileSpec) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of each file of ``spec.path``: equal lists mean that nothing was changed."""
    files = [(file, file.stat()) for file in find(spec)[0].files]
    return [(str(file), about.st_size, about.st_mtime_ns) for file, about in files]


def _part(file: Path, found: Found, spec: FileSpec) -> Part:
    with faults.reading(file, found.format), file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    name = file.relative_to(found.root).as_posix()
    return Part(name, digest, 1 if found.format == "text" else tables.count(file, found, spec))
