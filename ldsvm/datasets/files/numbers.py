"""Columns of numbers, or of lists of numbers, as one float32 matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import faults, precision
from ldsvm.datasets.files.kinds import is_list, is_number, is_text
from ldsvm.datasets.files.spellings import Spelling, is_percentage
from ldsvm.datasets.large import empty
from ldsvm.datasets.words import row_list, shown

# A column as the files give it: its pieces, one after the other, each a pyarrow array.
Column = list[Any]

RULE = (
    "list these columns in dataset.drop, dataset.text, dataset.group or dataset.time, or the inputs in dataset.columns"
)
LONGEST = 20  # a longer text is not shown: it may be anything
USUAL = Spelling()


def matrix(
    columns: Mapping[str, Column],
    given: str,
    first: int = 0,
    rule: str = RULE,
    *,
    spelling: Spelling = USUAL,
    precise: bool = False,
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Return the columns side by side as X (N, D) float32, NaN where a value is missing, and the D names.

    A column of lists of equal length becomes as many columns, ``name[0]``, ``name[1]`` and so on; where it is the
    only one, of lists of fixed size, float32 and in one piece, its memory is used as it is. A dict of columns is
    emptied on the way, so that the memory of each is free once it is in X, which lies in a file where it is large.
    ``first`` is the number of the first row. Another ``spelling`` than the usual one makes numbers of texts. Raises
    `DataError` for columns that are not numbers, with what to do or else the ``rule``, for values that float32
    cannot hold, and, where ``precise``, for columns of single numbers that it cannot tell apart; see
    `precision.check`.
    """
    if not spelling.plain:
        columns = _spelled(columns, spelling, [*columns])
    columns = _spelled(columns, spelling, [name for name in columns if is_percentage(columns[name])])
    _refuse_other_types(columns, given, first, rule, spelling)
    widths = {name: _width(name, columns[name], given, first) for name in columns}
    names = tuple(one for name, width in widths.items() for one in _names(name, width))
    one = columns[next(iter(columns))]
    n = sum(map(len, one))
    if len(columns) == 1:
        X = _as_it_is(one, n, len(names))
        if X is not None:
            _refuse_infinite(X, names[0].removesuffix("[0]"), given, first)
            return X, names
    del one
    X = empty(n, len(names))
    start = 0
    for name, width in widths.items():
        part = X[:, start : start + (width or 1)]
        column = columns.pop(name) if isinstance(columns, dict) else columns[name]
        _fill(part, column)
        _refuse_infinite(part, name, given, first)
        if precise and width is None:
            _check_precision(part, column, f"{given}: column {shown(name)}")
        del column
        start += width or 1
    return X, names


class _Spelled(Mapping[str, Column]):
    """Columns of which some have numbers in place of texts; each is read when it is asked for."""

    def __init__(self, columns: Mapping[str, Column], spelling: Spelling, names: Sequence[str]) -> None:
        self._columns, self._spelling, self._names = columns, spelling, names

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __getitem__(self, name: str) -> Column:
        column = self._columns[name]
        return [self._spelling.number(piece) for piece in column] if name in self._names else column


def _spelled(columns: Mapping[str, Column], spelling: Spelling, names: Sequence[str]) -> Mapping[str, Column]:
    """Return columns of which those with these names, such as 45 %, are numbers; a dict is changed."""
    read = _Spelled(columns, spelling, names)
    if not isinstance(columns, dict):
        return read if names else columns
    columns |= {name: read[name] for name in names}
    return columns


def _names(name: str, width: int | None) -> list[str]:
    return [name] if width is None else [f"{name}[{place}]" for place in range(width)]


def _refuse_other_types(columns: Mapping[str, Column], given: str, first: int, rule: str, spelling: Spelling) -> None:
    found = {name: _fault(columns[name], first, spelling) for name in columns}
    faulty = [f"{shown(name)} {fault}" for name, fault in found.items() if fault]
    if not faulty:
        return
    wrong = [columns[name] for name, fault in found.items() if fault]
    rules = dict.fromkeys(one for column in wrong for one in _remedies(column, spelling) or [rule])
    more = len(faulty) - faults.SHOWN_NAMES
    listed = ", ".join(faulty[: faults.SHOWN_NAMES]) + (f" and {more} more are not numbers" if more > 0 else "")
    raise DataError(
        f"{given}: column{'s' * (len(faulty) > 1)} {listed}, but inputs must be numbers; {'; '.join(rules)}."
    )


def _remedies(column: Column, spelling: Spelling) -> list[str]:
    pa = optional("pyarrow")
    if not all(is_text(piece.type) or is_number(piece.type) for piece in column):
        return []
    texts = [piece.cast(pa.string()) for piece in column if is_text(piece.type)]
    return spelling.remedies(pa.chunked_array([piece.filter(spelling.strays(piece)) for piece in texts]))


def _fault(column: Column, first: int, spelling: Spelling) -> str:
    """Return what is wrong with the type of a column, or nothing."""
    for piece in column:
        if is_text(piece.type):
            return _stray(column, first, spelling)
        if not is_number(piece.type) and not (is_list(piece.type) and is_number(piece.type.value_type)):
            return f"is of type {piece.type}"
    return ""


def _stray(column: Column, first: int, spelling: Spelling) -> str:
    """Tell a column of text from one of numbers with a few stray words, whose rows are then named."""
    bad = np.concatenate(
        [_array(spelling.strays(piece)) if is_text(piece.type) else np.zeros(len(piece), bool) for piece in column]
    )
    which = np.flatnonzero(bad)
    if not len(which) or 2 * len(which) >= len(bad):
        return "is text"
    word = _value(column, int(which[0]))
    example = f", {word!r} first" if len(word) <= LONGEST else ""
    return f"is text in {row_list(which + first)}{example}"


def _value(column: Column, row: int) -> str:
    for piece in column:
        if row < len(piece):
            return str(piece[row].as_py())
        row -= len(piece)
    raise IndexError(row)


def _width(name: str, column: Column, given: str, first: int) -> int | None:
    """Return the one length of the lists of a column, None for a column of single numbers."""
    pc = optional("pyarrow.compute")
    if not any(is_list(piece.type) for piece in column):
        return None
    # An absent list has no length: the row is missing as a whole. A single number counts as length 0.
    lengths = np.concatenate(
        [
            _array(pc.list_value_length(piece).fill_null(-1))
            if is_list(piece.type)
            else np.where(_array(piece.is_null()), -1, 0)
            for piece in column
        ]
    )
    known = lengths[lengths >= 0]
    if not len(known) or known[0] == 0:
        raise DataError(f"{given}: column {shown(name)} holds lists without numbers; allowed: lists of one length.")
    other = np.flatnonzero((lengths >= 0) & (lengths != known[0]))
    if len(other):
        raise DataError(
            f"{given}: column {shown(name)} holds lists of {known[0]} numbers, but {lengths[other[0]]} in "
            f"{row_list(other + first)}; all must have one length."
        )
    return int(known[0])


def _as_it_is(column: Column, n: int, width: int) -> NDArray[np.float32] | None:
    """Return the memory of a column of lists as a matrix (n, width) without a copy, None where that is impossible."""
    pa = optional("pyarrow")
    if len(column) != 1 or not pa.types.is_fixed_size_list(column[0].type):
        return None
    values = column[0].flatten()
    if column[0].null_count or values.null_count or values.type != pa.float32():
        return None
    return np.asarray(values.to_numpy()).reshape(n, width)


def _fill(out: NDArray[np.float32], column: Column) -> None:
    """Write the pieces of a column into ``out`` (N, width), row by row."""
    stop = 0
    for piece in column:
        start, stop = stop, stop + len(piece)
        if not is_list(piece.type):
            out[start:stop] = _float32(piece)[:, np.newaxis]  # in a column of lists: rows that are all missing
            continue
        there = _array(piece.is_valid())
        values = _float32(piece.flatten()).reshape(-1, out.shape[1])  # without the absent lists
        if there.all():
            out[start:stop] = values
        else:
            out[start:stop] = np.nan
            out[start:stop][there] = values


def _check_precision(part: NDArray[np.float32], column: Column, what: str) -> None:
    def exact(_: int) -> NDArray[np.float64]:
        double = optional("pyarrow").float64()
        return np.concatenate([_array(piece.cast(double, safe=False)) for piece in column])

    precision.check(part, exact, lambda _: what)


def _float32(values: Any) -> NDArray[np.float32]:
    """Return numbers of any type as float32: NaN for what is missing, inf for what is too large."""
    return _array(values.cast(optional("pyarrow").float32(), safe=False))


def _array(values: Any) -> NDArray[Any]:
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _refuse_infinite(X: NDArray[np.float32], name: str, given: str, first: int) -> None:
    refuse_infinite(infinite_rows(X) + first, name, given)


def refuse_infinite(which: NDArray[np.int64], name: str, given: str) -> None:
    """Raise `DataError` for a column with infinite values in these rows, if there are some."""
    if len(which):
        raise DataError(
            f"{given}: column {shown(name)} is infinite or beyond ±3.4e38, the range of float32, in "
            f"{row_list(which)}; allowed: finite numbers and missing values."
        )


def infinite_rows(X: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the numbers of the rows of X (N, D) that hold an infinite value."""
    return np.flatnonzero(np.isinf(X).any(axis=1))
