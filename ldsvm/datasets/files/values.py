"""Labels, groups, times and texts: from pieces of a column to one NumPy array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.columns import shared
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import faults
from ldsvm.datasets.files.kinds import is_number, is_text
from ldsvm.datasets.files.numbers import Column
from ldsvm.datasets.words import row_list

WHOLE = 2.0**53  # from here on float64 skips whole numbers, so two classes could become one


def labels(column: Column, what: str) -> NDArray[Any]:
    """Return labels (N,): int64, or an object array of str, or, where some are missing, of int or str and None.

    Whole numbers of any type are int64, truth values the texts True and False. Null, NaN and the empty text are
    missing, and the spaces around a text are left out. ``what`` names the column in the messages. Raises
    `DataError` for fractions, for dates and other types, for a mixture of numbers and text, and for a column
    without any label.
    """
    column = _spelled_truth(column)
    if all(is_number(piece.type) for piece in column):
        parts = [_whole(piece, what) for piece in column]
        values = np.concatenate([part[0] for part in parts])
        missing = np.concatenate([part[1] for part in parts])
        found = values.astype(object) if missing.any() else values
    else:
        trimmed = [_trimmed(piece) for piece in column]
        found = _texts(trimmed, what, "classes must be whole numbers or text", shared)
        missing = (found == None) | (found == "")  # noqa: E711  (element by element)
    if missing.all():
        raise DataError(f"{what} holds no labels; at least one row must have one.")
    if missing.any():
        found[missing] = None
    return found


def _spelled_truth(column: Column) -> Column:
    """Return a column with texts for truth values, unless some of its pieces are other numbers."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    if not all(pa.types.is_boolean(piece.type) or pa.types.is_null(piece.type) for piece in column):
        return column
    return [pc.if_else(piece, "True", "False") if pa.types.is_boolean(piece.type) else piece for piece in column]


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


def _texts(
    column: Column, what: str, allowed: str, objects: Callable[[Any], NDArray[Any]] | None = None
) -> NDArray[Any]:
    """Return a column of texts as an object array of str and None. objects: does so with one piece."""
    pa = optional("pyarrow")
    other = [piece.type for piece in column if not is_text(piece.type) and not pa.types.is_null(piece.type)]
    if any(is_number(type) for type in other):
        both = any(is_text(piece.type) for piece in column)
        raise DataError(f"{what} holds numbers{' and text' * both}; {allowed}{', not both' * both}.")
    if other:
        raise DataError(f"{what} is of type {other[0]}; {allowed}.")
    return np.concatenate([(objects or _objects)(piece) for piece in column])


def _objects(piece: Any) -> NDArray[Any]:
    """Return one piece, spelled out, as an object array of str and None."""
    return np.asarray(piece.cast(optional("pyarrow").string()).to_numpy(zero_copy_only=False))


def _trimmed(piece: Any) -> Any:
    return optional("pyarrow.compute").utf8_trim_whitespace(piece) if is_text(piece.type) else piece


def texts(column: Column, what: str) -> NDArray[Any]:
    """Return input texts (N,) as an object array of str, a missing one as the empty text."""
    found = _texts(column, what, "dataset.text must name a column of text")
    found[found == None] = ""  # noqa: E711  (element by element)
    return found


def groups(column: Column, what: str) -> NDArray[Any]:
    """Return groups (N,): int64, float64 or datetime64 where all files have that, and else their spelling as str.

    Equal groups get one spelling whatever the types of the files and whatever else these hold: the spaces around are
    left out, and what looks like a number is that number, so that 7, 007 and 7.0 are one group. Only what is float64
    already is read as float64. Raises `DataError` for missing groups, lists, and bytes that are not text.
    """
    pa, types = optional("pyarrow"), [piece.type for piece in column]
    _refuse_missing(column, what)
    if any(pa.types.is_nested(type) for type in types):
        raise DataError(f"{what} is of type {_listed(types)}; groups must be single values.")
    target = _common(types)
    # Groups of 64 bits without a sign, which int64 does not hold, are spelled.
    if target is not None and not any(pa.types.is_uint64(type) for type in types):
        return _cast(column, target, what)
    try:
        return np.concatenate([spelled(piece) for piece in column])
    except pa.ArrowInvalid as error:
        raise DataError(f"{what} holds bytes that are not UTF-8 text; allowed: text, numbers or dates.") from error


def _common(types: list[Any]) -> Any:
    """Return the type in which the values of all these types stay what they are, None where there is none."""
    pa = optional("pyarrow")
    tests = pa.types
    if all(tests.is_boolean(type) or tests.is_integer(type) for type in types):
        return pa.int64()
    if all(tests.is_floating(type) for type in types):
        return pa.float64()
    if all(tests.is_date(type) or tests.is_timestamp(type) for type in types):
        return pa.timestamp("us")  # one unit for all, and one that Parquet keeps
    return None


def _cast(column: Column, target: Any, what: str) -> NDArray[Any]:
    """Return a column in another type; nanoseconds may be cut and numbers rounded, but nothing may wrap around."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    options = pc.CastOptions(target, allow_time_truncate=True, allow_float_truncate=True, allow_decimal_truncate=True)
    try:
        return np.concatenate([pc.cast(piece, options=options).to_numpy(zero_copy_only=False) for piece in column])
    except pa.ArrowInvalid as error:
        raise DataError(f"{what} holds a value too large for {target}.") from error


def spelled(piece: Any) -> NDArray[Any]:
    """Return one piece of any type as an object array of str, equal numbers spelled alike."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    if pa.types.is_floating(piece.type):
        piece = piece.cast(pa.float64())
        whole = pc.and_(pc.equal(pc.floor(piece), piece), pc.less(pc.abs(piece), 2.0**63))
        exact = pc.if_else(whole, piece, 0.0).cast(pa.int64(), safe=False).cast(pa.string())
        return _objects(pc.if_else(whole, exact, piece.cast(pa.string())))
    text = piece.cast(pa.string())
    if pa.types.is_decimal(piece.type) or is_text(piece.type):
        text = pc.utf8_trim_whitespace(text)
        text = pc.replace_substring_regex(text, r"^\+?(-?)0*(\d+)(?:\.0*)?$", r"\1\2")
        text = pc.replace_substring_regex(text, r"^\+?(-?)0*(\d+\.\d*?[1-9])0*$", r"\1\2")
    return _objects(text)


def times(column: Column, what: str) -> NDArray[Any]:
    """Return times (N,): int64, float64, datetime64[us] for dates and timestamps, or str such as ISO 8601.

    Dates become texts, in UTC, where other files have texts. Raises `DataError` for missing times and other types.
    """
    pa, types = optional("pyarrow"), [piece.type for piece in column]
    _refuse_missing(column, what)
    target = _common(types) or (pa.float64() if all(is_number(type) for type in types) else None)
    if target is not None:
        return _cast(column, target, what)
    if all(is_text(type) or _common([type]) == pa.timestamp("us") for type in types):
        return np.concatenate([_iso(piece, what) for piece in column])
    raise DataError(f"{what} is of type {_listed(types)}; times must be numbers, dates or text.")


def _iso(piece: Any, what: str) -> NDArray[Any]:
    pa = optional("pyarrow")
    return _objects(_trimmed(piece) if is_text(piece.type) else pa.array(_cast([piece], pa.timestamp("us"), what)))


def _listed(types: list[Any]) -> str:
    return faults.names([*dict.fromkeys(map(str, types))])


def _refuse_missing(column: Column, what: str) -> None:
    pc = optional("pyarrow.compute")
    missing = [piece.is_null(nan_is_null=True).to_numpy(zero_copy_only=False) for piece in column]
    empty = [
        pc.equal(piece, "").fill_null(False).to_numpy(zero_copy_only=False) if is_text(piece.type) else np.False_
        for piece in column
    ]
    which = np.flatnonzero(np.concatenate([gap | blank for gap, blank in zip(missing, empty, strict=True)]))
    if len(which):
        raise DataError(f"{what} is missing in {row_list(which)}; every row needs one.")
