"""What every source hands over: raw integers while reading, a ``Dataset`` for everyone else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ldsvm.datasets.catalog import Entry


class DataError(ValueError):
    """Data that is missing, damaged or asked for in an impossible way; the message is one sentence."""


@dataclass(frozen=True)
class Places:
    """Where a source may read and write: raw files in ``data_home``, prepared ones in ``cache_dir``, the network."""

    cache_dir: Path
    data_home: Path | None
    download: bool


@dataclass(frozen=True, eq=False)
class Raw:
    """Pixels and labels as the source stores them, before scaling.

    X (N, D) and X_test (M, D) are uint8, y (N,) and y_test (M,) are uint8; the test pair is None for a source
    without an official test set.
    """

    X: NDArray[np.uint8]
    y: NDArray[np.uint8]
    X_test: NDArray[np.uint8] | None
    y_test: NDArray[np.uint8] | None
    source: str

    def sha256(self) -> str:
        """SHA-256 of the content: for each array a line ``name dtype shape``, then its bytes in C order."""
        digest = hashlib.sha256()
        for name in ("X", "y", "X_test", "y_test"):
            array = getattr(self, name)
            if array is not None:
                # The line keeps the same bytes cut differently (other rows, another test size) from looking equal.
                digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set ready for training, with the facts needed to cite it and to prove which bytes were used.

    X is (N, D) float32 and y (N,) int64; X_test (M, D) and y_test (M,) are the official test set, or None where
    the source has none. ``image_shape`` is (rows, columns) with rows * columns = D, or None when the features
    are no image. ``source`` is a sentence for people, ``sha256`` the digest of the unscaled content.
    """

    name: str
    X: NDArray[np.float32] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)
    X_test: NDArray[np.float32] | None = field(repr=False)
    y_test: NDArray[np.int64] | None = field(repr=False)
    image_shape: tuple[int, int] | None
    source: str
    sha256: str
    licence: str
    citation: str


def require(raw: Raw, entry: Entry) -> Raw:
    """Return ``raw`` unchanged when its content is the one the catalogue promises; raise `DataError` otherwise."""
    found = raw.sha256()
    if found != entry.sha256:
        raise DataError(f"{entry.name}: the content has sha256 {found}, but the catalogue allows only {entry.sha256}.")
    return raw


def finish(raw: Raw, entry: Entry, *, full_scale: int, image_shape: tuple[int, int]) -> Dataset:
    """Scale pixels from 0…full_scale to [0, 1] and attach what the catalogue knows."""

    def scaled(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        # Without the dtype, some NumPy promotions would pass through float64 and double the memory.
        return np.divide(pixels, full_scale, dtype=np.float32)

    def labels(y: NDArray[np.uint8]) -> NDArray[np.int64]:
        return y.astype(np.int64)

    test: dict[str, Any] = {"X_test": None, "y_test": None}
    if raw.X_test is not None and raw.y_test is not None:
        test = {"X_test": scaled(raw.X_test), "y_test": labels(raw.y_test)}
    return Dataset(
        name=entry.name,
        X=scaled(raw.X),
        y=labels(raw.y),
        **test,
        image_shape=image_shape,
        source=raw.source,
        sha256=entry.sha256,
        licence=entry.licence,
        citation=entry.citation,
    )
