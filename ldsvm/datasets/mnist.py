"""MNIST and Fashion-MNIST: the four original IDX files where the user has them, else the same bytes from OpenML."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import cache, idx, local
from ldsvm.datasets.dataset import DataError, Dataset, Places, Raw, Rows, finish, require
from ldsvm.datasets.entry import Entry, File

# X, y, X_test, y_test, each in the shape its file has; the catalogue lists the files in this order.
Arrays = list[NDArray[np.uint8]]
ON_OPENML = {"mnist": "mnist_784", "fashion-mnist": "Fashion-MNIST"}  # version 1 of each


def load(entry: Entry, places: Places) -> Dataset:
    """Return the images with X (60000, 784) and X_test (10000, 784) in [0, 1], from the prepared file if it is sound.

    Raises `DataError` when no source has the data, when a raw file is not the one of the catalogue, and when the
    prepared file cannot be written or would lie beside the raw ones.
    """
    local.keep_apart(entry, places)
    prepared = local.prepared(entry, places)
    raw = cache.read(prepared, entry.sha256)
    if raw is None:
        raw = require(_read(entry, places), entry)
        cache.write(prepared, raw)
    rows, columns = entry.files[0].shape[1:]
    return finish(raw, entry, full_scale=255, image_shape=(rows, columns))


def items(entry: Entry, places: Places) -> list[local.Item]:
    """Return the four raw files, each there or not."""
    found = [(file, _find(entry, file, places)) for file in entry.files]
    return [local.Item(file.name, path, partial(idx.read, path or Path(file.name), file)) for file, path in found]


def _read(entry: Entry, places: Places) -> Raw:
    readers = {"files": _from_files, "openml": _from_openml}
    for kind, sentence in entry.sources.items():
        arrays = readers[kind](entry, places)
        if arrays is not None:
            X, y, X_test, y_test = arrays
            return Raw(Rows(X.reshape(len(X), -1), y), Rows(X_test.reshape(len(X_test), -1), y_test), sentence)
    raise DataError(f"{_missing(entry, places)}, or allow the download.")


def _from_files(entry: Entry, places: Places) -> Arrays | None:
    paths = [_find(entry, file, places) for file in entry.files]
    found = [idx.read(path, file) for path, file in zip(paths, entry.files, strict=True) if path is not None]
    return found if len(found) == len(entry.files) else None


def _find(entry: Entry, file: File, places: Places) -> Path | None:
    return local.find(entry, places, file.name, f"{file.name}.gz")


def _from_openml(entry: Entry, places: Places) -> Arrays | None:
    if not places.download:
        return None
    from sklearn.datasets import fetch_openml

    try:
        # The prepared file is the cache: a second copy of the download would only take space.
        bunch = fetch_openml(ON_OPENML[entry.name], version=1, as_frame=False, cache=False)
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"{_missing(entry, places)}, since OpenML gave no data ({error}).") from error
    return _as_files(entry, np.asarray(bunch.data).astype(np.uint8), np.asarray(bunch.target).astype(np.uint8))


def _as_files(entry: Entry, X: NDArray[np.uint8], y: NDArray[np.uint8]) -> Arrays:
    """Cut OpenML's table, training rows first, into the arrays of the four files and check each file's checksum."""
    train = entry.files[0].shape[0]
    arrays = []
    for part, file in zip((X[:train], y[:train], X[train:], y[train:]), entry.files, strict=True):
        if part.size != np.prod(file.shape):
            raise DataError(f"OpenML: {file.name} needs sizes {file.shape}, but the table gives {part.shape}.")
        array = part.reshape(file.shape)
        idx.check("OpenML", idx.to_bytes(array), file)
        arrays.append(array)
    return arrays


def _missing(entry: Entry, places: Places) -> str:
    file = next(file for file in entry.files if _find(entry, file, places) is None)
    how = f"plain or as .gz, with sha256 {file.sha256} of the uncompressed bytes"
    return local.missing(entry, places, file.name, how)
