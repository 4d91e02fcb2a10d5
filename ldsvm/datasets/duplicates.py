"""Duplicate rows: those of one part of a split that another part has too, and keys by which to find them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.column import Column
from ldsvm.datasets.dataset import Rows
from ldsvm.datasets.flaws import block_of, blocks, step_of
from ldsvm.datasets.labels import coded
from ldsvm.datasets.split import Indices
from ldsvm.datasets.stored_texts import StoredTexts
from ldsvm.datasets.validation import Finding
from ldsvm.datasets.words import row_list


def duplicates(
    train: Rows, part: Rows, keys: NDArray[np.uint64], name: str, numbers: dict[str, Indices]
) -> list[Finding]:
    """Return how many rows of a part are training rows too, with the label of one of those or with none of theirs."""
    _, codes = coded(np.concatenate([train.y, part.y]))
    # A label's code times an odd number keeps equal inputs of different labels apart; uint64 wraps around.
    marks = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ours = keys_of(part.X)
    findings, left = [], np.arange(len(part))
    for label, shift in (("the same", marks), ("another", np.zeros_like(marks))):
        twins = _first(keys + shift[: len(keys)], (ours + shift[len(keys) :])[left])
        rows, twins = left[twins >= 0], twins[twins >= 0]
        equal = _equal(part.X, rows, train.X, twins)
        rows, twins = rows[equal], twins[equal]
        left = np.setdiff1d(left, rows)
        if len(rows):
            pairs = list(zip(numbers[name][rows].tolist(), numbers["training"][twins].tolist(), strict=True))
            start = f"{len(rows):,} of {len(part):,} {name} rows equal a training row with {label} label"
            findings.append(Finding("warning", f"{start}: ({name}, training) {row_list(pairs)}."))
    return findings


def keys_of(X: Any) -> NDArray[np.uint64]:
    """Return a number per row (N,), the same for equal rows and, but for one pair in 2**40 or so, for no others."""
    if X.ndim == 1:
        return np.fromiter(map(hash, X), dtype=np.int64, count=len(X)).view(np.uint64)
    keys = np.empty(X.shape[0], dtype=np.uint64)
    sparse = hasattr(X, "indptr")
    factors = None if sparse else _factors(np.arange(X.shape[1]))
    for start, block in blocks(X):
        bits = _patterns(block)
        keys[start : start + block.shape[0]] = _row_sums(bits) if sparse else bits @ factors
    return keys


def content_keys(rows: Rows) -> NDArray[np.uint64]:
    """Return a number per row (N,) as `keys_of` does, which is the same in every reading: of words, not of their codes.

    Examples
    --------
    >>> codes, towns = np.array([[0.0], [1.0]]), [("Bonn", "Ulm"), ("Aachen", "Bonn", "Ulm")]
    >>> of = [content_keys(Rows(codes, codes[:, 0], table=(Column("town", "category", some),))) for some in towns]
    >>> bool(of[0][0] == of[1][1]), bool(of[0][0] == of[1][0])
    (True, False)
    """
    if rows.kind == "text":
        return _hashes(rows.X)
    if rows.table is None:
        return keys_of(rows.X)
    keys = np.zeros(len(rows), dtype=np.uint64)
    for place, column in enumerate(one for one in rows.table if one.used):
        codes = np.asarray(rows.X[:, place], dtype=np.float64)
        keys += _mixed(_cells(codes, column) + _hashes([column.name]))
    return keys


def _cells(codes: NDArray[np.float64], column: Column) -> NDArray[np.uint64]:
    """Return a number for each cell (N,) of a column: hashes of words, the bits of other values; one for all gaps."""
    if column.role not in ("category", "text"):
        values = codes + 0.0  # -0.0 becomes 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.uint64)
    texts = column.values
    parts = (
        [part.to_numpy(zero_copy_only=False) for part in texts.chunks] if isinstance(texts, StoredTexts) else [texts]
    )
    words = np.concatenate([np.zeros(1, np.uint64), *map(_hashes, parts)])  # the first one of gaps
    return words[np.where(np.isnan(codes), -1, codes).astype(np.int64) + 1]


def _hashes(texts: Any) -> NDArray[np.uint64]:
    from pandas.util import hash_array

    found: NDArray[np.uint64] = hash_array(np.array(texts, dtype=object), categorize=False)
    return found


def _row_sums(bits: Any) -> NDArray[np.uint64]:
    """Return what the product of a sparse matrix with the factors of its columns is, from the stored values alone."""
    products = bits.data.astype(np.uint64) * _factors(bits.indices)
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products, dtype=np.uint64)])  # differences survive wraps
    return totals[bits.indptr[1:]] - totals[bits.indptr[:-1]]


def _factors(columns: NDArray[Any]) -> NDArray[np.uint64]:
    """Return an odd number for each column number, as good as random, without a table of D."""
    return _mixed((columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers as good as random, the same for the same: the mixing of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _patterns(block: Any) -> Any:
    """Return the bits of the values as uint32, dense or sparse as the block is: one pattern for NaN, one for zero."""
    sparse = hasattr(block, "indptr")
    values = np.add(block.data if sparse else block, np.float32(0), dtype=np.float32)  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.uint32)
    return type(block)((bits, block.indices, block.indptr), shape=block.shape) if sparse else bits


def _first(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Indices:
    """Return the first place of each wanted key among keys, -1 where it is not there."""
    values, first = np.unique(keys, return_index=True)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[place] == wanted, first[place], -1)


def _equal(X: Any, rows: Indices, Z: Any, others: Indices) -> NDArray[np.bool_]:
    """Return where a row of X equals the other one of Z, in every value."""
    if X.ndim == 1:
        return np.asarray(X[rows] == Z[others], dtype=bool)
    equal, step = np.empty(len(rows), dtype=bool), step_of(X)
    for start in range(0, len(rows), step):
        cut = slice(start, start + step)
        unlike = _patterns(block_of(X, rows[cut])) != _patterns(block_of(Z, others[cut]))
        equal[cut] = ~unlike.any(axis=1) if isinstance(unlike, np.ndarray) else unlike.getnnz(axis=1) == 0
    return equal
