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
from ldsvm.datasets.files import csv_text, faults, opening
from ldsvm.datasets.files.find import TABLES, Found, find
from ldsvm.datasets.files.kinds import is_list, is_number, is_text
from ldsvm.datasets.files.layout import check_unique
from ldsvm.datasets.files.opening import Style
from ldsvm.datasets.files.roles import is_day, spread, texts_of
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.files.spellings import (
    COMMA,
    DOTTED,
    MISSING,
    QUOTED,
    SPACED,
    SURE_COMMA,
    SURE_THOUSANDS,
    THOUSANDS,
    Spelling,
)
from ldsvm.datasets.files.tables import Columns, Opened, open_file
from ldsvm.datasets.large import is_large
from ldsvm.datasets.words import shown

MOST_MARKS = 5  # other words in columns of numbers that may all mark gaps
LOOKED_AT = 200_000  # rows of a large table
YEARS = range(1900, 2101)  # that may be names of columns


@dataclass(frozen=True, eq=False)
class Looked:
    """A table as it was found: how to read it, its columns as pyarrow arrays, and those that cannot be inputs.

    columns are None for formats other than tables. sentences: on the names of the columns and the encoding.
    """

    spec: FileSpec
    columns: Mapping[str, Sequence[Any]] | None
    left_out: tuple[Column, ...] = ()
    sentences: tuple[str, ...] = ()


def look(spec: FileSpec, header: bool | None = None) -> Looked:
    """Return a table with a `FileSpec` that reads it; raise `DataError` where it cannot be read.

    header: whether the first line holds the names of the columns; None finds out. Where it does not, and no label is
    named, the last column is the label.
    """
    spec = _with_format(spec)
    found, _ = find(spec)
    if found.format not in TABLES:
        return Looked(spec, None)
    sentences: list[str] = []
    if found.format in csv_text.DELIMITERS:
        spec, sentences = _as_text(spec, found, header)
    columns, index = _columns(found, spec)
    if not spec.header:
        sentences.append(f"The columns are c0 to c{len(columns) - 1}: the first line holds values, not names.")
        if spec.label is None:
            spec = replace(spec, label=[*columns][-1])
            sentences.append(f"The last one, {spec.label}, is used as the label; choose another with --label.")
        elif spec.label not in columns:
            raise DataError(
                f"{spec.path}: --label is {shown(spec.label)}, but the first line holds no column names; allowed: "
                f"c0 to c{len(columns) - 1}, or --header if that line does hold names."
            )
    if absent := [name for name in spec.drop if name not in columns]:
        raise DataError(
            f"{spec.path}: --drop names {shown(absent[0])}, which is not a column"
            f"{faults.nearest(absent[0], [*columns])}; the columns are {faults.names([*columns])}."
        )
    used = {spec.label or "label", spec.group, spec.time, *spec.drop}
    every = [_no_input(name, pieces, index) for name, pieces in columns.items() if name not in used]
    left_out = tuple(column for column in every if column is not None)
    left_out += tuple(Column(name, "ignore", reason="as --drop says") for name in spec.drop)
    left_out += _lists(columns, {*used, *(column.name for column in left_out)})
    names = tuple(column.name for column in left_out)
    inputs = [name for name in columns if name not in (*names, spec.label or "label")]
    written = find_spelling([columns[name] for name in inputs], found.format, spec.decimal)
    if written.decimal == "," and spec.decimal is None and found.format in csv_text.DELIMITERS:
        again, _ = _columns(found, replace(spec, decimal=","))  # where 1.234 is no number yet
        written = find_spelling([again[name] for name in inputs], found.format, ",")
    decimal = spec.decimal or ("," if written.decimal == "," else None)
    spec = replace(
        spec, decimal=decimal, thousands=written.thousands or None, missing_values=written.missing, drop=names
    )
    return Looked(spec, columns, left_out, tuple(sentences))


def _as_text(spec: FileSpec, found: Found, header: bool | None) -> tuple[FileSpec, list[str]]:
    """Return how to read a table of text, and what to say about it."""
    file, delimiter = found.files[0], csv_text.DELIMITERS[found.format]
    with faults.reading(file, found.format):
        encoding = csv_text.found_encoding(file, Style(delimiter, encoding=spec.encoding))
    said = [
        f"{file.name} is read as {encoding}, since it is not UTF-8; check that characters such as ä and € are right."
    ]
    if header is None:
        header = has_header(file, Style(delimiter, encoding=spec.encoding), spec.label)
        if not header and spec.label in csv_text.stream(file, Style(delimiter, encoding=spec.encoding))[0]:
            raise DataError(
                f"{file}: the first line looks like a row of values, but contains {shown(str(spec.label))}; add "
                "--header if it holds the column names, or --no-header if it does not."
            )
    said = said if encoding != "utf-8" and spec.encoding is None else []
    if opening.has_single_quotes(file, Style(delimiter, encoding=encoding)):
        said.append("Single quotes around values ('a') are read like double quotes, and removed.")
    return replace(spec, header=header), said


def find_spelling(columns: Sequence[Sequence[Any]], format: str, decimal: str | None = None) -> Spelling:
    """Return how some columns (pyarrow arrays) write numbers and gaps.

    decimal: the mark, where it is known. 1,234 may be a thousand, but not where ; separates the fields. In columns of
    numbers up to five other words count as marks of gaps too; in columns of words only ? does.

    Examples
    --------
    >>> import pyarrow
    >>> find_spelling([[pyarrow.array(["1,5", "?", "2"])], [pyarrow.array(["red", "-"])]], "csv")
    Spelling(decimal=',', missing=('?',), section='dataset', thousands='')
    """
    pc = optional("pyarrow.compute")
    texts = [texts_of(pieces, Spelling()).drop_null() for pieces in columns if any(is_text(one.type) for one in pieces)]
    numbers = [text for text in texts if Spelling().mostly_numbers(text)]

    def matches(text: Any, pattern: str) -> Any:
        return text.filter(pc.match_substring_regex(text, pattern))

    commas = [matches(text, COMMA) for text in numbers]
    sure = any(len(text) > (0 if format == "semicolon" else len(matches(text, THOUSANDS))) for text in commas)
    sure = sure or any(len(matches(text, SURE_COMMA)) for text in numbers)
    if any(len(matches(text, SURE_THOUSANDS)) for text in numbers):
        decimal, sure = decimal or ".", False
    asked = THOUSANDS if decimal == "." else SURE_THOUSANDS
    decimal = decimal or ("," if sure else ".")
    groups = {".": DOTTED, " ": SPACED, "'": QUOTED} if decimal == "," else {",": asked, " ": SPACED, "'": QUOTED}
    counts = {mark: sum(len(matches(text, pattern)) for text in numbers) for mark, pattern in groups.items()}
    spelling = Spelling(decimal, thousands=max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else "")
    strays = [text.filter(spelling.strays(text)) for text in numbers]
    marks = {mark for text in strays for mark in matches(text, MISSING).to_pylist()}
    marks |= {mark for text in texts for mark in matches(text, r"^\?$").to_pylist()}
    words = {word for text in strays for word in pc.unique(text).to_pylist()} - marks
    words = {word for word in words if not any(char.isdigit() for char in word)}
    return replace(spelling, missing=tuple(sorted(marks | (words if len(words) <= MOST_MARKS else set()))))


def _with_format(spec: FileSpec) -> FileSpec:
    """Return the spec with a format if the name does not imply it, or if the fields are not separated by commas."""
    try:
        found, _ = find(spec)
        known = found.format
    except DataError:
        if spec.format is not None:
            raise
        known = ""
    if not known:
        found, _ = find(replace(spec, format="csv"))  # a file with any name, or a folder of such as .dat
    if spec.format is not None or known not in ("", "csv"):
        return spec
    best = _separator(found.files[0], spec.encoding)
    if not known and best is None:
        raise DataError(
            f"{found.files[0]}: cannot be read as a table; allowed: fields separated by commas, semicolons, tabs, "
            "| or blanks, and the same number of fields in every row."
        )
    return spec if best in (None, known) else replace(spec, format=best)


def _separator(file: Path, encoding: str | None) -> str | None:
    """Return the format that makes most columns of a file; blanks only where nothing else does.

    Where commas make no more than others do, they are decimal marks: 1,5;2,5;red has three columns in two ways.
    """
    with faults.reading(file, "csv"), opening.uncompressed(file) as stream:
        head = stream.read(opening.HEAD)
    there = {name: mark for name, mark in csv_text.DELIMITERS.items() if mark.encode() in head and name != "blanks"}
    widths = {name: _width(file, Style(mark, encoding=encoding)) for name, mark in there.items()}
    best = max(widths, key=lambda name: (widths[name], name != "csv"), default="blanks")
    if widths.get(best, 0) > 1:
        return best
    return "blanks" if _width(file, Style(opening.BLANKS, encoding=encoding)) > 1 else None


def _width(file: Path, style: Style) -> int:
    """Return how many columns a file has in this style; 0 where the first rows do not agree."""
    try:
        with faults.reading(file, "csv"):
            names, batches = csv_text.stream(file, style)
            next(batches(names[:1]), None)
    except DataError:
        return 0
    return len(names)


def has_header(file: Path, style: Style, label: str | None = None) -> bool:
    """Return whether the first line of a file of text holds names.

    It does not where its cells are values of their columns: numbers among numbers, words that come back below. Where
    the label is one of them, the others decide, and any word that does not come back is a name.
    """
    if opening.has_preamble(file, style):
        return True
    pc = optional("pyarrow.compute")
    try:
        with faults.reading(file, "csv"):
            names, batches = csv_text.stream(file, replace(style, header=False))
            batch = next(batches(names), None)
    except DataError:  # reading it says what is wrong
        return True
    if batch is None or len(batch) < 2:
        return True
    numbers, words, others = [], 0, 0
    columns = [texts_of([batch[name]], Spelling()) for name in names]
    known = label is not None and any(column[0].as_py() == label for column in columns)
    for column in columns:
        cell, below = column[0].as_py(), column[1:].drop_null()
        if cell is None or not len(below) or (known and cell == label):
            continue
        number = _number(cell)
        if Spelling().mostly_numbers(below):
            if number is None and not pc.match_substring_regex(column[:1], MISSING)[0].as_py():
                return True
            numbers += [] if number is None else [number]
        elif pc.index(below, cell).as_py() >= 0:
            words += 1
        elif known or len(below.unique()) <= len(below) / 2:
            others += 1  # a value of a column with few would come back
    if words != others:
        return others > words
    counted = len(numbers) > 1 and all(b - a == 1 for a, b in pairwise(numbers))  # 0, 1, 2, … are names, too
    return counted or all(number in YEARS for number in numbers)


def _columns(found: Found, spec: FileSpec) -> tuple[dict[str, Sequence[Any]], list[str]]:
    """Return all columns of a table in all its files, and the names of those that are the index of the rows.

    Of a table that is too large for memory some rows are enough, see `spread`.
    """
    files: list[tuple[Path, Opened]] = []
    index: list[str] = []
    for file in found.files:
        with faults.reading(file, found.format):
            opened = open_file(file, found, spec)
            check_unique(opened.names, file)
        files.append((file, opened))
        index = index or [*opened.index]
    names = [*dict.fromkeys(name for _, opened in files for name in opened.names)]
    columns = Columns(files, found.format, names)
    if is_large(sum(opened.rows for _, opened in files), len(names)):
        return {name: [_copy(piece) for piece in spread(columns[name], LOOKED_AT)] for name in names}, index
    return {**columns.read(names)}, index


def _copy(piece: Any) -> Any:
    """Return a part of a column without the rest of it in memory."""
    return piece.take(optional("pyarrow").array(range(len(piece))))


def _number(name: str) -> float | None:
    try:
        return float(name.replace(",", "."))
    except ValueError:
        return None


def _lists(columns: Mapping[str, Sequence[Any]], used: set[str | None]) -> tuple[Column, ...]:
    """Return the columns of lists that cannot be inputs: lists of words, or lists beside columns of other kinds."""
    inputs = {name: pieces for name, pieces in columns.items() if name not in used}
    lists = {name: pieces for name, pieces in inputs.items() if any(is_list(one.type) for one in pieces)}
    others = [one.type for name, pieces in inputs.items() if name not in lists for one in pieces]
    numbers = all(map(is_number, others))
    reason = "lists cannot be inputs" + ("" if numbers else " beside columns of other kinds")
    return tuple(
        Column(name, "list", reason=reason)
        for name, pieces in lists.items()
        if not numbers or not all(is_list(one.type) and is_number(one.type.value_type) for one in pieces)
    )


def _counts(pieces: Sequence[Any]) -> bool:
    """Return whether a column holds whole numbers alone, each of them once."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    if not pieces or not all(pa.types.is_integer(one.type) for one in pieces):
        return False
    values = pa.concat_arrays([one.cast(pa.int64(), safe=False) for one in pieces])
    return bool(values.null_count == 0 and pc.count_distinct(values).as_py() == len(values))


def _no_input(name: str, pieces: Sequence[Any], index: Sequence[str]) -> Column | None:
    """Return a column with the reason why it cannot be an input; None if it can."""
    if name in index or NAMELESS.fullmatch(name):
        counts = name in index or _counts(pieces)
        return Column(name, "identifier", reason="the number of the row" if counts else "it has no name")
    others = [one.type for one in pieces if not any(test(one.type) for test in (is_text, is_number, is_day, is_list))]
    return Column(name, str(others[0]), reason="this type cannot be an input") if others else None
