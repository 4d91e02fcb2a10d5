"""MNIST's training images shifted and rotated a little, as many as wanted, as a folder of Parquet files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import ROOT, everything, progress

BLOCK, GROUP = 50_000, 2_500  # rows of a file, and of a row group
SIDE = 28


def folder(rows: int, reach: int = 2, angle: int = 12, seed: int = 0) -> Path:
    """Write the images once, and return where: column "pixels", 784 bytes, and "digit".

    Image i is training image i mod 60,000, the first 60,000 as they are, then shifted by up to `reach` pixels down and
    right and turned by up to `angle` degrees, in steps of a pixel and of a quarter of the angle, drawn by seed.
    """
    import pyarrow as pa
    from pyarrow import parquet

    place = ROOT / "data" / "prepared" / f"distorted-mnist-{rows}-{reach}-{angle}-{seed}"
    if place.exists():
        return place
    X, y, _, _ = everything()
    pixels, operators = np.round(X * 255).astype(np.float32), _operators(reach, angle)
    rng, temporary = np.random.default_rng(seed), place.with_name(f".{place.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for start in range(0, rows, BLOCK):
        progress(f"distorted images: {start:,} of {rows:,}")
        numbers = np.arange(start, min(start + BLOCK, rows))
        which = np.where(numbers < len(y), len(operators) // 2, rng.integers(len(operators), size=len(numbers)))
        out = np.empty((len(numbers), SIDE**2), np.uint8)
        for k in np.unique(which):
            at = np.flatnonzero(which == k)
            out[at] = np.round(pixels[numbers[at] % len(y)] @ operators[k])
        values = pa.Array.from_buffers(pa.binary(SIDE**2), len(out), [None, pa.py_buffer(out)])
        table = pa.table({"pixels": values, "digit": y[numbers % len(y)]})
        parquet.write_table(table, temporary / f"{start:09d}.parquet", row_group_size=GROUP)
    temporary.rename(place)
    return place


def _operators(reach: int, most: int) -> list[Any]:
    """Linear maps (784, 784) of row vectors of pixels, one for each angle and shift: bilinear, black outside.

    The one in the middle of the list changes nothing.
    """
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    middle = (SIDE - 1) / 2
    found = []
    for angle in np.deg2rad(np.linspace(-most, most, 9 if most else 1)):
        for down in range(-reach, reach + 1):
            for right in range(-reach, reach + 1):
                r, c = row - down - middle, column - right - middle
                source = np.cos(angle) * r - np.sin(angle) * c + middle, np.sin(angle) * r + np.cos(angle) * c + middle
                found.append(_bilinear(*source))
    return found


def _bilinear(r: Any, c: Any) -> Any:
    """Each pixel from the four around the point (r, c) that it comes from."""
    parts = []
    for dr in (0, 1):
        for dc in (0, 1):
            i, j = np.floor(r).astype(int) + dr, np.floor(c).astype(int) + dc
            weight = (1 - np.abs(r - i)) * (1 - np.abs(c - j))
            inside = (i >= 0) & (i < SIDE) & (j >= 0) & (j < SIDE) & (weight > 1e-12)
            pixel = np.flatnonzero(inside)
            parts.append((weight[pixel], i[pixel] * SIDE + j[pixel], pixel))
    weight, source, target = (np.concatenate(found) for found in zip(*parts, strict=True))
    return sp.csr_matrix((weight.astype(np.float32), (source, target)), shape=(SIDE**2, SIDE**2))
