"""Columns of a mixed table as float64 codes, and codes as a pandas table: one way for files, models and servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.column import FIRST, Column
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import numbers, values
from ldsvm.datasets.files.kinds import is_number, is_text, plain
from ldsvm.datasets.files.roles import (
    DAYS,
    YES,
    infer_role,
    is_day,
    listed,
    parsed_days,
    say_first,
    spread,
    stretches,
    texts_of,
)  # fmt: skip
from ldsvm.datasets.files.spellings import DATASET, Spelling
from ldsvm.datasets.large import ColumnWriter
from ldsvm.datasets.stored_texts import StoredTexts, are_many
from ldsvm.datasets.table_cells import LARGEST
from ldsvm.datasets.words import listing, row_list, shown

Codes = NDArray[np.float64]
Table = tuple[Column, ...]


def _rule(name: str, spelling: Spelling) -> str:
    """Return what to do about values that are not of a column's role."""
    role = f", or name another role in dataset.columns, such as {{{name}: category}}"
    return f"correct them{role if spelling.section == DATASET else ''}"


def coded(
    column: Column, pieces: Sequence[Any], given: str, spelling: Spelling, first: int = 0, most: int | None = None
) -> tuple[Codes, Column]:
    """Return a column's codes (N,), and the column with the values that they stand for.

    pieces: pyarrow arrays. Values that the column has already keep their codes. given: where it is from, and first: the
    number of the first row, for messages. most: values of a category; None allows any number of them. Raises
    `DataError` for values that are not of the column's role, and for too many of them.
    """
    what = f"{given}: column {shown(column.name)}"
    if column.role in ("category", "text"):
        return _places(column, pieces, what, spelling, most)
    if column.role == "date":
        return _seconds(column, pieces, what, spelling, first)
    coder = _numbers if column.role == "number" else _yes
    return coder(column.name, pieces, what, given, spelling, first), column


def mixed(columns: Mapping[str, Sequence[Any]], spelling: Spelling) -> bool:
    """Return whether a table has a column of words or dates, and not only numbers, be they badly written."""
    return any(_no_numbers(spread(columns[name]), spelling) for name in columns)


def _no_numbers(pieces: Sequence[Any], spelling: Spelling) -> bool:
    if any(is_day(piece.type) for piece in pieces):
        return True
    if not any(is_text(piece.type) for piece in pieces) or not all(
        is_text(piece.type) or is_number(piece.type) for piece in pieces
    ):
        return False
    return not spelling.mostly_numbers(texts_of(pieces, spelling))


def coded_table(
    columns: Mapping[str, Sequence[Any]],
    table: Table | None,
    roles: Mapping[str, str],
    given: str,
    spelling: Spelling,
    first: int = 0,
    most: int | None = None,
) -> tuple[Codes, Table]:
    """Return the codes (N, D) of the columns that are inputs, and all columns with roles and values.

    table: of the training set, whose roles and values hold here too; None infers them, but for those of ``roles``.
    most: values of a category, see `coded`. Raises `DataError` for types without a role, for values that are not of
    their column's or too many, and where no input is left.
    """
    known = {column.name: column for column in table or ()}
    found = []
    with ColumnWriter(len(columns)) as writer:
        for name in columns:  # each is read once, and let go before the next
            pieces = columns[name]
            _refuse_other_types(name, pieces, given, spelling)
            column = known.get(name) or (
                Column.named(name, roles[name]) if name in roles else infer_role(name, pieces, spelling)
            )
            if column.used:
                codes, column = coded(column, pieces, given, spelling, first, most)
                writer.add(codes)
            found.append(column)
        if not writer.width:
            raise DataError(f"{given}: no input column is left. {listed(found)[-1]}")
        return writer.matrix(), tuple(found)


def _refuse_other_types(name: str, pieces: Sequence[Any], given: str, spelling: Spelling) -> None:
    rule = ", so list it in dataset.drop" if spelling.section == DATASET else ""
    for kind in (piece.type for piece in pieces):
        if not (is_text(kind) or is_number(kind) or is_day(kind)):
            raise DataError(
                f"{given}: column {shown(name)} is of type {kind}; allowed: numbers, words, yes/no, dates and "
                f"texts{rule}."
            )


def _places(
    column: Column, pieces: Sequence[Any], what: str, spelling: Spelling, most: int | None
) -> tuple[Codes, Column]:
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    # A code may be a number in one file and a text in the other; equal ones have one spelling.

    def texts() -> Iterator[Any]:
        for piece in stretches(pieces):
            text = texts_of([piece if is_text(piece.type) else pa.array(values.spelled(piece), pa.string())], spelling)
            yield text.fill_null("") if column.role == "text" else text

    if column.role == "text" and (isinstance(column.values, StoredTexts) or _are_many(pieces)):
        return _stored(column, texts())
    new: set[str] = set()
    for text in texts():
        new.update(pc.unique(text.drop_null()).to_pylist())
        if most is not None and len(new) > most and column.role != "text":
            raise DataError(
                f"{what} has too many different values; allowed for a category: at most {most:,}; in "
                "dataset.columns, set it to ignore, or to text if it holds several words."
            )
    found = replace(column, values=(*column.values, *sorted(new - set(column.values))))
    value_set = pa.array(found.values, pa.string())
    places = [pc.index_in(text, value_set=value_set).cast(pa.float64()) for text in texts()]
    return _joined(place.to_numpy(zero_copy_only=False) for place in places), found


def _are_many(pieces: Sequence[Any]) -> bool:
    return are_many(sum(map(len, pieces)), sum(piece.nbytes for piece in pieces))


def _stored(column: Column, texts: Iterable[Any]) -> tuple[Codes, Column]:
    """Return the places of texts that lie in a file, after those that the column has."""
    before, pa = column.values, optional("pyarrow")
    if not isinstance(before, StoredTexts):  # of a training set that is smaller than the test set
        before = StoredTexts.written([pa.array(before, pa.string())] if before else ())
    found = StoredTexts.written(texts)
    chunks = (*before.chunks, *found.chunks)
    places = np.arange(len(before), len(before) + len(found), dtype=np.float64)
    return places, replace(column, values=StoredTexts(chunks))


def _numbers(name: str, pieces: Sequence[Any], what: str, given: str, spelling: Spelling, first: int) -> Codes:
    pa = optional("pyarrow")
    read = [spelling.number(piece) if is_text(piece.type) else piece for piece in pieces]
    if not all(is_number(piece.type) for piece in read):
        numbers.matrix({name: [*pieces]}, given, first, _rule(name, spelling), spelling=spelling)  # raises
        raise DataError(f"{what} holds values that are not numbers; {_rule(name, spelling)}.")
    codes = _joined(piece.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for piece in read)
    numbers.refuse_infinite(np.flatnonzero(np.abs(codes) > LARGEST) + first, name, given)
    return codes


def _yes(name: str, pieces: Sequence[Any], what: str, given: str, spelling: Spelling, first: int) -> Codes:
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    answers = pa.array([*YES, *YES.values(), "1", "0"])
    ones = np.array([1.0] * len(YES) + [0.0] * len(YES) + [1.0, 0.0])
    others, parts = _Others(what, "yes and no, true and false", _rule(name, spelling), first), []
    for piece in stretches(pieces):
        low = pc.utf8_lower(texts_of([piece], spelling))
        place = np.asarray(pc.index_in(low, value_set=answers).cast(pa.float64()).to_numpy(zero_copy_only=False))
        others.look(low, np.isnan(place))
        parts.append(np.where(np.isnan(place), np.nan, ones[np.nan_to_num(place).astype(int)]))
    others.refuse()
    return _joined(parts)


def _seconds(column: Column, pieces: Sequence[Any], what: str, spelling: Spelling, first: int) -> tuple[Codes, Column]:
    pa = optional("pyarrow")
    if all(is_day(piece.type) or pa.types.is_null(piece.type) for piece in pieces):
        return np.concatenate([_since_1970(piece) for piece in pieces]), column
    how = column.how
    if not how or how in FIRST.values():
        how = _way([texts_of([piece], spelling).drop_null() for piece in stretches(pieces)], column, what, spelling)
    others, parts = _Others(what, "dates such as 2024-12-31", _rule(column.name, spelling), first), []
    for piece in stretches(pieces):
        text = texts_of([piece], spelling)
        series = text.to_pandas()
        moments = parsed_days(series, how)
        moments = moments.fillna(parsed_days(series, "ISO8601")) if how != "ISO8601" else moments
        others.look(text, moments.isna().to_numpy())
        seconds = (moments.dt.tz_localize(None) - np.datetime64("1970-01-01T00:00:00", "us")).dt.total_seconds()
        parts.append(np.asarray(seconds, dtype=np.float64))
    others.refuse()
    return _joined(parts), replace(column, how=how)


def _joined(parts: Iterable[Any]) -> Codes:
    found = [*parts]
    return np.concatenate(found) if found else np.zeros(0)


def _since_1970(piece: Any) -> Codes:
    pa = optional("pyarrow")
    micro = piece.cast(pa.timestamp("us", getattr(piece.type, "tz", None)), safe=False).cast(pa.int64())
    return np.asarray(micro.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)) / 1e6


def _way(parts: Sequence[Any], column: Column, what: str, spelling: Spelling) -> str:
    """Return how most texts of a column write dates. parts: pyarrow arrays, none of them with a gap."""
    counts = dict.fromkeys(("ISO8601", *(how for how in DAYS if how.startswith(column.how))), 0)
    for part in parts:
        series = part.to_pandas()
        counts = {how: counts[how] + int(parsed_days(series, how).notna().sum()) for how in counts}
    best = [how for how in counts if counts[how] == max(counts.values())]
    if len(best) > 1 and max(counts.values()):
        known = next(part for part in parts if len(part))
        rule = f", or {say_first(column.name)}" if spelling.section == DATASET else ""
        raise DataError(
            f"{what} has dates such as {shown(known[0].as_py())}, where either number may be the month; write "
            f"2024-12-31{rule}."
        )
    return best[0]


class _Others:
    """Texts of a column that are none of its role, gathered stretch after stretch.

    rule: what to do about them. first: number of the first row.
    """

    def __init__(self, what: str, allowed: str, rule: str, first: int) -> None:
        self.what, self.allowed, self.rule, self._next = what, allowed, rule, first
        self._value = ""
        self._rows: list[NDArray[np.int64]] = []

    def look(self, text: Any, unread: NDArray[np.bool_]) -> None:
        wrong = np.flatnonzero(unread & np.asarray(text.is_valid().to_numpy(zero_copy_only=False)))
        if len(wrong):
            self._value = self._value or shown(text[int(wrong[0])].as_py())
            self._rows.append(wrong + self._next)
        self._next += len(text)

    def refuse(self) -> None:
        """Raise `DataError` where there were any."""
        if self._rows:
            rows = row_list(np.concatenate(self._rows))
            raise DataError(f"{self.what} has {self._value} in {rows}; allowed: {self.allowed}; {self.rule}.")


def frame(X: Codes, columns: Sequence[Column]) -> Any:
    """Return codes X (N, D) of the used columns as a pandas table: float64, datetime64 and texts, None for a gap."""
    from pandas import DataFrame

    used = [column for column in columns if column.used]
    return DataFrame({column.name: _decoded(X[:, i], column) for i, column in enumerate(used)})


def _decoded(codes: Codes, column: Column) -> Any:
    if column.role == "date":
        return np.where(
            np.isnan(codes), np.datetime64("NaT", "us"), (1e6 * np.nan_to_num(codes)).round().astype("M8[us]")
        )
    if column.role not in ("category", "text"):
        return codes
    if isinstance(column.values, StoredTexts):
        return column.values.words(codes)
    words = np.array([*column.values, None], dtype=object)
    return words[np.where(np.isnan(codes), len(column.values), codes).astype(np.int64)]


def read_frame(table: Any, roles: Mapping[str, str], days: Mapping[str, str], given: str = "The table") -> Any:
    """Return a pandas table as a model's steps take it: its columns in the order of ``roles``, in their types.

    table: of pandas, polars or pyarrow, as it came: numbers, words, dates or texts of them in any of its types; columns
    without a role are left out. days: how columns of dates were written in training; ISO 8601 is understood too.
    Raises `DataError` for a missing column and for values that are not of its role.
    """
    table = table.to_pandas() if hasattr(table, "to_pandas") else table  # of polars, or of pyarrow
    if not hasattr(table, "columns") or getattr(table, "ndim", 0) != 2:
        raise DataError(
            f"{given} is {type(table).__name__}; allowed: a table of pandas, polars or pyarrow with the "
            f"{listing('column', [*roles])}."
        )
    absent = [name for name in roles if name not in table.columns]
    if absent:
        raise DataError(f"{given} has no {listing('column', absent)}; the model needs {listing('column', [*roles])}.")
    if twice := [name for name in roles if (table.columns == name).sum() > 1]:
        raise DataError(f"{given} has {listing('column', twice)} more than once; allowed: once.")
    if not len(table):
        raise DataError(f"{given} has no rows; allowed: at least one.")
    columns = {name: [_piece(table[name])] for name in roles}
    return frame(*coded_table(columns, asked_of(roles, days), {}, given, Spelling(section="")))


def _piece(series: Any) -> Any:
    """Return a column of pandas as a pyarrow array; of texts where its values are of several types."""
    pa = optional("pyarrow")
    if getattr(getattr(series, "dtype", None), "tz", None) is not None:
        series = series.dt.tz_convert(None)  # in UTC, as days without a zone are taken
    try:
        return plain(pa.array(series, from_pandas=True))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if gap else _text(value) for gap, value in zip(series.isna(), series, strict=True)])


def _text(value: Any) -> str:
    """Return a value as a column of such values has it, independent of the other rows: 12.0 as 12."""
    if isinstance(value, str):
        return value
    pa = optional("pyarrow")
    try:
        return str(values.spelled(pa.array([value]))[0])
    except pa.ArrowException:
        return str(value)


def asked_of(roles: Mapping[str, str], days: Mapping[str, str]) -> Table:
    """Return columns of these roles, whose values are still to come."""
    return tuple(Column(name, role, how=days.get(name, "")) for name, role in roles.items())
