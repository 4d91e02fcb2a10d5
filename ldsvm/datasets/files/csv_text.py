"""CSV and TSV files, plain or gzipped, in UTF-8 or else Latin-1."""

from __future__ import annotations

import codecs
import gzip
import re
from pathlib import Path
from typing import IO, Any

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError

BLOCK = 1 << 24  # pyarrow wants every row within one block, and a text may be long


def read(path: Path, delimiter: str, text: str | None) -> Any:
    """Return a pyarrow table with the types that the values suggest; the column ``text`` stays text.

    The first line are the names. Fields may be quoted by ``"`` and then hold line breaks. An empty field, NA, NaN,
    null and the like are missing in a column of numbers or dates, and words in a column of text. Raises
    `DataError` for rows with too many or too few fields and for a quotation that never ends.
    """
    pa = optional("pyarrow")
    encoding, even = _scan(path)
    try:
        table = _parse(path, delimiter, text, encoding)
    except pa.ArrowInvalid as error:
        # The library's message would quote the whole row.
        if not re.search(r"Expected \d+ columns, got \d+", str(error)):
            raise
        raise _uneven(path, delimiter, encoding) from error
    if not even and len(table) and _ends_inside_quotes(table):
        raise DataError(f'{path}: a quotation mark (") in row {len(table) - 1} is never closed; close or double it.')
    return table


def _parse(path: Path, delimiter: str, text: str | None, encoding: str, **options: Any) -> Any:
    pa, csv = optional("pyarrow"), optional("pyarrow.csv")
    reading = csv.ReadOptions(encoding=encoding, block_size=BLOCK, use_threads="invalid_row_handler" not in options)
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, **options)
    converting = csv.ConvertOptions(column_types={} if text is None else {text: pa.string()})
    with pa.input_stream(str(path), compression="gzip" if _gzipped(path) else None) as stream:
        return csv.read_csv(stream, reading, parsing, converting)


def _uneven(path: Path, delimiter: str, encoding: str) -> DataError:
    """Return the error that names the first row with another number of fields than the header has names."""
    found: list[Any] = []

    def note(row: Any) -> str:
        found.append(row)
        return "skip"

    # Only one thread counts rows; the header is line 1.
    _parse(path, delimiter, None, encoding, invalid_row_handler=note)
    first = found[0]
    return DataError(
        f"{path}: row {first.number - 2} has {first.actual_columns} fields, but the header has "
        f"{first.expected_columns}; quote fields that hold the separator {delimiter!r}."
    )


def _scan(path: Path) -> tuple[str, bool]:
    """Return the encoding of a file and whether its quotation marks are even in number."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    encoding, quotes = "utf-8", 0
    with _open(path) as stream:
        for block in iter(lambda: stream.read(BLOCK), b""):
            quotes += block.count(b'"')
            encoding = encoding if encoding != "utf-8" or _decodes(decoder, block) else "latin-1"
    if encoding == "utf-8" and not _decodes(decoder, b"", final=True):
        encoding = "latin-1"
    return encoding, quotes % 2 == 0


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
