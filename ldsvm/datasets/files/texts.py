"""A folder of texts: one subfolder per class, one file per text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ldsvm.datasets.dataset import DataError, Rows
from ldsvm.datasets.files.find import Found
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.room import check_room

LOOK = 2**18  # bytes after which it is looked how much memory is free, which takes a millisecond


def read(train: Found, test: Found | None, _spec: FileSpec) -> tuple[Rows, Rows | None]:
    """Return the texts (N,) in order of class and name, labelled by their class folders; UTF-8, else Latin-1."""
    return _read(train), None if test is None else _read(test)


def _read(found: Found) -> Rows:
    X = np.empty(len(found.files), dtype=object)
    X[:] = list(_texts(found.files))
    y = np.empty(len(found.files), dtype=object)
    y[:] = [file.relative_to(found.root).parts[0] for file in found.files]
    return Rows(X, y)


def _texts(files: Sequence[Path]) -> Iterator[str]:
    needed = 0
    for file in files:
        try:
            needed += 5 * file.stat().st_size  # as bytes, and as text of 4 bytes each
            if needed > LOOK:
                check_room(file, needed, "its letters")
                needed = 0
            data = file.read_bytes()
        except OSError as error:
            raise DataError(f"{file}: cannot be read ({error.strerror}).") from error
        yield _decoded(data)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # knows every byte
