"""Labels, groups, times and texts: from pieces of a column to one NumPy array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import faults
from ldsvm.datasets.files.numbers import Column, is_number, is_text
from ldsvm.datasets.words import told

WHOLE = 2.0**53  # from here on float64 skips whole numbers, so two classes could become one


def labels(column: Column, what: str) -> NDArray[Any]:
    """Return labels (N,): int64, or an object array of str, or, where some are missing, of int or str and None.

    Whole numbers of any type are int64. Null, NaN and the empty text are missing. ``what`` names the column in the
    messages. Raises `DataError` for fractions, for dates and other types, for a mixture of numbers and text,
    and for a column without any label.
    """
    if all(is_number(piece.type) for piece in column):
        parts = [_whole(piece, what) for piece in column]
        values = np.concatenate([part[0] for part in parts])
        missing = np.concatenate([part[1] for part in parts])
        found = values.astype(object) if missing.any() else values
    else:
        found = _texts(column, what, "classes must be whole numbers or text")
        missing = (found == None) | (found == "")  # noqa: E711  (element by element)
    if missing.all():
        raise DataError(f"{what} holds no label at all; at least one row must have a class.")
    if missing.any():
        found[missing] = None
    return found


def _whole(piece: Any, what: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the numbers of one piece as int64 (n,), 0 for missing ones, and which are missing (n,)."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    if pa.types.is_null(piece.type):
        return np.zeros(len(piece), np.int64), np.ones(len(piece), bool)
    if pa.types.is_floating(piece.type) or pa.types.is_decimal(piece.type):
        values = piece.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        missing = np.isnan(values)
        values = np.where(missing, 0, values)
        bad = values[(np.abs(values) > WHOLE) | (values != np.floor(values))]
    else:
        missing = np.asarray(piece.is_null().to_numpy(zero_copy_only=False))
        values = pc.fill_null(piece.cast(pa.uint8()) if pa.types.is_boolean(piece.type) else piece, 0).to_numpy()
        bad = values[values > np.iinfo(np.int64).max]  # of 64 bits without a sign
    if len(bad):
        raise DataError(f"{what} holds {bad[0]:g}; classes must be whole numbers or text.")
    return values.astype(np.int64), missing


def _texts(column: Column, what: str, allowed: str) -> NDArray[Any]:
    """Return a column of texts as an object array of str and None."""
    pa = optional("pyarrow")
    other = [piece.type for piece in column if not is_text(piece.type) and not pa.types.is_null(piece.type)]
    if any(is_number(type) for type in other):
        both = any(is_text(piece.type) for piece in column)
        raise DataError(f"{what} holds numbers{' and text' * both}; {allowed}{', not both' * both}.")
    if other:
        raise DataError(f"{what} is of type {other[0]}; {allowed}.")
    return np.concatenate([_objects(piece) for piece in column])


def _objects(piece: Any) -> NDArray[Any]:
    """Return one piece, spelled out, as an object array of str and None."""
    return np.asarray(piece.cast(optional("pyarrow").string()).to_numpy(zero_copy_only=False))


def texts(column: Column, what: str) -> NDArray[Any]:
    """Return input texts (N,) as an object array of str, a missing one as the empty text."""
    found = _texts(column, what, "dataset.text must name a column of text")
    found[found == None] = ""  # noqa: E711  (element by element)
    return found


def groups(column: Column, what: str) -> NDArray[Any]:
    """Return groups (N,): int64, float64, datetime64, or str for everything else that has a spelling."""
    return _keys(column, what, spell=True)


def times(column: Column, what: str) -> NDArray[Any]:
    """Return times (N,): int64, float64, datetime64[us] for dates and timestamps, or str such as ISO 8601."""
    return _keys(column, what, spell=False)


def _keys(column: Column, what: str, *, spell: bool) -> NDArray[Any]:
    """Return a column in which nothing may be missing, in one of four types; spell: other types become str."""
    pa = optional("pyarrow")
    _refuse_missing(column, what)
    types, tests = [piece.type for piece in column], pa.types
    if all(tests.is_boolean(t) or tests.is_integer(t) for t in types):
        target = pa.int64()
    elif all(is_number(t) for t in types):
        target = pa.float64()
    elif all(tests.is_date(t) or tests.is_timestamp(t) for t in types):
        target = pa.timestamp("us")  # one unit for all, and one that Parquet keeps
    elif all(is_text(t) for t in types) or (spell and not any(tests.is_nested(t) for t in types)):
        return np.concatenate([_objects(piece) for piece in column])
    else:
        raise DataError(f"{what} is of type {faults.names([*dict.fromkeys(map(str, types))])}; {_allowed(spell)}.")
    try:
        return np.concatenate([piece.cast(target, safe=False).to_numpy(zero_copy_only=False) for piece in column])
    except pa.ArrowInvalid as error:
        raise DataError(f"{what} holds a value that {target} cannot hold; {_allowed(spell)}.") from error


def _allowed(spell: bool) -> str:
    return "groups must be single values" if spell else "times must be numbers, dates or text"


def _refuse_missing(column: Column, what: str) -> None:
    pc = optional("pyarrow.compute")
    missing = [piece.is_null(nan_is_null=True).to_numpy(zero_copy_only=False) for piece in column]
    empty = [
        pc.equal(piece, "").fill_null(False).to_numpy(zero_copy_only=False) if is_text(piece.type) else np.False_
        for piece in column
    ]
    which = np.flatnonzero(np.concatenate([gap | blank for gap, blank in zip(missing, empty, strict=True)]))
    if len(which):
        raise DataError(f"{what} is missing in {told('row', which)}; every row needs one.")
