"""What the columns of a mixed table had in training, and which cells of later tables are unlike that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.column import Column
from ldsvm.datasets.words import listing, row_list, shown

SENTENCES = 5  # of a summary
VALUES = 50  # of a category; more are not listed, and any is allowed
NONE_MISSING = "no missing values"


@dataclass(frozen=True)
class Allowed:
    """What one column may hold.

    role, reason: see `Column`. least, largest: of numbers, and of dates as texts; None sets no limit. A training sets
    no latest date, since later rows have later ones. values: of a category; None allows any. gaps: the share of gaps in
    training; 0 allows none, and a larger share any number of them.
    """

    name: str
    role: str
    reason: str = ""
    least: float | str | None = None
    largest: float | str | None = None
    values: tuple[str, ...] | None = None
    gaps: float = 1.0


def seen(X: Any, table: Sequence[Column]) -> list[Allowed]:
    """Return what the columns of a table had, by the codes X (N, D) of those that are inputs, or numbers of float32.

    Examples
    --------
    >>> columns = Column("age", "number"), Column("town", "category", ("Bonn", "Ulm"))
    >>> seen(np.array([[30.0, 1], [50, np.nan]]), columns)
    [Allowed(name='age', role='number', reason='', least=30, largest=50, values=None, gaps=0.0), \
Allowed(name='town', role='category', reason='', least=None, largest=None, values=('Ulm',), gaps=0.5)]
    """
    places = iter(range(X.shape[1]))
    return [_seen(X[:, next(places)], c) if c.used else Allowed(c.name, c.role, c.reason) for c in table]


def _seen(codes: NDArray[Any], column: Column) -> Allowed:
    known = codes[~np.isnan(codes)]
    if column.role != "number":
        known = np.unique(known)
    gaps = round(float(np.isnan(codes).mean()), 4) or float(np.isnan(codes).any()) / len(codes)
    least: float | str | None = None
    largest = values = None
    if column.role == "number" and len(known):
        least, largest = (_plain(float(str(end))) for end in (known.min(), known.max()))  # 0.1 of float32 too
    if column.role == "date" and len(known):
        least = _day(np.datetime64(int(np.floor(known[0])), "s"))
    if column.role == "category" and len(known) <= VALUES:
        values = tuple(column.values[int(code)] for code in known)
    return Allowed(column.name, column.role, "", least, largest, values, gaps)


class Check:
    """Finds cells that are not allowed, table after table; one sentence for each column that has some.

    allowed: as the training saw it, or, where `edited`, as people have written it.

    Examples
    --------
    >>> from pandas import DataFrame
    >>> check = Check([Allowed("age", "number", least=17, largest=90, gaps=0.0)])
    >>> check.look(DataFrame({"age": [30.0, 131.0, np.nan, 99.0]}), "new.csv", np.arange(4))
    >>> check.sentences
    ["new.csv: row 2, counted from 1 without a header, column 'age' is 131, and 1 more row is like this; training \
saw 17 to 90.", "new.csv: row 3, counted from 1 without a header, column 'age' has no value; training saw no \
missing values."]
    """

    def __init__(self, allowed: Sequence[Allowed], edited: bool = False) -> None:
        self.allowed, self._says = allowed, "schema.yaml allows" if edited else "training saw"
        self._first: dict[tuple[str, str], str] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def look(self, table: Any, given: str, rows: NDArray[Any]) -> None:
        """Look at a table, as `RawTable` makes it. given: where it is from; rows (n,): numbers of its rows there."""
        for one in self.allowed:
            if one.name not in table.columns:
                continue
            column = table[one.name]
            gaps = column.isna().to_numpy()
            for wrong, allowed in _outside(one, column):
                self._add(one, wrong & ~gaps, column, given, rows, allowed)
            if one.gaps == 0:
                self._add(one, gaps, column, given, rows, NONE_MISSING)

    @property
    def sentences(self) -> list[str]:
        """The first cell of each column that is not allowed, and how many more there are."""
        found = []
        for key, text in self._first.items():
            more = self._counts[key] - 1
            others = f", and {more:,} more {'row is' if more == 1 else 'rows are'} like this" if more else ""
            found.append(f"{text}{others}; {self._says} {key[1]}.")
        return found

    @property
    def summary(self) -> list[str]:
        """The first few sentences, and of how many other columns there are more."""
        every = self.sentences
        more = len(every) - SENTENCES
        return every if more < 2 else [*every[:SENTENCES], f"{more:,} more columns have such cells."]

    def _add(
        self, one: Allowed, wrong: NDArray[np.bool_], column: Any, given: str, rows: NDArray[Any], allowed: str
    ) -> None:
        found, key = np.flatnonzero(wrong), (one.name, allowed)
        if not len(found):
            return
        if key not in self._first:
            cell = column.iloc[found[0]]
            cell = float(str(cell)) if isinstance(cell, np.float32) else cell  # 0.95, not 0.949999988
            cell = _day(cell) if one.role == "date" else _plain(cell)
            said = "has no value" if allowed == NONE_MISSING else f"is {shown(cell)}"
            self._first[key] = f"{given}: {row_list(rows[found[:1]])}, column {shown(one.name)} {said}"
        self._counts[key] = self._counts.get(key, 0) + len(found)


def _outside(one: Allowed, column: Any) -> list[tuple[NDArray[np.bool_], str]]:
    """Return which cells are not allowed, and what is; gaps may be among them."""
    if one.role == "category" and one.values is not None:
        return [(~column.isin(one.values).to_numpy(), f"the {listing('value', one.values)}")]
    if one.role not in ("number", "date") or (one.least is None and one.largest is None):
        return []
    low, high = (limit(one.role, value) for value in (one.least, one.largest))
    if column.dtype == np.float32:  # as the limits were when they were seen
        low, high = (None if value is None else np.float32(value) for value in (low, high))
    wrong = np.zeros(len(column), bool)
    wrong |= False if low is None else (column < low).to_numpy()
    wrong |= False if high is None else (column > high).to_numpy()
    more, less = ("later", "earlier") if one.role == "date" else ("more", "less")
    words = {(True, True): "{} to {}", (True, False): f"{{}} or {more}", (False, True): f"{{1}} or {less}"}
    return [(wrong, words[low is not None, high is not None].format(one.least, one.largest))]


def _day(date: Any) -> str:
    """Return a date as people write it: without the time at midnight."""
    return re.sub(r"[T ]00:00:00$", "", str(date))


def _plain(value: Any) -> Any:
    """Return a cell as people write it: 18, not 18.0."""
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() and abs(value) < 1e15 else float(value)


def limit(role: str, value: float | str | None) -> Any:
    """Return a least or largest value as cells of a column have it; raise ValueError for other values."""
    if value is None:
        return None
    if role == "date":
        from pandas import Timestamp

        found = Timestamp(value)
        return found if found.tz is None else found.tz_convert(None)
    return float(value)
