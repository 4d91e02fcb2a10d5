"""The IDX reader against an independent writer, and one clear sentence for every way a file can be wrong."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ldsvm.datasets import DataError, idx, room

if TYPE_CHECKING:
    from conftest import Mini

IMAGES = 0


@pytest.mark.parametrize("compressed", [False, True])
def test_reads_what_another_writer_wrote(mini: Mini, tmp_path: Path, compressed: bool) -> None:
    folder = mini.write(tmp_path, lambda name: compressed)
    for file, array in zip(mini.entry.files, mini.arrays.values(), strict=True):
        read = idx.read(folder / (file.name + ".gz" * compressed), file)
        np.testing.assert_array_equal(read, array)
        assert read.dtype == np.uint8


def test_to_bytes_equals_the_other_writer(mini: Mini) -> None:
    for array in mini.arrays.values():
        assert idx.to_bytes(array) == mini.idx_bytes(array)


def faulty(data: bytes) -> dict[str, tuple[bytes, str]]:
    return {
        "empty": (b"", "starts with bytes"),
        "labels magic": (data[:3] + b"\x01" + data[4:], "starts with bytes 00 00 08 01.* starts with 00 00 08 03"),
        "float magic": (data[:2] + b"\x0d" + data[3:], "starts with bytes 00 00 0d 03"),
        "header cut": (data[:11], "truncated inside its header, 11 of 16 bytes"),
        "other sizes": (data[:7] + b"\x06" + data[8:], r"sizes \(6, 2, 5\), but this file must have \(7, 2, 5\)"),
        "pixels cut": (data[:-1], "is truncated: it has 85 bytes, but its header says 86"),
        "too long": (data + b"\x00", "is too long: its header says 86 bytes"),
        "one bit": (
            data[:-1] + bytes([data[-1] ^ 1]),
            "sha256 of the uncompressed 86 bytes is .* must have .* 86 bytes",
        ),
    }


@pytest.mark.parametrize("fault", list(faulty(b"\x00" * 86)))
def test_damage_is_named(mini: Mini, tmp_path: Path, fault: str) -> None:
    file = mini.entry.files[IMAGES]
    data, message = faulty(mini.idx_bytes(mini.arrays[file.name]))[fault]
    path = tmp_path / file.name
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"{file.name}.*{message}") as caught:
        idx.read(path, file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", [0, 5, 25, -9, -1])
def test_truncated_gzip_is_named(mini: Mini, tmp_path: Path, cut: int) -> None:
    file = mini.entry.files[IMAGES]
    path = tmp_path / f"{file.name}.gz"
    path.write_bytes(gzip.compress(mini.idx_bytes(mini.arrays[file.name]))[:cut])
    with pytest.raises(DataError, match=f"{file.name}.gz: "):
        idx.read(path, file)


def test_no_gzip_and_damaged_gzip_are_named(mini: Mini, tmp_path: Path) -> None:
    file = mini.entry.files[IMAGES]
    packed = bytearray(gzip.compress(mini.idx_bytes(mini.arrays[file.name])))
    packed[12] ^= 0xFF
    for data in (b"not gzip at all", bytes(packed)):
        path = tmp_path / f"{file.name}.gz"
        path.write_bytes(data)
        with pytest.raises(DataError, match="cannot be read, is truncated, or is not a gzip file"):
            idx.read(path, file)


def test_no_more_is_read_than_the_header_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available", lambda: 2**40)  # whatever else runs on this machine
    path = tmp_path / "three.gz"
    header = struct.pack(">HBBI", 0, idx.UINT8, 1, 3)
    path.write_bytes(gzip.compress(header) + gzip.compress(bytes(1 << 20)) * 256)  # 256 KB that hold 256 MB
    tracemalloc.start()
    with pytest.raises(DataError, match=r"three\.gz is too long: its header says 11 bytes"):
        idx.read_any(path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    path.write_bytes(gzip.compress(header[:4] + b"\xff" * 4 + bytes(3)))  # it promises 4 GB, and memory for them
    with pytest.raises(DataError, match="is truncated: it has 11 bytes, but its header says 4,294,967,303"):
        idx.read_any(path)
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_wrong_checksum_names_found_and_expected(mini: Mini, tmp_path: Path) -> None:
    file = mini.entry.files[IMAGES]
    mini.write(tmp_path)
    with pytest.raises(DataError, match=f"is {file.sha256}, but {file.name} must have {'0' * 64}"):
        idx.read(tmp_path / file.name, replace(file, sha256="0" * 64))
