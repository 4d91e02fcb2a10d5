"""Which rows train, validate and test: drawn once from a seed, the same on every machine.

All kinds share one interface. A size is a count (int) or a fraction of the rows (float), all of one kind but for
zeros; fractions that add up to 1 use every row, and rows that no part takes are left out. ``official`` is the number
of rows of the official test set: it is then the test set, whole, and ``test`` must be 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldsvm.datasets.dataset import DataError, absent
from ldsvm.datasets.grouping import whole_groups
from ldsvm.datasets.labels import coded
from ldsvm.datasets.split import Indices, Split
from ldsvm.datasets.timestamps import parse_times
from ldsvm.datasets.words import row_list


def stratified(
    y: ArrayLike, *, train: float, validation: float, test: float = 0, official: int = 0, seed: int
) -> Split:
    """Split the rows of y (N,) so that every part has the classes in the proportions of the whole.

    The count of a class in a part is its exact share to within two rows. Raises `DataError` for mixed or impossible
    sizes and for missing labels.
    """
    labels = column("y", y)
    sizes = _sizes(len(labels), train, validation, test, official)
    keys = random_bits(seed).random_raw(len(labels))
    codes, counts, ranks = _ranks(labels, keys)
    # Sorted by rank over class size, any run of rows holds the classes in proportion; equal ranks fall at random.
    return _cut(np.lexsort((keys, (ranks + 0.5) / counts[codes])), np.cumsum(sizes), official)


def shuffled(n: int, *, train: float, validation: float, test: float = 0, official: int = 0, seed: int) -> Split:
    """Split n rows at random. Raises `DataError` for mixed or impossible sizes.

    Examples
    --------
    >>> split = shuffled(1168, train=0.8, validation=0.2, official=777, seed=0)
    >>> len(split.train), len(split.validation), len(split.test)
    (934, 234, 777)
    """
    if not _is_whole(n) or n < 1:
        raise DataError(f"n={n!r} must be a whole number of at least 1.")
    sizes = _sizes(n, train, validation, test, official)
    return _cut(np.argsort(random_bits(seed).random_raw(n), kind="stable"), np.cumsum(sizes), official)


def balanced(y: ArrayLike, *, train: float, validation: float, test: float = 0, official: int = 0, seed: int) -> Split:
    """Draw equally many rows of every class of y (N,) for each part.

    Fractions are of the largest balanced set, which holds every row of the rarest class. For one seed and equal
    counts of test and validation rows, these rows are the same at every training size, and a smaller training set is
    part of a larger one, so a learning curve compares like with like. Raises `DataError` for counts that do not
    divide by the number of classes or exceed the rarest class.
    """
    labels = column("y", y)
    _, counts, ranks = _ranks(labels, random_bits(seed).random_raw(len(labels)))
    used, n_valid, kept = _sizes(int(counts.min()), train, validation, test, official, classes=len(counts))
    # Each part takes its own run of ranks; training comes last, so that it alone grows with its size.
    part = np.searchsorted([kept, kept + n_valid, kept + n_valid + used], ranks, side="right")
    rows = [np.flatnonzero(part == place) for place in (2, 1, 0)]
    return Split(rows[0], rows[1], np.arange(official) if official else rows[2], official_test=official > 0)


def grouped(
    groups: ArrayLike,
    *,
    train: float,
    validation: float,
    test: float = 0,
    official: int = 0,
    seed: int,
    y: ArrayLike | None = None,
    name: str = "groups",
    rows: Indices | None = None,
) -> Split:
    """Split the rows of groups (N,) so that no group has rows in two parts.

    Sizes are met as nearly as whole groups allow: of several random orders of the groups, each cut at the ends of
    groups nearest to the sizes, the order that comes nearest is taken; given labels y (N,), nearest means the rows
    of every class in every part. No part that has a size stays empty. Messages call the groups ``name``, and their
    rows by the numbers ``rows`` (N,) in the source, if these are other than 0, 1, …. Raises `DataError` for missing
    groups, fewer groups than parts, and mixed or impossible sizes.

    Examples
    --------
    >>> grouped(["a", "b", "a", "c"], train=0.5, validation=0.5, seed=0).validation.tolist()
    [0, 2]
    """
    names = column(name, groups, rows)
    sizes = np.array(_sizes(len(names), train, validation, test, official))
    codes, counts = numbered(name, names)
    parts = np.count_nonzero(sizes)
    if len(counts) < parts:
        raise DataError(f"{name} has {len(counts)} distinct values, but {parts} parts need at least one group each.")
    classes = np.zeros(len(names), dtype=np.int64) if y is None else numbered("y", column("y", y))[0]
    if len(classes) != len(names):
        raise DataError(f"y has {len(classes)} rows, but {name} has {len(names)}: both need one value per row.")
    part = whole_groups(codes, counts, classes, sizes, random_bits(seed))
    return _cut(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part, minlength=4)[:3]), official)


def ordered(
    times: ArrayLike,
    *,
    train: float,
    validation: float,
    test: float = 0,
    official: int = 0,
    name: str = "times",
    rows: Indices | None = None,
) -> Split:
    """Split the rows by times (N,): the oldest train, later ones validate, the latest of those used test.

    times are numbers, dates, or ISO 8601 strings (without an offset: taken as UTC). Rows of equal time stay
    together, in the earlier part, so that no row of a later part is as old as one of an earlier part; a part can
    thus be larger than asked for, and the next one smaller. Messages call the times ``name``, and their rows by the
    numbers ``rows`` (N,) in the source, if these are other than 0, 1, …. Raises `DataError` for missing times, text
    that is not a time, a part that would be empty, and mixed or impossible sizes.

    Examples
    --------
    >>> ordered([2020, 2018, 2019, 2018], train=0.5, validation=0.25, test=0.25).train.tolist()
    [1, 3]
    """
    found = parse_times(column(name, times, rows), name, rows)
    sizes = _sizes(len(found), train, validation, test, official)
    order = np.argsort(found, kind="stable")
    in_order = found[order]
    ends = np.searchsorted(in_order, in_order[np.cumsum(sizes) - 1], side="right")
    for part, size, taken in zip(("validation", "test"), sizes[1:], np.diff(ends), strict=True):
        if size and not taken:
            raise DataError(f"{part} would be empty: rows with equal times stay together, in the part before.")
    return _cut(order, ends, official)


def random_bits(seed: int) -> np.random.PCG64:
    """Return the source of one random number per row; sorting by them shuffles."""
    if not _is_whole(seed) or seed < 0:
        raise DataError(f"seed={seed!r} must be a whole number, zero or more.")
    # NumPy promises these raw bits for ever, but reserves the right to change what Generator.permutation does.
    return np.random.PCG64(seed)


def _cut(order: Indices, ends: NDArray[np.intp], official: int) -> Split:
    train, validation, test, _ = (np.sort(part) for part in np.split(order, ends))
    return Split(train, validation, np.arange(official) if official else test, official_test=official > 0)


def _ranks(labels: NDArray[Any], keys: NDArray[np.uint64]) -> tuple[Indices, Indices, Indices]:
    """Return the class of each row (N,), the class sizes (K,), and each row's shuffled place in its class (N,)."""
    codes, counts = numbered("y", labels)
    order = np.lexsort((keys, codes))
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[order] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return codes, counts, ranks


def _sizes(n: int, train: float, validation: float, test: float, official: int, classes: int = 1) -> list[int]:
    """Return the rows of the three parts, of n rows in all; with several classes of n rows, the rows of each class."""
    sizes = {"train": train, "validation": validation, "test": test}
    text = ", ".join(f"{name}={size!r}" for name, size in sizes.items())
    if not _is_whole(official) or official < 0 or (official and test != 0):
        raise DataError(f"official={official!r}, test={test!r}: give the rows of an official test set, or a test size.")
    given = [size for size in sizes.values() if size != 0]
    whole = all(_is_whole(size) for size in given)
    if whole and any(size % classes for size in given):
        raise DataError(f"{text} cannot be balanced: each size must be a multiple of the {classes} classes.")
    if whole:
        counts = [int(size) // classes for size in sizes.values()]
    elif all(isinstance(size, float) and 0 < size <= 1 for size in given):
        # Rounding the running total, and not each size, lets fractions that add up to 1 use every row.
        ends = np.floor(np.cumsum(list(sizes.values())) * n + 0.5).astype(np.int64)
        counts = np.diff(ends, prepend=0).tolist()
    else:
        raise DataError(f"{text}: give three counts, or three fractions between 0 and 1.")
    rounded = any(size and not rows for size, rows in zip(sizes.values(), counts, strict=True))
    if min(counts) < 0 or not counts[0] or rounded or sum(counts) > n:
        rarest = f", {n} of every class, as the rarest has" if classes > 1 else ""
        rule = "train needs at least one row, no size may be negative or a fraction of a row"
        raise DataError(f"{text}: {rule}, and {n * classes} rows are available in all{rarest}.")
    return counts


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def column(name: str, values: ArrayLike, rows: Indices | None = None) -> NDArray[Any]:
    """Return values (N,), checked to be there in every row; messages call them ``name``, see `grouped` for ``rows``."""
    found: NDArray[Any] = np.asarray(values)
    if found.ndim != 1 or not len(found):
        raise DataError(f"{name} has shape {found.shape}, but must be a row of at least one value.")
    missing = np.flatnonzero(absent(found))
    if len(missing):
        where = row_list(missing if rows is None else rows[missing])
        raise DataError(f"{name} is missing in {where}, but this split needs it in every row.")
    return found


def numbered(name: str, values: NDArray[Any]) -> tuple[Indices, Indices]:
    """Return each row's distinct value as a number (N,), in sorted order, and how often each occurs (K,)."""
    try:
        _, codes = coded(values)
    except TypeError as error:
        raise DataError(f"{name} mixes numbers and texts, but must hold one or the other.") from error
    return codes, np.bincount(codes)
