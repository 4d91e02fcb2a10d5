"""Checks of the parts of a split against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import Rows
from ldsvm.datasets.duplicates import duplicates, keys_of
from ldsvm.datasets.flaws import blocks
from ldsvm.datasets.labels import coded
from ldsvm.datasets.split import Indices, Split
from ldsvm.datasets.validation import Finding, named
from ldsvm.datasets.words import listing, row_list

SMALL = 0.05  # share of the training rows below which a class is easily ignored; with many classes half an equal share


def check_parts(
    train: Rows,
    validation: Rows,
    test: Rows,
    *,
    split: Split,
    kept: Indices | None = None,
    kept_test: Indices | None = None,
) -> list[Finding]:
    """Compare the parts of a split, whose inputs have D columns or are texts; parts may be empty.

    Labels that training never sees, and parts of other inputs or types of label, are errors. Classes with few rows,
    columns with one value, and rows of another part that training has too are warnings. Messages give the numbers of
    rows in the source: ``split`` has them, ``kept`` and ``kept_test`` (see `Cleaned`) translate where rows of the
    training data and of the official test set were left out. Inputs are equal when every value is, NaN equals NaN.

    Examples
    --------
    >>> rows = Rows(np.float32([[1], [2], [3], [2]]), np.array([0, 1, 0, 1]))
    >>> split = Split(np.array([0, 1]), np.array([], dtype=np.int64), np.array([2, 3]), official_test=False)
    >>> parts = [rows.take(part) for part in (split.train, split.validation, split.test)]
    >>> check_parts(*parts, split=split)[1].text
    '1 of 2 test rows equal a training row with the same label: (test, training) row (4, 2), \
counted from 1 without a header.'
    """
    numbers = _original(split, kept, kept_test)
    findings = _rare(train.y, numbers["training"]) + _unbalanced(train.y) + _constant(train)
    keys = keys_of(train.X)
    for name, part in (("validation", validation), ("test", test)):
        if not len(part):
            continue
        different = _not_comparable(train, part, name)
        findings += different or _labels(train.y, part.y, name, numbers[name])
        if not different:
            findings += duplicates(train, part, keys, name, numbers)
    return findings


def _original(split: Split, kept: Indices | None, kept_test: Indices | None) -> dict[str, Indices]:
    """Return the row numbers in the source of each part's rows."""
    numbers = {"training": split.train, "validation": split.validation, "test": split.test}
    origins = (kept, kept, kept_test if split.official_test else kept)
    return {
        name: rows if origin is None else origin[rows]
        for (name, rows), origin in zip(numbers.items(), origins, strict=True)
    }


def _rare(y: NDArray[Any], numbers: Indices) -> list[Finding]:
    values, codes = coded(y)
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    once = counts == 1
    text = f"Training has only one row of {listing('label', values[once])} ({row_list(numbers[first[once]])})."
    return [Finding("warning", text)] if once.any() else []


def _unbalanced(y: NDArray[Any]) -> list[Finding]:
    """Return a remark on the rarest class of more than one row, where it is small."""
    values, codes = coded(y)
    counts = np.bincount(codes, minlength=len(values))
    least = min(np.flatnonzero(counts > 1), key=lambda k: counts[k], default=None)
    if least is None or counts[least] >= min(SMALL, 0.5 / len(values)) * len(y):
        return []
    text = (
        f"{listing('Label', values[[least]])} has {100 * counts[least] / len(y):.2g} % of the training rows "
        f"({counts[least]:,} of {len(y):,}), and a method may ignore them; params: {{class_weight: balanced}} gives "
        "all classes the same weight."
    )
    return [Finding("warning", text)]


def _constant(train: Rows) -> list[Finding]:
    if train.kind == "text" or len(train) < 2:
        return []
    D, varying = train.n_features or 0, _varying(train)
    total = D - len(varying)
    # A message names five at most, and those are among the first. (D may be larger than memory.)
    first = np.setdiff1d(np.arange(min(D, len(varying) + 5)), varying)[:5]
    text = f"All training rows have the same value (or none) in {named(train, first, total)}."
    return [Finding("warning", text)] if total else []


def _varying(train: Rows) -> Indices:
    """Return the sorted numbers of the columns that have different values, the missing ones aside."""
    if train.kind == "sparse":
        # Only columns with stored values can vary; the others are cut out, since SciPy needs memory for each.
        used, places = np.unique(train.X.indices, return_inverse=True)
        X = type(train.X)((train.X.data, places, train.X.indptr), shape=(len(train), len(used)))
        low, high = (getattr(X, name)(axis=0).toarray().ravel() for name in ("nanmin", "nanmax"))
    else:
        used = np.arange(train.X.shape[1])
        ends = [[of.reduce(block, axis=0) for of in (np.fmin, np.fmax)] for _, block in blocks(train.X)]
        low, high = (of.reduce(found) for of, found in zip((np.fmin, np.fmax), zip(*ends, strict=True), strict=True))
    return used[low < high].astype(np.int64)  # NaN, where every value is missing, compares as False


def _not_comparable(train: Rows, part: Rows, name: str) -> list[Finding]:
    """Return why a part cannot be compared with training at all."""
    kinds = ["text" if rows.y.dtype.kind == "O" else "whole numbers" for rows in (train, part)]
    findings = []
    if kinds[0] != kinds[1]:
        findings.append(Finding("error", f"Labels are {kinds[0]} in training, but {kinds[1]} in {name} rows."))
    inputs = [(rows.kind, rows.n_features) for rows in (train, part)]
    if inputs[0] != inputs[1]:
        shapes = [kind if D is None else f"{kind} with {D} columns" for kind, D in inputs]
        findings.append(Finding("error", f"Inputs are {shapes[0]} in training, but {shapes[1]} in {name} rows."))
    return findings


def _labels(y: NDArray[Any], y_part: NDArray[Any], name: str, numbers: Indices) -> list[Finding]:
    (trained, _), (seen, _) = coded(y), coded(y_part)
    findings = []
    new, lacking = np.setdiff1d(seen, trained), np.setdiff1d(trained, seen)
    if len(new):
        rows = row_list(numbers[np.isin(y_part, new)])
        findings.append(Finding("error", f"{listing('Label', new)} occurs in {name} {rows}, but not in training."))
    if len(lacking):
        findings.append(Finding("warning", f"No {name} row has {listing('label', lacking)}."))
    return findings
