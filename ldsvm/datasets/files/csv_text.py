"""CSV and TSV files, plain or gzipped, in UTF-8 or else Latin-1."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import expansion, quotes

DELIMITERS = {"csv": ",", "semicolon": ";", "tsv": "\t"}  # by the format's name
BLOCK = 1 << 24  # pyarrow wants every row within one block, and a text may be long
SHORT = 1 << 18  # of which most first rows are, and quickly read


def read(path: Path, delimiter: str, texts: Sequence[str]) -> Any:
    """Return a pyarrow table with the types that the values suggest; the columns ``texts`` stay text.

    The first line are the names. Fields may be quoted by ``"`` and then hold line breaks. An empty field, NA, NaN,
    null and the like are missing in a column of numbers or dates, and words in a column of text, as 0x1f is. Raises
    `DataError` for rows with too many or too few fields, for a quotation that never ends or that no separator follows,
    and for UTF-16.
    """
    encoding, even, hexadecimal = _scan(path, delimiter)
    with _even_rows(path, delimiter, encoding):
        table = _parse(path, delimiter, texts, encoding)
    if not even and len(table):
        _refuse_open_quotes(table, path, len(table))
    return _without_hexadecimal(table, path, delimiter, encoding) if hexadecimal else table


def stream(path: Path, delimiter: str) -> tuple[list[str], Callable[[Sequence[str]], Iterator[Any]]]:
    """Return the names of the columns, and a function that yields batches of some of them in little memory.

    All values are text, as they are written: what is a number in one batch may be none in the next. Raises what `read`
    raises, for the rows when they are reached.
    """
    encoding, even, _ = _scan(path, delimiter)
    with _even_rows(path, delimiter, encoding):
        names = _names(path, delimiter, encoding)

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        only = [*dict.fromkeys([*wanted, *(() if even else names[-1:])])]
        rows = 0
        with _even_rows(path, delimiter, encoding), _opened(path, delimiter, only, encoding, only) as reader:
            for batch in reader:
                rows += len(batch)
                yield batch
                if not even and len(batch):
                    last = batch
        if not even and rows:
            _refuse_open_quotes(last, path, rows)

    return names, batches


def _names(path: Path, delimiter: str, encoding: str, block: int | None = SHORT) -> list[str]:
    try:
        with _opened(path, delimiter, (), encoding, block=block) as reader:
            return list(reader.schema.names)
    except optional("pyarrow").ArrowInvalid:
        if block is None:
            raise
    return _names(path, delimiter, encoding, None)


def numbers(piece: Any) -> Any:
    """Return text as the numbers that `read` finds in it, or as it is where some of it is no number."""
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


def _parse(path: Path, delimiter: str, texts: Sequence[str], encoding: str, only: Sequence[str] = ()) -> Any:
    """Return a table of all columns, or of ``only`` some."""
    csv = optional("pyarrow.csv")
    with _bytes(path) as source:
        return csv.read_csv(source, *_options(delimiter, texts, encoding, only))


@contextmanager
def _opened(
    path: Path, delimiter: str, texts: Sequence[str], encoding: str, only: Sequence[str] = (), **options: Any
) -> Iterator[Any]:
    """Yield a reader of batches, of all columns or of ``only`` some."""
    csv = optional("pyarrow.csv")
    with _bytes(path) as source, csv.open_csv(source, *_options(delimiter, texts, encoding, only, **options)) as reader:
        yield reader


def _options(
    delimiter: str, texts: Sequence[str], encoding: str, only: Sequence[str], block: int | None = None, **options: Any
) -> tuple[Any, Any, Any]:
    pa, csv = optional("pyarrow"), optional("pyarrow.csv")
    one = "invalid_row_handler" in options
    reading = csv.ReadOptions(encoding=encoding, block_size=block or BLOCK, use_threads=not one)
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, **options)
    return reading, parsing, csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()), include_columns=only)


def _bytes(path: Path) -> Any:
    return optional("pyarrow").input_stream(str(path), compression="gzip" if _gzipped(path) else None)


@contextmanager
def _even_rows(path: Path, delimiter: str, encoding: str) -> Iterator[None]:
    """Have the error of the block, where a row has too many or too few fields, name the first such row."""
    try:
        yield
    except optional("pyarrow").ArrowInvalid as error:
        # The library's message would quote the whole row.
        if not re.search(r"Expected \d+ columns, got \d+", str(error)):
            raise
        raise _uneven(path, delimiter, encoding) from error


def _uneven(path: Path, delimiter: str, encoding: str) -> DataError:
    """Return the error that names the first row with another number of fields than the header has names."""
    found: list[Any] = []

    def note(row: Any) -> str:
        found.append(row)
        return "skip"

    # Only one thread counts rows; the header is line 1.
    with _opened(path, delimiter, (), encoding, invalid_row_handler=note) as reader:
        while not found:
            reader.read_next_batch()
    first = found[0]
    return DataError(
        f"{path}: row {first.number - 2} has {first.actual_columns} fields, but the header has "
        f"{first.expected_columns}; quote fields that hold the separator {delimiter!r}."
    )


def _without_hexadecimal(table: Any, path: Path, delimiter: str, encoding: str) -> Any:
    """Return a table whose columns with a 0x1f are text: pyarrow takes it for 31, which hardly anybody means."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    numbers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    if not numbers or len(set(table.column_names)) < table.num_columns:  # repeated names are refused later
        return table
    spelled = _parse(path, delimiter, numbers, encoding, numbers)
    for name in numbers:
        if pc.any(pc.match_substring_regex(spelled[name], r"^\s*[+-]?0[xX]")).as_py():
            table = table.set_column(table.column_names.index(name), name, spelled[name])
    return table


def _scan(path: Path, delimiter: str) -> tuple[str, bool, bool]:
    """Return the encoding of a file, whether its quotation marks are even in number, and whether it holds a 0x."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    encoding, marks, hexadecimal, doubted = "utf-8", 0, False, False
    doubtful = quotes.doubtful(delimiter)
    with open_plain(path) as stream:
        start = stream.read(2)
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DataError(f"{path}: starts with {start.hex(' ')} and so is UTF-16; save it as UTF-8.")
        stream.seek(0)
        for block in blocks(stream, path):
            marks += block.count(b'"')
            doubted = doubted or doubtful(block)
            # Most files have no x at all, which is found out sooner than where a 0 is not followed by one.
            hexadecimal = hexadecimal or any(x in block and b"0" + x in block for x in (b"x", b"X"))
            encoding = encoding if encoding != "utf-8" or _decodes(decoder, block) else "latin-1"
        if doubted:
            stream.seek(0)
            quotes.check(stream, path, delimiter, BLOCK)
    if encoding == "utf-8" and not _decodes(decoder, b"", final=True):
        encoding = "latin-1"
    return encoding, marks % 2 == 0, hexadecimal


def blocks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file that `open_plain` opened; raise `DataError` where gzip expands without end."""
    packed, size = path.stat().st_size, 0
    for block in iter(lambda: stream.read(BLOCK), b""):
        size += len(block)
        if _gzipped(path):
            expansion.check(path, packed, size)
        yield block


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
        raise DataError(f'{path}: a quotation mark (") in row {rows - 1} is never closed; close or double it.')


def open_plain(path: Path) -> IO[bytes]:
    """Open a file for its bytes, without the compression that its name tells."""
    return gzip.open(path) if _gzipped(path) else path.open("rb")  # type: ignore[return-value]


def _gzipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")
