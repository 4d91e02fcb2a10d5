"""What a column of a table is, by its values: a number, a category, yes/no, a date, a text, or nothing to learn from.

A table of mixed columns is kept as a matrix X (N, D) of float64: numbers as they are, yes/no as 1 and 0, dates as
seconds since 1970, categories and texts as places in the column's list of values. NaN is a missing value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.column import FIRST, INPUTS, Column
from ldsvm.datasets.files.kinds import is_number
from ldsvm.datasets.files.spellings import Spelling
from ldsvm.datasets.words import listing, shown

FEW = 20  # rows below which distinct values say nothing
WORDS = 4  # of a value, on average, that make a column a text
MOST = 1_000  # values of a category
WHOLE = 2.0**53  # from here on float64 skips whole numbers
YES = {"yes": "no", "y": "n", "true": "false", "t": "f", "on": "off"}
ID = re.compile(r"(?i:(^|[_ .-])(id|uuid|guid|nr|no|key))$|[a-z]I[dD]$")
MANY = 10  # columns that a sentence names
LOOKED_AT = 1_000_000  # rows of a column whose role is inferred
STRETCH = 500_000  # rows of a column that are read together
# How dates are written, beside ISO 8601.
DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%d-%b-%Y",
    "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M:%S",
)  # fmt: skip
TRIED, DATED = 1_000, 0.9  # values that are tried as dates, and the share of them that must be such
RARE = 0.01  # a smaller share of gaps tells nothing


def infer_role(name: str, pieces: Sequence[Any], spelling: Spelling) -> Column:
    """Return what a column is, by its name and values. pieces: pyarrow arrays, one after the other.

    A column of text is one of numbers where more than half of its values are: the others are mistakes, which are
    refused when it is read. Of more than a million rows 20 stretches of 50,000 are looked at, see `spread`.

    Examples
    --------
    >>> import pyarrow
    >>> infer_role("colour", [pyarrow.array(["red", "blue", "red"])], Spelling()).role
    'category'
    """
    some = spread(pieces)
    found = _infer_role(name, some, spelling)
    # What is the same in some rows may differ in others; then there are few values, and all can be looked at.
    return _infer_role(name, pieces, spelling) if found.role == "constant" and some is not pieces else found


def _infer_role(name: str, pieces: Sequence[Any], spelling: Spelling) -> Column:
    types = optional("pyarrow").types
    kinds = [piece.type for piece in pieces if not types.is_null(piece.type)]
    if kinds and all(map(types.is_boolean, kinds)):
        return _unless_constant(name, "yes/no", pieces)
    if all(map(is_number, kinds)):
        return _number(name, pieces)
    if all(map(is_day, kinds)):
        return _unless_constant(name, "date", pieces)
    return _words(name, texts_of(pieces, spelling), spelling)


def stretches(pieces: Sequence[Any], rows: int = STRETCH) -> Iterator[Any]:
    """Yield the rows of a column as pyarrow arrays of so many at most."""
    for piece in pieces:
        yield from (piece.slice(start, rows) for start in range(0, max(1, len(piece)), rows))


def spread(pieces: Sequence[Any], most: int = LOOKED_AT, parts: int = 20) -> Sequence[Any]:
    """Return a column as it is, or, where it has more than ``most`` rows, so many in stretches that are evenly apart.

    Examples
    --------
    >>> import pyarrow
    >>> [piece.to_pylist() for piece in spread([pyarrow.array(range(10))], most=4, parts=2)]
    [[0, 1], [8, 9]]
    """
    ends = [*accumulate(map(len, pieces))]
    if not ends or ends[-1] <= most:
        return pieces
    size, found = most // parts, []
    for part in range(parts):
        start = part * (ends[-1] - size) // (parts - 1)
        for piece, end in zip(pieces, ends, strict=True):
            low, high = max(start, end - len(piece)), min(start + size, end)
            if low < high:
                found.append(piece.slice(low - end + len(piece), high - low))
    return found


def is_day(type: Any) -> bool:
    """Tell whether a pyarrow type holds dates, or moments."""
    types = optional("pyarrow").types
    return bool(types.is_date(type) or types.is_timestamp(type))


def texts_of(pieces: Sequence[Any], spelling: Spelling) -> Any:
    """Return a column of any type as one pyarrow array of texts without the spaces around them, null for a gap."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    if not pieces:
        return pa.array([], pa.string())
    text = pc.utf8_trim_whitespace(pa.concat_arrays([piece.cast(pa.string()) for piece in pieces]))
    gaps = pc.is_in(text, value_set=pa.array(["", *spelling.missing]))
    return pc.if_else(gaps, pa.scalar(None, pa.string()), text)


def _unless_constant(name: str, role: str, pieces: Sequence[Any]) -> Column:
    text = texts_of(pieces, Spelling())  # files may have other types, or none where all is empty
    found = text.unique().drop_null()
    if len(found) > 1:
        return Column(name, role)
    return _constant(name, role, found, text)


def _constant(name: str, role: str, found: Any, values: Any) -> Column:
    """Return a column with at most one value; it has a role if missing values, then informative, are not rare."""
    gaps = values.null_count
    if len(found) and gaps >= max(2, RARE * len(values)):
        return Column(name, role)
    every = f"all rows{' with a value' if gaps else ''} have"
    return Column(name, "constant", reason=f"{every} {shown(found[0].as_py())}" if len(found) else "no row has a value")


def _names_of_digits(name: str, text: Any) -> Column:
    """Return a column of whole numbers too large for float64, which would make equal ones of different ones."""
    known = text.drop_null()
    found = known.unique()
    if len(found) < 2:
        return _constant(name, "category", found, text)
    if len(found) == len(known) >= FEW:
        return Column(name, "identifier", reason="every row has a different number")
    if len(found) > MOST:
        return Column(name, "too many values", reason=f"{len(found):,} values in {len(known):,} rows")
    return Column(name, "category")


def _number(name: str, pieces: Sequence[Any]) -> Column:
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    every = pa.chunked_array([piece.cast(pa.float64(), safe=False) for piece in pieces], pa.float64())
    values = every.drop_null()
    found = values.unique()
    whole = not any(pa.types.is_floating(piece.type) or pa.types.is_decimal(piece.type) for piece in pieces)
    if whole and len(values) and max(abs(one) for one in pc.min_max(values).as_py().values()) >= WHOLE:
        return _names_of_digits(name, texts_of(pieces, Spelling()))
    if len(found) < 2:
        return _constant(name, "number", found, every)
    if whole and ID.search(name) and len(found) == len(values) >= FEW:
        return Column(name, "identifier", reason="every row has a different number")
    return Column(name, "number")


def _words(name: str, text: Any, spelling: Spelling) -> Column:
    pc = optional("pyarrow.compute")
    known = text.drop_null()
    if len(known) and spelling.mostly_numbers(known):
        return Column(name, "number")
    found = pc.unique(known)
    if len(found) < 2:
        return _constant(name, "category", found, text)
    if _pair(found[:3].to_pylist()):
        return Column(name, "yes/no")
    if len(how := day_formats(found)) == 1:
        return Column(name, "date", how=how[0])
    column = _no_dates(name, known, found)
    return replace(column, doubt=_doubt(column, found[0].as_py())) if how else column


def _no_dates(name: str, known: Any, found: Any) -> Column:
    """Return what a column of words is. found: the different ones of those that are known."""
    pc, n = optional("pyarrow.compute"), len(known)
    words = pc.mean(pc.add(pc.count_substring(known, " "), 1)).as_py()
    if words >= WORDS and len(found) > n / 5:
        return Column(name, "text")
    if len(found) == n >= FEW:
        return Column(name, "identifier", reason="every row has a value of its own")
    if len(found) > MOST or (n >= 5 * FEW and len(found) > n / 2):
        return Column(name, "too many values", reason=f"{len(found):,} values in {n:,} rows")
    return Column(name, "category")


def _doubt(column: Column, value: str) -> str:
    now = f"a {column.role}" if column.used else "left out"
    return (
        f"{shown(column.name)} may hold dates, such as {shown(value)}, but no value tells whether day or month comes "
        f"first, so it is {now}; {say_first(column.name)}, or date (month first)."
    )


def say_first(name: str) -> str:
    """Return what to do about dates that may begin with the day or with the month."""
    return f"say which by dataset.columns: {{{name}: {next(iter(FIRST))}}}"


def _pair(values: Sequence[str]) -> bool:
    low = {value.lower() for value in values}
    return any(low == {yes, no} for yes, no in YES.items())


def day_formats(found: Any) -> list[str]:
    """Return the ways in which most of these texts (n,), without nulls, may write dates: "ISO8601" or some of DAYS.

    01/02/2024 may be of January or February: where no text of a column tells which, both are returned. A few texts may
    not be dates: these are mistakes, which are refused when the column is read.
    """
    some = found.take(optional("pyarrow").array(range(0, len(found), max(1, len(found) // TRIED))))
    first = some[:1].to_pylist()
    if not first or not first[0][:1].isdigit() or len(first[0]) < 6:
        return []
    series = some.to_pandas()
    shares = {how: float(parsed_days(series, how).notna().mean()) for how in ("ISO8601", *DAYS)}
    best = max(shares.values())
    return [how for how, share in shares.items() if share == best] if best >= DATED else []


def parsed_days(series: Any, how: str) -> Any:
    """Return texts as times in UTC, a pandas Series; NaT for other texts."""
    import pandas

    return pandas.to_datetime(series, format=how, errors="coerce", utc=True)


def listed(columns: Sequence[Column]) -> list[str]:
    """Return sentences on the roles of a table's columns: what is used as what, and what is left out for which reason.

    Examples
    --------
    >>> listed([Column("age", "number"), Column("id", "identifier", reason="every row has a different number")])
    ["Columns: number 'age'.", "Left out: 'id' (identifier: every row has a different number)."]
    """
    used = [(role, [column.name for column in columns if column.role == role]) for role in INPUTS]
    inputs = "; ".join(listing(role, names).replace("categorys", "categories") for role, names in used if names)
    out = [f"{shown(c.name)} ({c.role}: {c.reason})" for c in columns if not c.used]
    more = f" and {len(out) - MANY} more" if len(out) > MANY else ""
    said = [f"Columns: {inputs}."] + ([f"Left out: {', '.join(out[:MANY])}{more}."] if out else [])
    return said + [column.doubt for column in columns if column.doubt][:MANY]
