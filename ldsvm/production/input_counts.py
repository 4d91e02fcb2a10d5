"""Counts of inputs: numbers and dates in bins, categories by value, and where there are gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 10  # of a dense input, of about equal counts in training
VALUES = 50  # of a category that are counted by themselves, the most frequent ones
FEWEST = 5  # training rows of such a value
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Inputs:
    """Counts of D inputs.

    names: of each. edges: the inner bounds of its bins, ascending. counts: rows per bin, one more than bounds; of a
    category, rows per value, and last of all other values. values, gaps: of the columns of a mixed table, else empty:
    the values of a category, None for other columns, and how many rows have no value, which are in no bin.
    """

    names: list[str]
    edges: list[list[float]]
    counts: list[list[int]]
    values: list[list[str] | None] = field(default_factory=list, kw_only=True)
    gaps: list[int] = field(default_factory=list, kw_only=True)

    def count(self, X: Any) -> tuple[list[Counts], list[int]]:
        """Return the counts of the same inputs in other rows, a matrix (n, D) or a mixed table, and gaps if it is."""
        if not self.gaps:
            return [counts_in(column, np.array(b)) for column, b in zip(columns_of(X), self.edges, strict=True)], []
        known, gaps = _known(X[name] for name in self.names)
        ways = zip(known, self.edges, self.values, strict=True)
        return [_count_cells(column, bounds, values) for column, bounds, values in ways], gaps


def count_bins(X: Any, names: Sequence[str]) -> Inputs:
    """Return the counts of the inputs X (N, D), dense or sparse."""
    edges = [edges_of(column) for column in columns_of(X)]
    counts = [counts_in(column, bounds).tolist() for column, bounds in zip(columns_of(X), edges, strict=True)]
    return Inputs(list(names), [bounds.tolist() for bounds in edges], counts)


def count_table(table: Any, roles: Mapping[str, str]) -> Inputs:
    """Return the counts of the columns that have a role in a mixed table, as `RawTable` makes it.

    Texts are counted by their number of words. Which values of a category are frequent is seen in every other row, and
    counted in the rest: the same rows would have more of these values than any later ones.

    Examples
    --------
    >>> from pandas import DataFrame
    >>> table = DataFrame({"town": ["Ulm"] * 12 + ["Bonn", "Bonn", None, None]})
    >>> found = count_table(table, {"town": "category"})
    >>> found.values, found.counts, found.gaps
    ([['Ulm']], [[6, 1]], [1])
    """
    values = [_frequent(table[name].iloc[::2]) if role == "category" else None for name, role in roles.items()]
    known, gaps = _known(table[name].iloc[1::2] if role == "category" else table[name] for name, role in roles.items())
    edges = [[] if own is not None else edges_of(_numbers(c)).tolist() for c, own in zip(known, values, strict=True)]
    counts = [_count_cells(*one).astype(int).tolist() for one in zip(known, edges, values, strict=True)]
    return Inputs([*roles], edges, counts, values=values, gaps=gaps)


def edges_of(values: NDArray[Any]) -> Counts:
    """Return the inner bounds of the bins: BINS at most of about equal counts, one below all values, one above."""
    known = values[np.isfinite(values)].astype(np.float64)
    if not known.size:
        return np.zeros(0)
    inner = np.quantile(known, np.arange(1, BINS) / BINS)
    bounds: Counts = np.unique([np.nextafter(known.min(), -np.inf), *inner, known.max()])
    return bounds


def counts_in(values: NDArray[Any], bounds: Counts) -> Counts:
    """Count values in the bins [-inf, b_1], (b_1, b_2], …; missing ones in the last."""
    return np.bincount(np.searchsorted(bounds, values, side="left"), minlength=len(bounds) + 1).astype(np.float64)


def columns_of(X: Any) -> Any:
    """Yield the columns of a matrix one by one as (N,) arrays."""
    if hasattr(X, "tocsc"):
        columns = X.tocsc()
        return (columns[:, [d]].toarray().ravel() for d in range(X.shape[1]))
    return (X[:, d] for d in range(X.shape[1]))


def _known(columns: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Return the cells of each column that have a value (an empty text has none), and the number of the others."""
    every = [(column, (column.notna() & (column != "")).to_numpy()) for column in columns]
    return [column[there] for column, there in every], [int((~there).sum()) for _, there in every]


def _frequent(column: Any) -> list[str]:
    counts = column.value_counts()
    counts = counts[counts >= FEWEST]
    return [str(value) for value in sorted(counts.index, key=lambda value: (-counts[value], value))[:VALUES]]


def _count_cells(column: Any, bounds: Sequence[float], values: Sequence[str] | None) -> Counts:
    if values is None:
        return counts_in(_numbers(column), np.array(bounds))
    known = column.value_counts().reindex(values, fill_value=0).to_numpy()
    return np.array([*known, len(column) - known.sum()], dtype=np.float64)


def _numbers(column: Any) -> Counts:
    """Return cells as numbers: dates as seconds since 1970, texts as their number of words."""
    if column.dtype.kind == "M":
        return (column.to_numpy() - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    if column.dtype.kind == "O":  # of strings, too
        column = column.str.split().str.len()
    return column.to_numpy(dtype=np.float64)
