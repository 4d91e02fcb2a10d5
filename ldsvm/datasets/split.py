"""The row numbers of a split, checked, and kept in a file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.atomic import replacing
from ldsvm.datasets.dataset import DataError

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Sorted, disjoint int64 row numbers; each array is (n,) for its own n.

    ``train`` and ``validation`` index the rows of ``Dataset.train``. ``test`` indexes the rows of ``Dataset.test``
    if ``official_test`` is true, and of ``Dataset.train`` otherwise.

    Raises `DataError` for indices that are not sorted int64, that repeat, or that two parts share.

    Examples
    --------
    >>> from ldsvm.datasets import stratified
    >>> split = stratified([0, 0, 0, 0, 1, 1, 1, 1], train=0.5, validation=0.25, test=0.25, seed=0)
    >>> [len(rows) for rows in (split.train, split.validation, split.test)]
    [4, 2, 2]
    """

    train: Indices
    validation: Indices
    test: Indices
    official_test: bool

    def __post_init__(self) -> None:
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        for name, rows in parts.items():
            if rows.dtype != np.int64 or rows.ndim != 1 or np.any(np.diff(rows) <= 0) or np.any(rows < 0):
                raise DataError(f"{name} must be sorted, unique int64 row numbers, and is {rows}.")
        if self.official_test:
            del parts["test"]
        every = np.concatenate(list(parts.values()))
        shared = len(every) - len(np.unique(every))
        if shared:
            raise DataError(f"The parts {', '.join(parts)} share {shared} rows, but must be disjoint.")

    def digest(self) -> str:
        """Return 16 hexadecimal digits that change with any index: equal digests mean the same split."""
        sha = hashlib.sha256(b"official" if self.official_test else b"own")
        for rows in (self.train, self.validation, self.test):
            sha.update(len(rows).to_bytes(8, "little"))
            sha.update(rows.astype("<i8").tobytes())
        return sha.hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write the split as .npz, complete or not at all; raise `DataError` when that is impossible."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("train", "validation", "test")}
        try:
            with replacing(path) as temporary, temporary.open("wb") as file:
                np.savez(file, **arrays, official_test=self.official_test, digest=self.digest())
        except OSError as error:
            raise DataError(f"{path}: the split cannot be written ({error}).") from error

    @classmethod
    def load(cls, path: Path) -> Split:
        """Return what `save` wrote; raise `DataError` for a file that is missing, damaged or no split."""
        try:
            # Opened here, since NumPy leaves the file of a damaged archive open.
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                split = cls(file["train"], file["validation"], file["test"], bool(file["official_test"]))
                sound = split.digest() == str(file["digest"])
        except Exception as error:  # a damaged archive fails as zip, as zlib, as header, as shape or for memory
            reason = " ".join(str(error).split())
            raise DataError(f"{path}: no split can be read from it ({reason}); draw the split again.") from error
        if not sound:
            raise DataError(f"{path}: the row numbers do not have the digest of the file; draw the split again.")
        return split
