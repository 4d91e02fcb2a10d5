"""The IDX format of the original MNIST files: two zero bytes, a type, a rank, the sizes, then the bytes."""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.entry import File
from ldsvm.datasets.room import check_room

UINT8 = 0x08
LONGEST_HEADER = 4 + 4 * 255
BLOCK = 1 << 24  # what is read at once: a header may promise more than there is memory


def read(path: Path, expected: File) -> NDArray[np.uint8]:
    """Read one IDX file, plain or (by its name) gzipped, and check that it is the one the catalogue describes.

    Returns an array of ``expected.shape``. The header is read first, and then no more than it promises and one byte.
    Raises `DataError` for an unreadable or truncated file, a header that is not IDX or has other sizes, bytes after
    the last one, and content with another checksum.
    """
    data = _read(path, expected.shape)
    check(str(path), data, expected)
    return np.frombuffer(data, np.uint8, offset=_header_size(expected.shape)).reshape(expected.shape)


def read_any(path: Path) -> NDArray[np.uint8]:
    """Read one IDX file of unsigned bytes, plain or (by its name) gzipped, into an array of the shape it promises.

    Raises `DataError` for an unreadable file, another header, and a length that is not the promised one; as in `read`,
    no more is read than the header promises and one byte.
    """
    data = _read(path, None)
    sizes = _sizes(path, data)
    return np.frombuffer(data, np.uint8, offset=_header_size(sizes)).reshape(sizes)


def shape(path: Path) -> tuple[int, ...]:
    """Return the shape that the header of an IDX file promises, without reading the rest; raise as `read_any`."""
    with _opened(path) as stream:
        return _sizes(path, stream.read(LONGEST_HEADER))


def to_bytes(array: NDArray[np.uint8]) -> bytes:
    """Return the IDX file that stores ``array``: what `read` reads, and what the catalogue's checksums are of."""
    return _header(array.shape) + array.tobytes()


def check(what: str, data: bytes | bytearray, expected: File) -> None:
    """Raise `DataError` unless ``data`` has the catalogue's checksum; ``what`` names it in the message."""
    found = hashlib.sha256(data).hexdigest()
    if found != expected.sha256:
        raise DataError(
            f"{what}: sha256 of the uncompressed {len(data):,} bytes is {found}, but {expected.name} must have "
            f"{expected.sha256} and {expected.size:,} bytes."
        )


def _read(path: Path, expected: tuple[int, ...] | None) -> bytearray:
    """Return the uncompressed bytes of a file whose header promises the sizes ``expected``, any where that is None."""
    with _opened(path) as stream:
        data = bytearray(stream.read(LONGEST_HEADER))
        sizes = _sizes(path, data) if expected is None else expected
        _check_header(path, data, sizes)
        promised = _header_size(sizes) + math.prod(sizes)
        check_room(path, 5 * promised, f"its {promised:,} bytes")  # once more as float32
        # One byte more shows what follows, and at the end the checksum of a gzip file is looked at.
        while len(data) <= promised and (block := stream.read(min(BLOCK, promised + 1 - len(data)))):
            data += block
    if len(data) < promised:
        raise DataError(f"{path} is truncated: it has {len(data):,} bytes, but its header says {promised:,}.")
    if len(data) > promised:
        raise DataError(f"{path} is too long: its header says {promised:,} bytes.")
    return data


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Yield a stream of the uncompressed bytes; its errors become `DataError`."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield stream
    except (OSError, EOFError, zlib.error) as error:  # a cut gzip file is an EOFError, a damaged one the others
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: cannot be read, is truncated, or is not a gzip file ({error}).")


def _sizes(path: Path, data: bytes | bytearray) -> tuple[int, ...]:
    """Return the sizes that a header promises."""
    if len(data) < 4 or data[:3] != _header(())[:3] or not data[3]:
        raise DataError(
            f"{path}: starts with bytes {data[:4].hex(' ')}, but an IDX file of bytes with 00 00 08, its rank."
        )
    start = _header_size((0,) * data[3])
    if len(data) < start:
        raise DataError(f"{path}: is truncated inside its header, {len(data)} of {start} bytes.")
    return struct.unpack(f">{data[3]}I", data[4:start])


def _header(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f">HBB{len(shape)}I", 0, UINT8, len(shape), *shape)


def _header_size(shape: tuple[int, ...]) -> int:
    return 4 + 4 * len(shape)


def _check_header(path: Path, data: bytearray, shape: tuple[int, ...]) -> None:
    magic = _header(shape)[:4]
    if data[:4] != magic:
        raise DataError(
            f"{path}: starts with bytes {data[:4].hex(' ')}, but this IDX file starts with {magic.hex(' ')}."
        )
    start = _header_size(shape)
    if len(data) < start:
        raise DataError(f"{path}: is truncated inside its header, {len(data)} of {start} bytes.")
    sizes = struct.unpack(f">{len(shape)}I", data[4:start])
    if sizes != shape:
        raise DataError(f"{path}: the header says sizes {sizes}, but this file must have {shape}.")
