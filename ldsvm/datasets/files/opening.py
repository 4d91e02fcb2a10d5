"""Open text tables for their readers: decompressed, in UTF-8, and with a first line of column names."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import expansion, quotes

BLOCK = 1 << 24  # pyarrow wants every row within one block, and a text may be long
HEAD = 1 << 20  # bytes in which the first row ends
BLANKS = " "  # as a delimiter: any run of blanks and tabs
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"}
MARKS |= {codecs.BOM_UTF16_BE: "utf-16"}  # in this order: the mark of UTF-32 starts with that of UTF-16
# ARFF and KEEL files say the names of the columns in such lines, before one with @data.
PREAMBLE = re.compile(
    rb"\A(?:\s|%[^\n]*\n)*@relation\b.*?^[ \t]*@data[^\n]*\n", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
ATTRIBUTE = re.compile(rb"^[ \t]*@attribute[ \t]+('[^'\n]*'|\"[^\"\n]*\"|[^\s{]+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Style:
    """How a text table is written.

    delimiter: between the fields, `BLANKS` for any run of blanks. header: whether the first line holds the names of the
    columns, which are c0, c1, … where it does not. encoding: None where it is found out.
    """

    delimiter: str = ","
    header: bool = True
    encoding: str | None = None


def uncompressed(path: Path) -> IO[bytes]:
    """Open a file for its bytes, decompressed as the ending of its name says."""
    ending = path.suffix.lower()
    if ending == ".zst":
        return optional("pyarrow").input_stream(str(path), compression="zstd")
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(ending, open)
    return opener(path, "rb")


def blocks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file that `uncompressed` opened; raise `DataError` where it expands without end."""
    packed, size = path.stat().st_size, 0
    for block in iter(lambda: stream.read(BLOCK), b""):
        size += len(block)
        if path.suffix.lower() in COMPRESSED:
            expansion.check(path, packed, size)
        yield block


def in_utf8(path: Path, encoding: str | None) -> Iterator[bytes]:
    """Yield the bytes of a file, in UTF-8 where its encoding is given, and else as they are."""
    with uncompressed(path) as stream:
        if encoding in (None, "utf-8"):
            yield from blocks(stream, path)
            return
        try:
            for text in codecs.iterdecode(blocks(stream, path), str(encoding)):
                yield text.encode()
        except UnicodeError as error:
            why = error.reason if isinstance(error, UnicodeDecodeError) else error
            raise DataError(
                f"{path} is not {encoding} text ({why}); set dataset.encoding to the file's encoding, such as utf-8, "
                "cp1252 or utf-16, or leave it out to have it detected."
            ) from error


def marked_encoding(path: Path) -> str | None:
    """Return the UTF-16 or UTF-32 encoding that the first bytes of a file show, None for others."""
    with uncompressed(path) as stream:
        start = stream.read(256)
    marked = next((name for mark, name in MARKS.items() if start.startswith(mark)), None)
    if marked or b"\0" not in start:
        return marked
    odd, even = start[1::2].count(0), start[::2].count(0)  # most letters of most languages have a zero byte
    return "utf-16-le" if odd > 2 * even else "utf-16-be" if even > 2 * odd else None


def plain(path: Path, style: Style) -> bool:
    """Return whether pyarrow reads a file as it lies there."""
    usual = style.header and style.delimiter != BLANKS and style.encoding == "utf-8"
    if not usual or path.suffix.lower() == ".xz":
        return False
    head = _start(path, style)
    return PREAMBLE.match(head) is None and not quotes.single(head, style.delimiter)


def has_preamble(path: Path, style: Style) -> bool:
    """Return whether a file begins with lines @relation, @attribute and @data, which hold the names of the columns."""
    return PREAMBLE.match(_start(path, style)) is not None


def has_single_quotes(path: Path, style: Style) -> bool:
    """Return whether fields are in single quotes."""
    head = _start(path, style)
    found = PREAMBLE.match(head)
    return quotes.single(head, style.delimiter) if found is None else b"'" in head[found.end() :]


def _start(path: Path, style: Style) -> bytes:
    """Return the first bytes of a file, in UTF-8."""
    with uncompressed(path) as stream:
        head = stream.read(HEAD)
    if style.encoding not in (None, "utf-8"):
        head = head.decode(str(style.encoding), "ignore").encode()
    return head.removeprefix(codecs.BOM_UTF8)


def source(path: Path, style: Style) -> Any:
    """Open a file for pyarrow: in UTF-8, with one delimiter between two fields, and with a line of names."""
    if plain(path, style):
        kind = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())
        return optional("pyarrow").input_stream(str(path), compression=kind)
    return io.BufferedReader(_Pieces(_rewritten(path, style)), HEAD)


def _rewritten(path: Path, style: Style) -> Iterator[bytes]:
    pieces = in_utf8(path, style.encoding)
    head, pieces = _head(pieces)
    head = head.removeprefix(codecs.BOM_UTF8)
    found = PREAMBLE.match(head)
    names = [] if found is None else [name.strip(b"'\"").decode() for name in ATTRIBUTE.findall(found[0])]
    pieces = chain([head[found.end() :] if found else head], pieces)
    if found or quotes.single(head[:HEAD], style.delimiter):
        pieces = quotes.doubled(pieces, style.delimiter)
    if style.delimiter == BLANKS:
        pieces = _single_blanks(pieces)
    if not style.header and not names:
        head, pieces = _head(pieces)
        names = [f"c{place}" for place in range(_width(head, style.delimiter))]
        pieces = chain([head], pieces)
    if names:
        line = io.StringIO()
        csv.writer(line, delimiter=style.delimiter, lineterminator="\n").writerow(names)
        yield line.getvalue().encode()
    yield from pieces


def _head(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first pieces, together at least HEAD bytes if there are so many, and those that follow."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= HEAD:
            break
    return head, pieces


def _width(head: bytes, delimiter: str) -> int:
    """Return how many fields the first row has."""
    lines = csv.reader(io.StringIO(head.decode(errors="replace"), newline=""), delimiter=delimiter)
    try:
        return next((len(fields) for fields in lines if fields), 0)
    except csv.Error:  # a field that is longer than any name
        return 0


def _single_blanks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines with one blank between two fields, and none around the line; quoted blanks stay."""
    rest = b""
    for piece in pieces:
        lines, mark, rest = (rest + piece).rpartition(b"\n")
        yield _squeezed(lines + mark)
    yield _squeezed(rest)


def _squeezed(lines: bytes) -> bytes:
    lines = re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", lines)
    return re.sub(rb'("[^"]*")|[ \t]+', lambda found: found[1] or b" ", lines)


class _Pieces(io.RawIOBase):
    """What an iterator yields, as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while not len(self._left):
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(room), len(self._left))
        room[:size], self._left = self._left[:size], self._left[size:]
        return size
