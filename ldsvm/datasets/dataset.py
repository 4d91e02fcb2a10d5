"""What every source returns: rows as they are stored, and the ``Dataset`` made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldsvm.datasets.column import Column
from ldsvm.datasets.entry import Entry
from ldsvm.datasets.large import PickedRows, in_file
from ldsvm.datasets.stored_texts import StoredTexts

ROWS = 50_000  # that a digest takes at a time


class DataError(ValueError):
    """Data are missing, damaged or not as requested; the message is one sentence."""


@dataclass(frozen=True)
class Places:
    """Where a source may read and write: raw files in ``data_home``, prepared ones in ``cache_dir``, the network."""

    cache_dir: Path
    data_home: Path | None
    download: bool


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples: inputs, labels, and what splits by group or by time need.

    X is one of four: dense (N, D) uint8 or float32, NaN where a value is missing; sparse, an (N, D) float32 CSR
    matrix; text, (N,) str in an object array; or, with ``table``, the (N, D) float64 codes of a table's columns, see
    `ldsvm.datasets.files.roles`, which lie in a file where they are many, see `ldsvm.datasets.large`. y (N,) are whole
    numbers, or str in an object array; a missing label is None. ``columns`` are the D names of the inputs, or None.
    ``groups`` (N,) and ``times`` (N,), numbers, dates or str, are None where the source has none.
    """

    X: Any = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    columns: tuple[str, ...] | None = None
    groups: NDArray[Any] | None = field(default=None, repr=False)
    times: NDArray[Any] | None = field(default=None, repr=False)
    table: tuple[Column, ...] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def kind(self) -> str:
        """What X is: ``dense``, ``sparse``, ``text`` or ``table``."""
        if self.table is not None:
            return "table"
        if hasattr(self.X, "indptr"):
            return "sparse"
        return "dense" if self.X.ndim == 2 else "text"

    @property
    def n_features(self) -> int | None:
        """D, or None for texts, which have no columns before a vocabulary is chosen."""
        return None if self.kind == "text" else int(self.X.shape[1])

    def take(self, rows: ArrayLike) -> Rows:
        """Return the rows of these numbers (n,), or where a mask (N,) is true."""
        which = np.asarray(rows)
        which = which if which.size else which.astype(np.int64)  # an empty list is no list of floats
        found = {name: getattr(self, name) for name in ("y", "groups", "times")}
        parts: dict[str, Any] = {name: part[which] for name, part in found.items() if part is not None}
        return replace(self, X=PickedRows(self.X, which) if in_file(self.X) else self.X[which], **parts)


@dataclass(frozen=True, eq=False)
class Raw:
    """The content of a source before scaling; ``test`` is its official test set, or None."""

    train: Rows
    test: Rows | None
    source: str

    def sha256(self) -> str:
        """SHA-256 of the content: for each array a line ``name dtype shape``, then its bytes, see data/README.md."""
        digest = hashlib.sha256()
        for rows, ending in ((self.train, ""), (self.test, "_test")):
            for name, array in () if rows is None else _arrays(rows):
                # The line tells apart equal bytes of other shapes, such as other rows or another test size.
                kind, blocks = _bytes(array)
                digest.update(f"{name}{ending} {kind} {array.shape}\n".encode())
                for block in blocks:
                    digest.update(block)
            for texts in () if rows is None else stored_texts(rows):
                for block in texts.content():
                    digest.update(block)
        return digest.hexdigest()


def stored_texts(rows: Rows) -> list[StoredTexts]:
    """Return the texts of a table that lie in files, column by column."""
    return [column.values for column in rows.table or () if isinstance(column.values, StoredTexts)]


def _arrays(rows: Rows) -> Iterable[tuple[str, NDArray[Any]]]:
    if rows.kind == "sparse":
        yield "X.data", rows.X.data
        # SciPy chooses 32 or 64 bits by size and history; the content is the same.
        yield from (("X." + name, getattr(rows.X, name).astype(np.int64)) for name in ("indices", "indptr"))
        yield "X.shape", np.array(rows.X.shape, dtype=np.int64)
    else:
        yield "X", rows.X
    yield "y", rows.y
    for name in ("groups", "times"):
        if getattr(rows, name) is not None:
            yield name, getattr(rows, name)
    if rows.columns is not None:
        yield "columns", np.array(rows.columns, dtype=object)
    if rows.table is not None:
        yield "table", np.array([json.dumps(asdict(without_stored(column))) for column in rows.table], dtype=object)


def without_stored(column: Column) -> Column:
    """Return a column without the texts that lie in a file, which no JSON holds."""
    return replace(column, values=()) if isinstance(column.values, StoredTexts) else column


def _bytes(array: NDArray[Any]) -> tuple[str, Iterable[Any]]:
    """Return the name of an array's type and its bytes; texts are their lengths (-1: missing), then UTF-8."""
    if array.dtype.kind in "biufM":
        parts = (array[start : start + ROWS] for start in range(0, len(array), ROWS))
        return str(array.dtype), (np.ascontiguousarray(part).view(f"V{array.itemsize}").data for part in parts)
    lengths = (-1 if text is None else len(_utf8(text)) for text in array)
    first = np.fromiter(lengths, dtype="<i8", count=len(array))
    # Encoded twice, so that there is never a second copy of all texts.
    parts = (array[start : start + 1000] for start in range(0, len(array), 1000))
    return "text", chain([first.data], (b"".join(_utf8(text) for text in part if text is not None) for part in parts))


def _utf8(text: object) -> bytes:
    return str(text).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set ready for splitting, with the facts needed to cite it and to prove which bytes were used.

    ``train`` are the rows to split, ``test`` the official test set, or None where the source has none; dense and
    sparse inputs are float32, texts are str. ``image_shape`` is (rows, columns) with rows * columns = D, or None when
    the inputs are no image. ``source`` is a sentence for people, ``sha256`` the digest of the unscaled content.
    ``notes`` are sentences about what was found while reading.
    """

    name: str
    train: Rows
    test: Rows | None
    image_shape: tuple[int, int] | None
    source: str
    sha256: str
    licence: str
    citation: str
    notes: tuple[str, ...] = ()

    @property
    def X(self) -> Any:
        """Inputs (N, D), or (N,) texts."""
        return self.train.X

    @property
    def y(self) -> NDArray[Any]:
        """Labels (N,): int64 or str."""
        return self.train.y

    @property
    def X_test(self) -> Any:
        """Inputs of the official test set (M, D), or (M,) texts; None where there is none."""
        return None if self.test is None else self.test.X

    @property
    def y_test(self) -> NDArray[Any] | None:
        """Labels of the official test set (M,); None where there is none."""
        return None if self.test is None else self.test.y


def require(raw: Raw, entry: Entry) -> Raw:
    """Return ``raw`` unchanged when its content is the one the catalogue promises; raise `DataError` otherwise."""
    found = raw.sha256()
    if found != entry.sha256:
        raise DataError(f"{entry.name}: the content has sha256 {found}, but must have {entry.sha256} by the catalogue.")
    return raw


def finish(
    raw: Raw, entry: Entry, *, full_scale: int | None = None, image_shape: tuple[int, int] | None = None
) -> Dataset:
    """Scale pixels from 0…full_scale to [0, 1], where there are any, and attach what the catalogue knows."""

    def finished(rows: Rows) -> Rows:
        y = rows.y.astype(np.int64) if rows.y.dtype.kind in "biu" else rows.y
        # Without the dtype, some NumPy promotions would pass through float64 and double the memory.
        X = rows.X if full_scale is None else np.divide(rows.X, full_scale, dtype=np.float32)
        return replace(rows, X=X, y=y)

    return Dataset(
        name=entry.name,
        train=finished(raw.train),
        test=None if raw.test is None else finished(raw.test),
        image_shape=image_shape,
        source=raw.source,
        sha256=entry.sha256,
        licence=entry.licence,
        citation=entry.citation,
    )


def absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values (N,) are missing: None, NaN (not a number) or NaT (not a time)."""
    if values.dtype.kind not in "fcmMO":
        return np.zeros(len(values), dtype=bool)
    unequal = np.not_equal(values, values).astype(bool)  # only NaN and NaT differ from themselves
    nothing = np.array(None, dtype=object)
    return unequal | np.equal(values, nothing).astype(bool) if values.dtype.kind == "O" else unequal
