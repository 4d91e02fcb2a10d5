"""Which rows train, validate and test: drawn once from a seed, the same on every machine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldsvm.datasets.dataset import DataError

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Sorted, disjoint int64 row numbers; each array is (n,) for its own n.

    ``train`` and ``validation`` index the rows of ``Dataset.X``. ``test`` indexes the rows of ``Dataset.X_test``
    if ``official_test`` is true, and of ``Dataset.X`` otherwise.

    Raises `DataError` for indices that are not sorted int64, that repeat, or that two parts share.

    Examples
    --------
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> split = stratified(y, train=0.5, validation=0.25, test=0.25, seed=0)
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
                raise DataError(f"{name} must be sorted row numbers of int64 without repetition, and is {rows}.")
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


def stratified(y: ArrayLike, *, train: float, validation: float, test: float, seed: int) -> Split:
    """Split the rows of y (N,) so that every part has the classes in the proportions of the whole.

    Each size is a count (int) or a fraction of N (float), all three of one kind but for zeros; fractions that add
    up to 1 use every row. The count of a class in a part is its exact share to within two rows. Raises
    `DataError` for mixed or impossible sizes.
    """
    labels = _labels("y", y)
    cuts = _cuts(len(labels), {"train": train, "validation": validation, "test": test})
    keys = _keys(len(labels), seed)
    codes, counts, ranks = _ranks(labels, keys)
    # Sorted by rank over class size, any run of rows holds the classes in proportion; equal ranks fall at random.
    order = np.lexsort((keys, (ranks + 0.5) / counts[codes]))
    rows = [np.sort(part) for part in np.split(order, cuts)]
    return Split(rows[0], rows[1], rows[2], official_test=False)


def mnist10(y: ArrayLike, y_test: ArrayLike, *, train: int = 10_000, validation: int = 10_000, seed: int) -> Split:
    """Draw the ten-class protocol: training and validation rows at random from y (N,), all of y_test (M,) for testing.

    Raises `DataError` for sizes that are no positive counts or do not fit into N.
    """
    n = len(_labels("y", y))
    _count("train", train, n)
    _count("validation", validation, n - train)
    order = np.argsort(_keys(n, seed), kind="stable")
    rows = np.sort(order[:train]), np.sort(order[train : train + validation])
    return Split(*rows, np.arange(len(_labels("y_test", y_test)), dtype=np.int64), official_test=True)


def balanced(digits: ArrayLike, digits_test: ArrayLike, *, train: int, validation: int = 10_000, seed: int) -> Split:
    """Draw the odd/even protocol: equally many rows of every digit for training and for validation.

    ``digits`` (N,) are the original labels, not their parity; all of ``digits_test`` (M,) is the test set. For one
    seed and validation size the validation rows are the same at every training size, and a smaller training set
    is part of a larger one, so a learning curve compares like with like. Raises `DataError` for sizes that do not
    divide by the number of digits or exceed the rarest digit.
    """
    labels = _labels("digits", digits)
    _, counts, ranks = _ranks(labels, _keys(len(labels), seed))
    held, used = (_per_class(*size, len(counts)) for size in (("validation", validation), ("train", train)))
    if held + used > counts.min():
        raise DataError(
            f"train={train} and validation={validation} take {held + used} rows of every digit, but only "
            f"{counts.min()} are available of {np.unique(labels)[counts.argmin()]}."
        )
    rows = np.flatnonzero((ranks >= held) & (ranks < held + used)), np.flatnonzero(ranks < held)
    return Split(*rows, np.arange(len(_labels("digits_test", digits_test)), dtype=np.int64), official_test=True)


def _keys(n: int, seed: int) -> NDArray[np.uint64]:
    """Return one random number per row; sorting by it shuffles."""
    if not _is_whole(seed) or seed < 0:
        raise DataError(f"seed={seed!r} must be a whole number, zero or more.")
    # NumPy promises these raw bits for ever, but reserves the right to change what Generator.permutation does.
    return np.random.PCG64(seed).random_raw(n)


def _ranks(labels: NDArray[np.generic], keys: NDArray[np.uint64]) -> tuple[Indices, Indices, Indices]:
    """Return the class of each row (N,), the class sizes (K,), and each row's shuffled place in its class (N,)."""
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.lexsort((keys, codes))
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[order] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return codes, counts, ranks


def _cuts(n: int, sizes: dict[str, float]) -> list[int]:
    """Return where train, validation and test end in a shuffled order of n rows."""
    given = {name: size for name, size in sizes.items() if size != 0}
    if all(_is_whole(size) for size in given.values()):
        cuts = np.cumsum([int(size) for size in sizes.values()])
    elif all(isinstance(size, float) and 0 < size <= 1 for size in given.values()):
        # Rounding the running total, and not each size, lets fractions that add up to 1 use every row.
        cuts = np.floor(np.cumsum(list(sizes.values())) * n + 0.5).astype(np.int64)
    else:
        raise DataError(f"{_told(sizes)}: give three counts, or three fractions between 0 and 1.")
    if min(sizes.values()) < 0 or cuts[0] == 0 or cuts[-1] > n:
        raise DataError(f"{_told(sizes)}: train needs at least one row, no size is negative, and {n} are available.")
    return [int(cut) for cut in cuts]


def _told(sizes: dict[str, float]) -> str:
    return ", ".join(f"{name}={size!r}" for name, size in sizes.items())


def _per_class(name: str, size: int, classes: int) -> int:
    _count(name, size, None)
    if size % classes:
        raise DataError(f"{name}={size} cannot be balanced: it must be a multiple of the {classes} digits.")
    return size // classes


def _count(name: str, size: int, available: int | None) -> None:
    if not _is_whole(size) or size < 1:
        raise DataError(f"{name}={size!r} must be a whole number of at least 1.")
    if available is not None and size > available:
        raise DataError(f"{name}={size} is too large: {available} rows are available.")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _labels(name: str, y: ArrayLike) -> NDArray[np.generic]:
    labels: NDArray[np.generic] = np.asarray(y)
    if labels.ndim != 1 or not len(labels):
        raise DataError(f"{name} has shape {labels.shape}, but must be a row of at least one label.")
    return labels
