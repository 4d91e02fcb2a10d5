"""A tiny MNIST: four IDX files written by a second, independent writer, and the catalogue entry that expects them."""

from __future__ import annotations

import gzip
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsvm.datasets.catalog import catalogue
from ldsvm.datasets.dataset import Raw, Rows
from ldsvm.datasets.entry import Entry, File


@dataclass(frozen=True)
class Mini:
    """Arrays of a small MNIST-like source (7 training and 3 test images of 2 x 5 pixels) and its catalogue."""

    arrays: dict[str, NDArray[np.uint8]]
    entry: Entry

    @property
    def entries(self) -> dict[str, Entry]:
        return {"mnist": self.entry}

    @staticmethod
    def idx_bytes(array: NDArray[np.uint8]) -> bytes:
        """The format as its authors describe it, byte by byte: no code shared with the package."""
        out = bytearray([0, 0, 8, array.ndim])
        for size in array.shape:
            out += struct.pack(">i", size)
        for value in array.ravel().tolist():
            out.append(value)
        return bytes(out)

    def write(self, folder: Path, compress: Callable[[str], bool] = lambda name: False) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in self.arrays.items():
            data = self.idx_bytes(array)
            if compress(name):
                (folder / f"{name}.gz").write_bytes(gzip.compress(data))
            else:
                (folder / name).write_bytes(data)
        return folder

    def raw(self) -> Raw:
        X, y, X_test, y_test = self.arrays.values()
        return Raw(Rows(X.reshape(7, 10), y), Rows(X_test.reshape(3, 10), y_test), "A tiny test source.")


@pytest.fixture
def mini() -> Mini:
    # Unequal sizes everywhere, so that swapped rows, columns or parts show.
    pixels = (np.arange(100) * 37 % 256).astype(np.uint8).reshape(10, 2, 5)
    labels = np.array([3, 1, 4, 1, 5, 9, 2, 6, 8, 7], dtype=np.uint8)
    official = catalogue()["mnist"]
    parts = (pixels[:7], labels[:7], pixels[7:], labels[7:])
    arrays = {file.name: part for file, part in zip(official.files, parts, strict=True)}
    files = tuple(
        File(name, part.shape, len(data), hashlib.sha256(data).hexdigest())
        for name, part in arrays.items()
        for data in [Mini.idx_bytes(part)]
    )
    without_digest = Mini(arrays, replace(official, files=files))
    return Mini(arrays, replace(official, files=files, sha256=without_digest.raw().sha256()))
