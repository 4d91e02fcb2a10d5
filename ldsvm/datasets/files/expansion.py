"""How far a compressed file may expand: a few megabytes of gzip, or of Parquet, can be gigabytes of nothing."""

from __future__ import annotations

from pathlib import Path

from ldsvm.datasets.dataset import DataError
from ldsvm.memory import GIB, available

FREE = 1 << 29  # bytes that any file may expand to
FACTOR = 200  # how often its own size more than that: tables of numbers rarely reach 20, a crafted file 1,000


def check(path: Path, packed: int, size: int) -> None:
    """Raise `DataError` where ``packed`` bytes of a file have become ``size`` bytes that nobody can mean.

    Examples
    --------
    >>> check(Path("a.csv.gz"), packed=3 << 20, size=500 << 20)
    >>> check(Path("a.csv.gz"), packed=3 << 20, size=2000 << 20)
    Traceback (most recent call last):
    ldsvm.datasets.dataset.DataError: a.csv.gz: expands to more than 629,145,600 bytes, 200 times its compressed \
size; if it is right, store it uncompressed.
    """
    allowed = max(FREE, FACTOR * packed)
    if size > allowed:
        times = allowed // max(packed, 1)
        raise DataError(
            f"{path}: expands to more than {allowed:,} bytes, {times:,} times its compressed size; if it is right, "
            "store it uncompressed."
        )


def check_room(path: Path, rows: int, columns: int, stored: int = 0) -> None:
    """Raise `DataError` where a table has no room in memory: at 4 bytes a cell, or `stored` bytes if that is more.

    Examples
    --------
    >>> check_room(Path("a.parquet"), rows=1_000_000, columns=10)
    >>> check_room(Path("a.parquet"), rows=10**15, columns=10)
    Traceback (most recent call last):
    ldsvm.datasets.dataset.DataError: a.parquet: its 1,000,000,000,000,000 rows of 10 columns need 37,252,903 GiB; \
free are ...
    """
    needed, free = max(stored, 4 * rows * columns), available()
    if free is not None and needed > free:
        raise DataError(
            f"{path}: its {rows:,} rows of {columns:,} columns need {needed / GIB:,.0f} GiB; free are "
            f"{free / GIB:,.1f} GiB of memory."
        )
