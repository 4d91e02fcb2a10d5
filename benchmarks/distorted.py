"""MNIST's training images, shifted, turned, stretched and bent a little, as a folder of Parquet files."""

from __future__ import annotations

import shutil
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import gaussian_filter

from benchmarks.harness import ROOT, everything, progress

BLOCK, GROUP = 50_000, 2_500  # rows of a file, and of a row group
SIDE = 28
MAPS = 1_000  # different distortions; each image gets one of them
SMOOTH = 4.0  # pixels over which a bend is smoothed (Simard, Steinkraus & Platt, 2003)


@dataclass(frozen=True)
class Distortion:
    """Most pixels of a shift down and right, most degrees of a turn, largest logarithm of a stretch in both directions,
    and the root of the mean square of a smooth random displacement, in pixels.
    """

    shift: float
    angle: float = 0.0
    stretch: float = 0.0
    bend: float = 0.0


def folder(rows: int, distortion: Distortion, of: int = 60_000, seed: int = 0, quick: bool = False) -> Path:
    """Write the images once, and return where: column "pixels", 784 bytes, and "digit".

    Image i is training image i modulo `of`, the first of them as they are, then distorted by maps drawn by seed. With
    `quick` these are scikit-learn's digits, and fewer maps.
    """
    import pyarrow as pa
    from pyarrow import parquet

    words = "-".join(f"{value:g}" for value in (rows, of, *astuple(distortion), seed))
    place = ROOT / "data" / "prepared" / f"distorted-{'digits' if quick else 'mnist'}-{words}"
    if place.exists():
        return place
    X, y, _, _ = everything(quick)
    y, rng = y[:of], np.random.default_rng(seed)
    pixels = np.round(X[:of] * 255).astype(np.float32)
    maps = [_map(distortion, rng) for _ in range(20 if quick else MAPS)]
    temporary = place.with_name(f".{place.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for start in range(0, rows, BLOCK):
        progress(f"distorted images: {start:,} of {rows:,}")
        numbers = np.arange(start, min(start + BLOCK, rows))
        which, out = rng.integers(len(maps), size=len(numbers)), np.empty((len(numbers), SIDE**2), np.uint8)
        which[numbers < len(y)] = len(maps)  # as they are
        order = np.argsort(which, kind="stable")
        for at in np.split(order, np.flatnonzero(np.diff(which[order])) + 1):
            images = pixels[numbers[at] % len(y)]
            k = which[at[0]]
            out[at] = np.round(images if k == len(maps) else images @ maps[k])
        values = pa.Array.from_buffers(pa.binary(SIDE**2), len(out), [None, pa.py_buffer(out)])
        table = pa.table({"pixels": values, "digit": y[numbers % len(y)]})
        parquet.write_table(table, temporary / f"{start:09d}.parquet", row_group_size=GROUP)
    temporary.rename(place)
    return place


def _map(distortion: Distortion, rng: np.random.Generator) -> Any:
    """A linear map (784, 784) of row vectors of pixels: bilinear, black outside."""
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    middle, angle = (SIDE - 1) / 2, np.deg2rad(rng.uniform(-distortion.angle, distortion.angle))
    (down, right), (tall, wide) = rng.uniform(-1, 1, 2) * distortion.shift, rng.uniform(-1, 1, 2) * distortion.stretch
    r, c = (row - down - middle) * np.exp(tall), (column - right - middle) * np.exp(wide)
    source = np.cos(angle) * r - np.sin(angle) * c + middle, np.sin(angle) * r + np.cos(angle) * c + middle
    return _bilinear(*(x + distortion.bend * _smooth(rng) for x in source))


def _smooth(rng: np.random.Generator) -> Any:
    """Smooth random numbers (784,) of about unit size: noise under a Gaussian, cut out of a larger square."""
    margin = round(3 * SMOOTH)
    noise = gaussian_filter(rng.standard_normal((SIDE + 2 * margin,) * 2), SMOOTH, mode="wrap")
    return 2 * np.sqrt(np.pi) * SMOOTH * noise[margin:-margin, margin:-margin].ravel()


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
