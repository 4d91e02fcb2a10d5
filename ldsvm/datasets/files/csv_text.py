"""CSV and TSV files, plain or gzipped, in UTF-8 or else Latin-1."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError

HEXADECIMAL = re.compile(rb"0[xX][0-9a-fA-F]")
BLOCK = 1 << 24  # pyarrow wants every row within one block, and a text may be long


def read(path: Path, delimiter: str, texts: Sequence[str]) -> Any:
    """Return a pyarrow table with the types that the values suggest; the columns ``texts`` stay text.

    The first line are the names. Fields may be quoted by ``"`` and then hold line breaks. An empty field, NA, NaN,
    null and the like are missing in a column of numbers or dates, and words in a column of text, as 0x1f is. Raises
    `DataError` for rows with too many or too few fields, for a quotation that never ends, and for UTF-16.
    """
    pa = optional("pyarrow")
    encoding, even, hexadecimal = _scan(path)
    try:
        table = _parse(path, delimiter, texts, encoding)
    except pa.ArrowInvalid as error:
        # The library's message would quote the whole row.
        if not re.search(r"Expected \d+ columns, got \d+", str(error)):
            raise
        raise _uneven(path, delimiter, encoding) from error
    if not even and len(table) and _ends_inside_quotes(table):
        raise DataError(f'{path}: a quotation mark (") in row {len(table) - 1} is never closed; close or double it.')
    return _without_hexadecimal(table, path, delimiter, encoding) if hexadecimal else table


def _parse(
    path: Path, delimiter: str, texts: Sequence[str], encoding: str, only: Sequence[str] = (), **options: Any
) -> Any:
    """Return a table of all columns, or of ``only`` some."""
    pa, csv = optional("pyarrow"), optional("pyarrow.csv")
    reading = csv.ReadOptions(encoding=encoding, block_size=BLOCK, use_threads="invalid_row_handler" not in options)
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, **options)
    converting = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()), include_columns=only)
    with pa.input_stream(str(path), compression="gzip" if _gzipped(path) else None) as stream:
        return csv.read_csv(stream, reading, parsing, converting)


def _uneven(path: Path, delimiter: str, encoding: str) -> DataError:
    """Return the error that names the first row with another number of fields than the header has names."""
    found: list[Any] = []

    def note(row: Any) -> str:
        found.append(row)
        return "skip"

    # Only one thread counts rows; the header is line 1.
    _parse(path, delimiter, (), encoding, invalid_row_handler=note)
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


def _scan(path: Path) -> tuple[str, bool, bool]:
    """Return the encoding of a file, whether its quotation marks are even in number, and whether it holds a 0x."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    encoding, quotes, hexadecimal = "utf-8", 0, False
    with _open(path) as stream:
        start = stream.read(2)
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DataError(f"{path}: starts with {start.hex(' ')} and so is UTF-16; save it as UTF-8.")
        stream.seek(0)
        for block in iter(lambda: stream.read(BLOCK), b""):
            quotes += block.count(b'"')
            hexadecimal = hexadecimal or HEXADECIMAL.search(block) is not None
            encoding = encoding if encoding != "utf-8" or _decodes(decoder, block) else "latin-1"
    if encoding == "utf-8" and not _decodes(decoder, b"", final=True):
        encoding = "latin-1"
    return encoding, quotes % 2 == 0, hexadecimal


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _ends_inside_quotes(table: Any) -> bool:
    """Tell whether the last field swallowed lines: with an odd number of marks, its own was never closed."""
    last = table.column(table.num_columns - 1)[-1].as_py()
    return isinstance(last, str) and "\n" in last


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path) if _gzipped(path) else path.open("rb")  # type: ignore[return-value]


def _gzipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")
