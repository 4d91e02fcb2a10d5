"""Check that there is enough memory before data are read: otherwise the process might be killed."""

from __future__ import annotations

from pathlib import Path

from ldsvm.datasets.dataset import DataError
from ldsvm.memory import GIB, available


def check_room(path: Path, needed: int, what: str = "its content") -> None:
    """Raise `DataError` where so many bytes are not free. what: of the file, for the message.

    Examples
    --------
    >>> check_room(Path("a.parquet"), 1_000_000)
    >>> check_room(Path("a.parquet"), 10**18, "its 10,000,000 rows")
    Traceback (most recent call last):
    ldsvm.datasets.dataset.DataError: a.parquet: its 10,000,000 rows need 931,322,574.6 GiB of memory, but ...
    """
    free = available()
    if free is not None and needed > free:
        raise DataError(
            f"{path}: {what} need {needed / GIB:,.1f} GiB of memory, but only {free / GIB:,.1f} GiB are free."
        )
