"""The arrays of a model in one NumPy file, written completely or not at all, and read without trusting it."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ldsvm.atomic import replacing
from ldsvm.maps.rbf import RBF
from ldsvm.typing import Array

FLOATS = ("coef_", "intercept_", "map.W", "map.centers", "map.gamma")
FAR = 10 * RBF.largest  # of a centre: learned ones move
LARGEST, LARGEST_LINEAR = 1e38, 1e150  # of a decision, where no input is above 1: the first is float32's

Header = tuple[tuple[int, ...], np.dtype[Any]]  # shape and type of an array


def headers_of(stream: BinaryIO, names: Collection[str]) -> dict[str, Header]:
    """Return shape and type of the arrays of a file by name, after checking them against the size of the file.

    Raises ValueError for arrays with other names, and for arrays that would take more memory than the file is large.
    """
    found: dict[str, Header] = {}
    size = os.fstat(stream.fileno()).st_size
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            expect(name in names, f"unknown part {member.filename!r}")
            expect(name not in found, f"{name} is there twice")
            expect(member.compress_type == zipfile.ZIP_STORED, "a part is compressed")  # which could be of any size
            size -= member.file_size
            expect(size >= 0, "its parts are larger than the file")
            with archive.open(member) as part:
                expect(np.lib.format.read_magic(part) == (1, 0), f"{name} is not an array")
                shape, _, dtype = np.lib.format.read_array_header_1_0(part)
                holds = member.file_size - part.tell()
            expect(math.prod(shape) * dtype.itemsize == holds, f"{name} of shape {shape} is not of its size")
            found[name] = shape, dtype
    return found


def check_numbers(arrays: dict[str, Array]) -> None:
    """Raise ValueError for weights, SVMs, centres or widths that are not finite or would make decisions infinite.

    With basis functions at most 1, a decision is at most sum_ml |V_kl| |W_ml| + |b_k|.
    """
    for name in (name for name in FLOATS if name in arrays):
        expect(bool(np.isfinite(arrays[name]).all()), f"{name} is not finite")
    largest = LARGEST_LINEAR
    if "map.centers" in arrays:
        largest = LARGEST
        expect(bool((np.abs(arrays["map.centers"]) <= FAR).all()), f"map.centers has values beyond {FAR:g}")
        expect(bool((arrays["map.gamma"] > 0).all()), "map.gamma is not positive")
    W, V, b = (np.abs(arrays[name], dtype=np.float64) for name in ("map.W", "coef_", "intercept_"))
    with np.errstate(over="ignore", invalid="ignore"):
        reach = V @ W.sum(axis=0) + b
    expect(bool((reach <= largest).all()), f"weights and SVMs give decisions beyond {largest:g}")


def expect(holds: bool, otherwise: str) -> None:
    """Raise ValueError with the message `otherwise` unless the condition holds."""
    if not holds:
        raise ValueError(otherwise)


def replaced(path: str | os.PathLike[str], write: Callable[[BinaryIO], object], failure: type[ValueError]) -> Path:
    """Let `write` fill a new file, then move it to its path; raise `failure`, with one sentence, if that fails."""
    try:
        with replacing(Path(path).resolve()) as temporary, temporary.open("wb") as file:  # of a link what it means
            write(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise failure(f"{path!s} cannot be written ({reason}).") from None
    return Path(path)
