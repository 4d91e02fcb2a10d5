"""Quotation marks in CSV and TSV files that close a field too early, as \\" does where "" is meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ldsvm.datasets.dataset import DataError

ROOM = 1 << 25  # a longer field is left to pyarrow, which refuses it


def doubtful(delimiter: str) -> Callable[[bytes], bool]:
    """Return a quick test of one block after the other: whether `check` should have a look at the file.

    That is so where a mark stands between two characters of one field, or after a backslash; most files have neither.

    Examples
    --------
    >>> test = doubtful(",")
    >>> test(b'a,"b","c ""d"" e"'), test(b'"a'), test(b'"b')
    (False, False, True)
    """
    plain = rb'[^"\r\n%b]' % re.escape(delimiter.encode())
    pattern = re.compile(rb'"(?:(?<=%b")%b|(?<=\\"))' % (plain, plain))
    tail = b""

    def test(block: bytes) -> bool:
        nonlocal tail
        border, tail = tail + block[:2], block[-2:]  # a pattern may begin in the block before
        return pattern.search(border) is not None or pattern.search(block) is not None

    return test


def check(stream: IO[bytes], path: Path, delimiter: str, block: int) -> None:
    """Raise `DataError` where a quoted field goes on after its closing mark: who wrote it meant no closing mark.

    Spaces may follow. Marks inside a field that does not start with one are characters as others are.
    """
    end = re.escape(delimiter.encode())
    quoted = re.compile(rb'"[^"]*+(?:""[^"]*+)*+" *+')
    field = re.compile(rb'(?:%b|[^"\r\n%b][^\r\n%b]*+)?+(?:(\r\n|\r(?!\Z)|\n)|%b)' % (quoted.pattern, end, end, end))
    buffer, row, empty = b"", -1, True  # the header is row -1
    while more := stream.read(block):
        buffer += more
        at = 3 if row == -1 and buffer.startswith(b"\xef\xbb\xbf") else 0
        while found := field.match(buffer, at):
            blank = empty and found.end() == found.end(1) and found.start() == found.start(1)
            row += found[1] is not None and not blank
            empty, at = found[1] is not None, found.end()
        buffer = buffer[at:]
        closed = quoted.match(buffer)
        if closed and buffer[closed.end() : closed.end() + 1] not in (b"", b'"', b"\r"):
            where = "the header" if row < 0 else f"row {row}"
            raise DataError(
                f'{path}: no separator follows a closing quotation mark (") in {where}; '
                'a mark inside a quoted field must be doubled, "" and not \\".'
            )
        if len(buffer) > ROOM:
            return
