"""The cells of a table with mixed columns: each has the type of its column's role, or one sentence says which has not.

========  =====================================================  =====================
role      type                                                   gap
========  =====================================================  =====================
number    float64, within the range of float32                   NaN
yes/no    float64, 0 or 1                                        NaN
category  object: str                                            None
date      datetime64[us]                                         NaT
text      object: str                                            "" (there is no gap)
========  =====================================================  =====================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.split import Indices
from ldsvm.datasets.words import listing, row_list, shown, unknown

ROLES = ("number", "yes/no", "category", "date", "text")
LARGEST = float(np.finfo(np.float32).max)
# Names that pandas has for what a column of objects holds, without its gaps.
NUMBERS = ("floating", "integer", "mixed-integer-float", "boolean", "decimal", "empty")
WORDS = ("string", "empty")
DATES = ("datetime64", "datetime", "date", "empty")


def check_roles(roles: Mapping[str, str]) -> None:
    """Raise `DataError` unless each column has one of the roles above, and there is a column."""
    if not roles:
        raise DataError("The table has no columns to learn from; allowed: at least one.")
    for name, role in roles.items():
        if role not in ROLES:
            raise DataError(unknown(f"The role {role!r} of column {shown(name)}", role, ROLES))


def check_cells(X: Any, roles: Mapping[str, str], numbers: Indices | None = None) -> Any:
    """Return the columns of a pandas DataFrame X that have a role, in the order of the roles, with the types above.

    numbers (N,): of the rows in the source, if not 0, 1, …. Columns without a role are ignored. Raises `DataError` for
    a missing column, and for the first cell of another type or out of range, with its row.

    Examples
    --------
    >>> from pandas import DataFrame
    >>> table = DataFrame({"age": [31, 40], "town": ["Ulm", float("nan")], "id": [7, 8]})
    >>> check_cells(table, {"town": "category", "age": "number"}).to_numpy().tolist()
    [['Ulm', 31.0], [None, 40.0]]
    >>> check_cells(table, {"town": "number"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ldsvm.datasets.dataset.DataError: Row 1, ..., column 'town' is 'Ulm'; allowed: a number, or a missing value.
    """
    from pandas import DataFrame, Series

    if not isinstance(X, DataFrame):
        raise DataError(
            f"The inputs are {type(X).__name__}, without names of columns; allowed: a pandas DataFrame with the "
            f"{listing('column', list(roles))}."
        )
    if absent := [name for name in roles if name not in X.columns]:
        raise DataError(f"The table has no {listing('column', absent)}; allowed: tables with all columns of training.")
    if twice := [name for name in roles if (X.columns == name).sum() > 1]:
        raise DataError(f"The table has {listing('column', twice)} more than once; allowed: once.")
    cells = {name: MAKERS[role](X[name], _Place(name, numbers)) for name, role in roles.items()}
    # With its dtype, since pandas 3 would take objects for strings, and None for NaN.
    return DataFrame({name: Series(values, index=X.index, dtype=values.dtype) for name, values in cells.items()})


class _Place:
    """Where the cells of a column are, for messages."""

    def __init__(self, name: str, numbers: Indices | None) -> None:
        self.name, self.numbers = name, numbers

    def refuse(self, column: Any, wrong: NDArray[np.bool_], allowed: str) -> None:
        """Raise `DataError` for the first cell of a column (N,) that is wrong, if there is one."""
        found = np.flatnonzero(wrong)
        if len(found):
            row = found[0] if self.numbers is None else self.numbers[found[0]]
            more = f", and {len(found) - 1:,} more in this column" if len(found) > 1 else ""
            raise DataError(
                f"{row_list([row]).capitalize()}, column {shown(self.name)} is "
                f"{shown(column.iloc[found[0]])}{more}; allowed: {allowed}."
            )


def _is(column: Any, kinds: tuple[str, ...], place: _Place, allowed: str) -> None:
    """Refuse a column with cells of other kinds than pandas's ``kinds``."""
    from pandas.api.types import infer_dtype

    if infer_dtype(column, skipna=True) in kinds:
        return
    gaps = column.isna().to_numpy()
    cells = column.to_numpy(dtype=object)
    wrong = [not gap and infer_dtype([cell]) not in kinds for cell, gap in zip(cells, gaps, strict=True)]
    place.refuse(column, np.array(wrong, dtype=bool), allowed)


def _number(column: Any, place: _Place) -> NDArray[np.float64]:
    if column.dtype != np.float64:
        _is(column, NUMBERS, place, "a number, or a missing value")
        column = column.astype(object).where(column.notna(), np.nan).astype(np.float64)
    values: NDArray[np.float64] = column.to_numpy()
    place.refuse(column, np.abs(values) > LARGEST, "a number within ±3.4e38, or a missing value")
    return values


def _yes_no(column: Any, place: _Place) -> NDArray[np.float64]:
    values = _number(column, place)
    place.refuse(column, ~(np.isnan(values) | (values == 0) | (values == 1)), "0 for no, 1 for yes, or a missing value")
    return values


def _category(column: Any, place: _Place) -> NDArray[np.object_]:
    return _words(column, place, "a word, or a missing value", None)


def _text(column: Any, place: _Place) -> NDArray[np.object_]:
    return _words(column, place, "a text, which may be empty", "")


def _words(column: Any, place: _Place, allowed: str, gap: str | None) -> NDArray[np.object_]:
    column = column.astype(object)  # pandas's categories and strings too
    _is(column, WORDS, place, allowed)
    values: NDArray[np.object_] = column.to_numpy()
    gaps = column.isna().to_numpy()
    if gaps.any():
        values = values.copy()
        values[gaps] = gap
    return values


def _date(column: Any, place: _Place) -> NDArray[np.datetime64]:
    from pandas import to_datetime

    if not np.issubdtype(getattr(column.dtype, "type", object), np.datetime64):
        _is(column, DATES, place, "a date, or a missing value")
        column = to_datetime(column, utc=True).dt.tz_localize(None)
    found: NDArray[np.datetime64] = column.to_numpy().astype("datetime64[us]")
    return found


MAKERS = {"number": _number, "yes/no": _yes_no, "category": _category, "date": _date, "text": _text}
