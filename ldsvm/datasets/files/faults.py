"""The parts that the messages of all readers share: nearest names, row numbers, and what a library complains of."""

from __future__ import annotations

import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from zipfile import BadZipFile

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.words import shown

# Cut archives are an EOFError, a zlib.error, an LZMAError or a BadZipFile; pyarrow raises subclasses of Python's own
# errors, among them RuntimeErrors for what it was built without; an index beyond any integer is an ArithmeticError, and
# a header that promises more than there is memory a MemoryError.
FAULTS = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    BadZipFile,
)
SHOWN_NAMES = 10


def names(known: Sequence[str]) -> str:
    """Return at most ten names, quoted and cut, and how many more there are.

    Examples
    --------
    >>> names(["a", "b"])
    "'a', 'b'"
    """
    more = len(known) - SHOWN_NAMES
    return ", ".join(map(shown, known[:SHOWN_NAMES])) + (f" and {more} more" if more > 0 else "")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``, nearest 'age'`` for the known name that is most like ``name``, or nothing.

    Examples
    --------
    >>> nearest("agee", ["sex", "age"])
    ", nearest 'age'"
    """
    found = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f", nearest {shown(found[0])}" if found else ""


@contextmanager
def reading(path: Path, format: str) -> Iterator[None]:
    """Turn what a library raises inside the block into a `DataError` that names the file and the format."""
    try:
        yield
    except DataError:
        raise
    except FAULTS as error:
        if "Empty CSV file" in str(error) or not path.stat().st_size:
            raise DataError(f"{path} is empty; a table needs column names and at least one row.") from None
        raise DataError(
            f"{path}: is damaged, truncated, unreadable, or not of format {format} ({_short(error)})."
        ) from error


def _short(error: Exception) -> str:
    """Return the first line of a library's message, of a length that fits into a sentence, without long quotations."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(". ")
    line = re.sub(r"b?(['\"]).{21,}\1", "…", line)  # it may be anybody's text
    return line if len(line) <= 90 else line[:87] + "..."
