"""How far a compressed file may expand: a few megabytes of gzip can be gigabytes of nothing."""

from __future__ import annotations

from pathlib import Path

from ldsvm.datasets.dataset import DataError

FREE = 1 << 29  # bytes that any file may expand to
FACTOR = 200  # how often its own size more than that: tables of numbers rarely reach 20, a crafted file 1,000


def check(path: Path, packed: int, size: int) -> None:
    """Raise `DataError` where ``packed`` bytes of a file expand to an implausible ``size``.

    Examples
    --------
    >>> check(Path("a.csv.gz"), packed=3 << 20, size=500 << 20)
    >>> check(Path("a.csv.gz"), packed=3 << 20, size=2000 << 20)
    Traceback (most recent call last):
    ldsvm.datasets.dataset.DataError: a.csv.gz: expands to more than 629,145,600 bytes, 200 times its compressed \
size; if that is intended, store it uncompressed.
    """
    allowed = max(FREE, FACTOR * packed)
    if size > allowed:
        times = allowed // max(packed, 1)
        raise DataError(
            f"{path}: expands to more than {allowed:,} bytes, {times:,} times its compressed size; if that is "
            "intended, store it uncompressed."
        )
