"""Quotation marks in tables of text: those that close a field too early, as \\" does, and single ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.words import row_list

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
    """Raise `DataError` where text follows the closing mark of a quoted field: the mark was not meant to close it.

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
            where = "the header" if row < 0 else row_list([row])
            raise DataError(
                f'{path}: no separator follows a closing quotation mark (") in {where}; '
                'a mark inside a quoted field must be doubled (""), not escaped (\\").'
            )
        if len(buffer) > ROOM:
            return


def single(head: bytes, delimiter: str) -> bool:
    """Return whether a whole value is in single quotes, in the first lines of a file.

    One such value is enough, in any column, so that new rows are read as the training rows were.

    Examples
    --------
    >>> single(b"a,b\\n1,'x, y'\\n2,z\\n", ","), single(b"a,b\\n'tis,5\\n", ",")
    (True, False)
    """
    if b"'" not in head:
        return False
    end = _set(delimiter)
    many = b"+" if delimiter == " " else b""
    field = re.compile(rb"""(?:[ \t]*('[^']*')[ \t]*(?=%b|\Z)|"[^"]*"|[^%b]*)(?:%b%b|\Z)""" % (end, end, end, many))
    return any(any(field.findall(line.strip())) for line in head.splitlines() if b"'" in line)


def doubled(pieces: Iterator[bytes], delimiter: str) -> Iterator[bytes]:
    """Yield whole lines with double quotes around the fields that are in single ones."""
    end = _set(delimiter)
    field = re.compile(
        rb"""(?m)(?:^|(?<=%b))[ \t]*(?:("[^"]*+(?:""[^"]*+)*+")|'([^'\r\n]*)'[ \t]*(?=%b|\r?$))""" % (end, end)
    )

    def plain(found: re.Match[bytes]) -> bytes:
        return found[1] or b'"%b"' % found[2].replace(b'"', b'""')

    rest = b""
    for piece in pieces:
        lines, mark, rest = (rest + piece).rpartition(b"\n")
        yield field.sub(plain, lines + mark)
    yield field.sub(plain, rest)


def _set(delimiter: str) -> bytes:
    return b"[ \t]" if delimiter == " " else b"[%b]" % re.escape(delimiter.encode())
