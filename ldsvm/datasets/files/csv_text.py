"""CSV, TSV and other text tables, compressed or not, in any encoding."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import opening, quotes
from ldsvm.datasets.files.opening import Style
from ldsvm.datasets.words import row_list

DELIMITERS = {"csv": ",", "semicolon": ";", "tsv": "\t", "pipe": "|", "blanks": opening.BLANKS}  # by the format's name
UNDEFINED = [bytes([byte]) for byte in b"\x81\x8d\x8f\x90\x9d"]  # in Windows-1252
NO_TYPES: Mapping[str, Any] = {}
LONG = 1 << 26  # bytes of a file that takes a while to be looked through, so that is done once
SHORT = 1 << 18  # of which most first rows are, and quickly read


class Batches(Protocol):
    """What yields batches of some columns: as texts, or of these types, by name."""

    def __call__(self, wanted: Sequence[str], types: Mapping[str, Any] = NO_TYPES) -> Iterator[Any]: ...


def read(path: Path, style: Style, texts: Sequence[str]) -> Any:
    """Return a pyarrow table with the types that the values suggest; the columns ``texts`` stay text.

    The first line are the names, unless the style says otherwise, without the spaces around them. Fields may be quoted
    by ``"`` and then hold line breaks. An empty field, NA, NaN, null and the like are missing in a column of numbers or
    dates, and words in a column of text, as 0x1f is. Raises `DataError` for rows with too many or too few fields, for a
    quotation that never ends or that no separator follows, and for bytes that are not of the style's encoding.
    """
    style, even, hexadecimal = _scan(path, style)
    with _even_rows(path, style):
        names = _names(path, style) if texts else []
        table = _parse(path, style, [name for name in names if name.strip() in texts])
    if not even and len(table):
        _refuse_open_quotes(table, path, len(table))
    table = _without_hexadecimal(table, path, style) if hexadecimal else table
    return table.rename_columns([name.strip() for name in table.column_names])


def stream(path: Path, style: Style) -> tuple[list[str], Batches]:
    """Return the names of the columns, and a function that yields batches of some of them in little memory.

    All values are text, as they are written, but for columns whose pyarrow types are given, by name: what is a number
    in one batch may be none in the next. Raises what `read` raises, for the rows when they are reached.
    """
    style, even, _ = _scan(path, style)
    with _even_rows(path, style):
        names = _names(path, style)
    written, text = {name.strip(): name for name in names}, optional("pyarrow").string()

    def batches(wanted: Sequence[str], types: Mapping[str, Any] = NO_TYPES) -> Iterator[Any]:
        only = [*dict.fromkeys([*(written[name] for name in wanted), *(() if even else names[-1:])])]
        kinds = dict.fromkeys(only, text) | {written[name]: type for name, type in types.items()}
        rows = 0
        with _even_rows(path, style), _opened(path, style, kinds, only) as reader:
            for batch in reader:
                rows += len(batch)
                yield batch.rename_columns([name.strip() for name in only])
                if not even and len(batch):
                    last = batch
        if not even and rows:
            _refuse_open_quotes(last, path, rows)

    return [*map(str.strip, names)], batches


def found_encoding(path: Path, style: Style) -> str:
    """Return the encoding of a file: the style's, one that its bytes show, UTF-8, or else Windows-1252 or Latin-1."""
    return str(_scan(path, style)[0].encoding)


def _names(path: Path, style: Style, block: int | None = SHORT) -> list[str]:
    try:
        with _opened(path, style, {}, block=block) as reader:
            return list(reader.schema.names)
    except optional("pyarrow").ArrowInvalid:
        if block is None:
            raise
    return _names(path, style, None)


def numbers(piece: Any) -> Any:
    """Return text as the numbers that `read` finds in it; unchanged if some of it is not a number."""
    pa, pc, csv = optional("pyarrow"), optional("pyarrow.compute"), optional("pyarrow.csv")
    try:
        return piece.cast(pa.float64())
    except pa.ArrowInvalid:
        plain = pc.utf8_trim(piece, " \t")
    missing = pc.is_in(plain, value_set=pa.array(csv.ConvertOptions().null_values))
    plain = pc.if_else(missing, pa.scalar(None, pa.string()), plain)
    for type in (pa.float64(), pa.bool_()):
        try:
            return plain.cast(type)
        except pa.ArrowInvalid:
            continue
    return piece


def _parse(path: Path, style: Style, texts: Sequence[str], only: Sequence[str] = ()) -> Any:
    """Return a table of all columns, or of ``only`` some."""
    pa, csv = optional("pyarrow"), optional("pyarrow.csv")
    with opening.source(path, style) as source:
        return csv.read_csv(source, *_options(style, dict.fromkeys(texts, pa.string()), only))


@contextmanager
def _opened(
    path: Path, style: Style, types: Mapping[str, Any], only: Sequence[str] = (), **options: Any
) -> Iterator[Any]:
    """Yield a reader of batches, of all columns or of ``only`` some."""
    csv = optional("pyarrow.csv")
    with opening.source(path, style) as source, csv.open_csv(source, *_options(style, types, only, **options)) as read:
        yield read


def _options(
    style: Style, types: Mapping[str, Any], only: Sequence[str], block: int | None = None, **options: Any
) -> tuple[Any, Any, Any]:
    csv = optional("pyarrow.csv")
    one = "invalid_row_handler" in options
    reading = csv.ReadOptions(block_size=block or opening.BLOCK, use_threads=not one)
    parsing = csv.ParseOptions(delimiter=style.delimiter, newlines_in_values=True, **options)
    converting = csv.ConvertOptions(column_types=types, include_columns=only, include_missing_columns=one)
    return reading, parsing, converting


@contextmanager
def _even_rows(path: Path, style: Style) -> Iterator[None]:
    """Have the error of the block, where a row has too many or too few fields, name the first such row."""
    try:
        yield
    except optional("pyarrow").ArrowInvalid as error:
        # The library's message would quote the whole row.
        if not re.search(r"Expected \d+ columns, got \d+", str(error)):
            raise
        raise _uneven(path, style) from error


def _uneven(path: Path, style: Style) -> DataError:
    """Return the error that names the first row with another number of fields than the header has names."""
    found: list[Any] = []

    def note(row: Any) -> str:
        found.append(row)
        return "skip"

    # Only one thread counts rows; the header is line 1. A column that is not there needs no values to be read.
    with _opened(path, style, {}, ["\0"], invalid_row_handler=note) as reader:
        while not found:
            reader.read_next_batch()
    first = found[0]
    rule = f"quote fields that hold the separator {style.delimiter!r}"
    if first.expected_columns == 1:
        rule = "remove lines, such as a title, before the one with the names of the columns"
    return DataError(
        f"{path}: {row_list([first.number - 2])}, has {first.actual_columns} fields, but the "
        f"{'header' if style.header else 'first row'} has {first.expected_columns}; {rule}."
    )


def _without_hexadecimal(table: Any, path: Path, style: Style) -> Any:
    """Return a table whose columns with a 0x1f are text: pyarrow takes it for 31, which hardly anybody means."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    numbers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    if not numbers or len(set(table.column_names)) < table.num_columns:  # repeated names are refused later
        return table
    spelled = _parse(path, style, numbers, numbers)
    for name in numbers:
        if pc.any(pc.match_substring_regex(spelled[name], r"^\s*[+-]?0[xX]")).as_py():
            table = table.set_column(table.column_names.index(name), name, spelled[name])
    return table


def _scan(path: Path, style: Style) -> tuple[Style, bool, bool]:
    """Return the style with its encoding, whether the quotation marks are even in number, and whether there is a 0x."""
    about = path.stat()
    scan = _scanned if about.st_size > LONG else _scanned.__wrapped__
    return scan(path, style, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=64)
def _scanned(path: Path, style: Style, _size: int, _changed: int) -> tuple[Style, bool, bool]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    given = codecs.lookup(style.encoding).name if style.encoding else opening.marked_encoding(path)
    encoding, marks, hexadecimal, doubted, undefined = "utf-8", 0, False, False, False
    doubtful = quotes.doubtful(style.delimiter)
    for block in opening.in_utf8(path, given):
        marks += block.count(b'"')
        doubted = doubted or doubtful(block)
        # Most files have no x at all, which is found out sooner than where a 0 is not followed by one.
        hexadecimal = hexadecimal or any(x in block and b"0" + x in block for x in (b"x", b"X"))
        encoding = encoding if encoding != "utf-8" or _decodes(decoder, block) else "cp1252"
        undefined = undefined or any(byte in block for byte in UNDEFINED)
    if encoding == "utf-8" and not _decodes(decoder, b"", final=True):
        encoding = "cp1252"
    if given == "utf-8" and encoding != "utf-8":
        raise DataError(
            f"{path} is not UTF-8 text; leave dataset.encoding out, or set it to the file's encoding, such as cp1252."
        )
    style = replace(style, encoding=given or ("latin-1" if encoding == "cp1252" and undefined else encoding))
    if doubted:
        with opening.source(path, style) as text:
            quotes.check(text, path, style.delimiter, opening.BLOCK)
    return style, marks % 2 == 0, hexadecimal


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _refuse_open_quotes(table: Any, path: Path, rows: int) -> None:
    """Refuse a last field that swallowed lines: with an odd number of marks, its own was never closed."""
    last = table.column(table.num_columns - 1)[-1].as_py()
    if isinstance(last, str) and "\n" in last:
        raise DataError(f'{path}: a quotation mark (") in {row_list([rows - 1])}, is never closed; close or double it.')
