"""A folder of arrays that is complete or absent, and is used only if its checksums are right."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ldsvm.datasets import DataError

SUMS, TEMPORARY = "sha256.json", ".part"
CSR = ("data", "indices", "indptr", "shape")


def save(folder: Path, name: str, array: Any) -> None:
    """Write an array, or the four parts of a CSR matrix, as .npy files that can be mapped."""
    if issparse(array):
        for part in CSR:
            np.save(folder / f"{name}.{part}.npy", np.asarray(getattr(array, part)))
    else:
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)


def create(folder: Path, name: str, rows: int, columns: int) -> Any:
    """Return an array (N, D) of float32 in the file that `save` would write, mapped, to be filled."""
    return np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, (rows, columns))


def load(folder: Path, name: str) -> Any:
    """Return what `save` wrote, mapped from disk and read-only."""
    if (folder / f"{name}.npy").exists():
        return np.load(folder / f"{name}.npy", mmap_mode="r")
    data, indices, indptr, shape = (np.load(folder / f"{name}.{part}.npy", mmap_mode="r") for part in CSR)
    return csr_matrix((data, indices, indptr), shape=tuple(shape))


def write(folder: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write files into a new folder, and put it in its place only when all are there.

    A folder that is there is replaced; processes that have mapped its files keep them. Call it in one process only.
    Raises DataError with one sentence when the disk refuses.
    """
    for left in folder.parent.glob(f".*{TEMPORARY}"):  # left by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    temporary = folder.with_name(f".{folder.name}{TEMPORARY}")
    try:
        temporary.mkdir(parents=True)
        fill(temporary)
        seal(temporary)
        _discard(folder)
        os.rename(temporary, folder)
    except OSError as error:
        raise DataError(f"{folder}: the prepared data cannot be written ({error}).") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def seal(folder: Path) -> None:
    """Write the checksums of all files of a folder, for `intact`."""
    (folder / SUMS).write_text(json.dumps(_sums(folder), indent=1), encoding="utf-8")


def intact(folder: Path) -> bool:
    """Tell whether the folder holds exactly the bytes that were written."""
    try:
        promised = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        return bool(promised == _sums(folder))
    except (OSError, ValueError, RecursionError):
        return False


def _discard(folder: Path) -> None:
    """Remove a prepared folder, or whatever lies in its place; raise DataError when the disk refuses."""
    if not os.path.lexists(folder):
        return
    try:
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    except OSError as error:
        raise DataError(f"{folder}: is damaged and cannot be removed ({error}).") from error


def _sums(folder: Path) -> dict[str, str]:
    return {file.name: _sum(file) for file in sorted(folder.iterdir()) if file.name != SUMS}


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def plain(value: Any) -> Any:
    """Turn numpy values into what JSON knows."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)
