"""Folds of cross-validation: each row is a test row of one of them, and the other rows train and validate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldsvm.datasets import splits
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.split import Indices, Split
from ldsvm.datasets.words import listing

FEW_TEST = 100  # test rows below which an error is known to some six points at best


def cross_validated(
    y: ArrayLike,
    *,
    folds: int,
    validation: float,
    seed: int,
    groups: ArrayLike | None = None,
    name: str = "groups",
    rows: Indices | None = None,
) -> list[Split]:
    """Return one split of the rows of y (N,) for each fold, whose rows are the test rows; rows differ by one at most.

    The counts of a class differ by one at most too. With groups (N,) no group has rows in two folds, and none both
    trains and validates; the folds are then as equal as that allows. validation: share of the rows outside a fold,
    drawn in the same way; fold i draws it with seed + i. Messages call the groups ``name``, and their rows by the
    numbers ``rows`` (N,) in the source, if these are other than 0, 1, …. Raises `DataError` for a class with fewer
    rows than folds, fewer groups than folds, a fold or part that would be empty, and missing labels or groups.

    Examples
    --------
    >>> found = cross_validated([0, 0, 0, 1, 1, 1], folds=3, validation=0.5, seed=0)
    >>> [len(split.test) for split in found], sorted(np.concatenate([split.test for split in found]).tolist())
    ([2, 2, 2], [0, 1, 2, 3, 4, 5])
    """
    labels, kept = splits.column("y", y), None if groups is None else splits.column(name, groups, rows)
    _check_classes(labels, folds)
    fold = _by_class(labels, folds, seed) if kept is None else _by_group(labels, kept, folds, seed, name)
    return [_split(labels, kept, fold == i, validation, seed + i, name, rows) for i in range(folds)]


def _check_classes(labels: NDArray[Any], folds: int) -> None:
    _, counts = splits.numbered("y", labels)
    least = int(counts.min())
    if least < folds:
        names = np.unique(labels)[counts == least]
        fewer = f"at most {least} folds, or " if least > 1 else ""
        raise DataError(
            f"split.folds is {folds}, but there {'is 1 row' if least == 1 else f'are {least} rows'} of "
            f"{listing('label', names)}; allowed: {fewer}labels with at least {folds} rows each, see dataset.classes."
        )


def _by_class(labels: NDArray[Any], folds: int, seed: int) -> Indices:
    """Return the fold of each row (N,): the rows of each class in turn, at random."""
    codes, _ = splits.numbered("y", labels)
    order = np.lexsort((splits.random_bits(seed).random_raw(len(labels)), codes))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % folds
    return fold


def _by_group(labels: NDArray[Any], groups: NDArray[Any], folds: int, seed: int, name: str) -> Indices:
    """Return the fold of each row (N,), with whole groups and classes as nearly in proportion as these allow."""
    from sklearn.model_selection import StratifiedGroupKFold

    (y, _), (codes, counts) = splits.numbered("y", labels), splits.numbered(name, groups)
    if len(counts) < folds:
        raise DataError(
            f"split.folds is {folds}, but {name} has {len(counts)} distinct values; allowed: at most as many folds as "
            "groups."
        )
    fold = np.empty(len(labels), dtype=np.int64)
    for i, (_, test) in enumerate(StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(y, y, codes)):
        fold[test] = i
    if np.bincount(fold, minlength=folds).min() == 0:
        raise DataError(
            f"split.folds is {folds}, but whole groups of {name}, of which the largest has {counts.max():,} of "
            f"{len(y):,} rows, leave one empty; allowed: fewer folds."
        )
    return fold


def _split(
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    test: NDArray[np.bool_],
    validation: float,
    seed: int,
    name: str,
    rows: Indices | None,
) -> Split:
    rest = np.flatnonzero(~test)
    sizes: dict[str, Any] = {"train": 1 - validation, "validation": validation, "seed": seed}
    try:
        if groups is None:
            inner = splits.stratified(labels[rest], **sizes)
        else:
            numbers = rest if rows is None else rows[rest]
            inner = splits.grouped(groups[rest], y=labels[rest], name=name, rows=numbers, **sizes)
    except DataError as error:
        raise DataError(f"split.validation is {validation}, of the {len(rest)} rows outside a fold: {error}") from error
    return Split(rest[inner.train], rest[inner.validation], np.flatnonzero(test), official_test=False)
