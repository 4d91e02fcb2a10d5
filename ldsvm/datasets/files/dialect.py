"""How a table is written, found out from the table itself: separators, decimal commas, marks of gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ldsvm.checks import NAMELESS
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.column import Column
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import csv_text, faults
from ldsvm.datasets.files.find import TABLES, Found, find
from ldsvm.datasets.files.kinds import is_list, is_number, is_text
from ldsvm.datasets.files.roles import is_day, spread, texts_of
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.files.spellings import COMMA, MISSING, THOUSANDS, Spelling
from ldsvm.datasets.files.tables import OPEN, Columns, Opened
from ldsvm.datasets.large import is_large
from ldsvm.datasets.words import shown

MOST_MARKS = 5  # other words in columns of numbers that may all mark gaps
LOOKED_AT = 200_000  # rows of a large table
LONGEST = 30  # names that a command shows
YEARS = range(1900, 2101)  # that may be names of columns


@dataclass(frozen=True, eq=False)
class Looked:
    """A table as it lies there: how to read it, its columns as pyarrow arrays, and those that can be no inputs.

    columns are None for formats that are no tables.
    """

    spec: FileSpec
    columns: Mapping[str, Sequence[Any]] | None
    left_out: tuple[Column, ...] = ()


def look(spec: FileSpec) -> Looked:
    """Return a table with a `FileSpec` that reads it; raise `DataError` where it cannot be read or has no header."""
    spec = _with_format(spec)
    found, _ = find(spec)
    if found.format not in TABLES:
        return Looked(spec, None)
    columns, index = _columns(found, spec)
    used = {spec.label or "label", spec.group, spec.time}
    every = [_no_input(name, pieces, index) for name, pieces in columns.items() if name not in used]
    left_out = tuple(column for column in every if column is not None)
    names = tuple(column.name for column in left_out)
    inputs = [columns[name] for name in columns if name not in (*names, spec.label or "label")]
    decimal, marks = find_spelling(inputs, found.format, spec.decimal)
    return Looked(replace(spec, decimal=decimal, missing_values=marks, drop=names), columns, left_out)


def find_spelling(
    columns: Sequence[Sequence[Any]], format: str, decimal: str | None = None
) -> tuple[str | None, tuple[str, ...]]:
    """Return the decimal mark, None for the point, and the marks of gaps of some columns (pyarrow arrays).

    decimal: the mark, where it is known. 1,234 may be a thousand, but not where ; separates the fields. In columns of
    numbers up to five other words count as marks of gaps too; in columns of words only ? does.

    Examples
    --------
    >>> import pyarrow
    >>> find_spelling([[pyarrow.array(["1,5", "?", "2"])], [pyarrow.array(["red", "-"])]], "csv")
    (',', ('?',))
    """
    pc = optional("pyarrow.compute")
    texts = [texts_of(pieces, Spelling()).drop_null() for pieces in columns if any(is_text(one.type) for one in pieces)]
    numbers = [text for text in texts if Spelling().mostly_numbers(text)]

    def matches(text: Any, pattern: str) -> Any:
        return text.filter(pc.match_substring_regex(text, pattern))

    commas = [matches(text, COMMA) for text in numbers]
    sure = any(len(text) > (0 if format == "semicolon" else len(matches(text, THOUSANDS))) for text in commas)
    decimal = decimal or ("," if sure else None)
    spelling = Spelling.of(decimal, ())
    strays = [text.filter(spelling.strays(text)) for text in numbers]
    marks = {mark for text in strays for mark in matches(text, MISSING).to_pylist()}
    marks |= {mark for text in texts for mark in matches(text, r"^\?$").to_pylist()}
    words = {word for text in strays for word in pc.unique(text).to_pylist()} - marks
    words = {word for word in words if not any(char.isdigit() for char in word)}
    return decimal, tuple(sorted(marks | (words if len(words) <= MOST_MARKS else set())))


def _with_format(spec: FileSpec) -> FileSpec:
    """Return the spec with a format where the name does not tell it, or commas do not separate the fields."""
    path = Path(spec.path).expanduser()
    try:
        found, _ = find(spec)
        file, known = found.files[0], found.format
    except DataError:
        if spec.format is not None or not path.is_file():
            raise
        file, known = path, ""
    if spec.format is not None or known not in ("", "csv"):
        return spec
    widths = {format: _width(file, delimiter) for format, delimiter in csv_text.DELIMITERS.items()}
    best = max(widths, key=lambda format: widths[format])
    if not known and widths[best] < 2:
        raise DataError(f"{path}: is no table whose fields a comma, a semicolon or a tab separates.")
    return spec if best == known else replace(spec, format=best)


def _width(file: Path, delimiter: str) -> int:
    """Return how many columns a file has with this delimiter; 0 where its rows do not agree."""
    try:
        with faults.reading(file, "csv"):
            names, _ = csv_text.stream(file, delimiter)
    except DataError:
        return 0
    return len(names)


def _columns(found: Found, spec: FileSpec) -> tuple[dict[str, Sequence[Any]], list[str]]:
    """Return all columns of a table in all its files, and the names of those that are the index of the rows.

    Of a table that is too large for memory some rows are enough, see `spread`.
    """
    files: list[tuple[Path, Opened]] = []
    index: list[str] = []
    for file in found.files:
        with faults.reading(file, found.format):
            opened = OPEN[found.format](file, spec)
            _check_names(opened.names, file)
        files.append((file, opened))
        index = index or [*opened.index]
    names = [*dict.fromkeys(name for _, opened in files for name in opened.names)]
    columns = Columns(files, found.format, names)
    if is_large(sum(opened.rows or 0 for _, opened in files), len(names)):
        pieces = {name: [_copy(piece) for piece in spread(columns[name], LOOKED_AT)] for name in names}
    else:
        pieces = columns.read(names)
    words = [name for name in pieces if any(is_text(piece.type) for piece in pieces[name])]
    values = [name for name in words if _is_value(name, pieces[name])]
    if len(values) > 1 and 2 * len(values) > len(words):
        raise DataError(_headless(found.files[0], list(pieces), f"{shown(values[0])} is also a value below it"))
    return {**pieces}, index


def _copy(piece: Any) -> Any:
    """Return a part of a column without the rest of it in memory."""
    return piece.take(optional("pyarrow").array(range(len(piece))))


def _check_names(names: Sequence[str], file: Path) -> None:
    """Raise `DataError` where the first line holds values instead of names: numbers, or the same one twice."""
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(_headless(file, names, f"{shown(twice)} is there {names.count(twice)} times"))
    numbers = {name: number for name in names if (number := _number(name)) is not None}
    found = [*numbers.values()]
    counted = len(found) > 1 and all(b - a == 1 for a, b in pairwise(found))
    if not counted and not all(number in YEARS for number in found):  # 0, 1, 2, … are names, too
        raise DataError(_headless(file, names, f"{shown(next(iter(numbers)))} is a number"))


def _number(name: str) -> float | None:
    try:
        return float(name.replace(",", "."))
    except ValueError:
        return None


def _is_value(name: str, pieces: Sequence[Any]) -> bool:
    pc, pa = optional("pyarrow.compute"), optional("pyarrow")
    texts = [piece for piece in pieces if is_text(piece.type)]
    return bool(name) and any(pc.index(piece, pa.scalar(name, piece.type)).as_py() >= 0 for piece in texts)


def _headless(file: Path, names: Sequence[str], why: str) -> str:
    title = ",".join([*(f"c{i + 1}" for i in range(len(names) - 1)), "label"]) if len(names) <= LONGEST else "NAMES"
    return (
        f"{file}: the first line must hold the names of the columns, but {why}; add such a line, for instance by "
        f"{{ echo {title}; cat {file.name}; }} > named.csv"
    )


def _no_input(name: str, pieces: Sequence[Any], index: Sequence[str]) -> Column | None:
    """Return a column with the reason why it can be no input, None where it may be one."""
    if NAMELESS.fullmatch(name) or name in index:
        return Column(name, "identifier", reason="the number of the row")
    others = [one.type for one in pieces if not any(test(one.type) for test in (is_text, is_number, is_day, is_list))]
    return Column(name, str(others[0]), reason="no input is made of this type") if others else None
