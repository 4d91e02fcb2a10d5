"""Digits that float32 loses: what a column still tells apart is known from the step between two of its numbers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import FileSpec, read
from ldsvm.datasets.files.numbers import matrix

LABELS = np.arange(600) % 2
DRAWN = np.random.default_rng(0).integers(0, 1000, 600)
LOST = {  # near 1e8 float32 goes in steps of 8, near 1.7e9 of 128
    "counter": 100_000_000 + DRAWN % 12,
    "seconds": 1_700_000_000 + 86 * DRAWN,
    "numbers of accounts": 4_000_000_000_000_000 + DRAWN % 300,
    "one value": 1_700_000_000.0 + DRAWN % 60,
    "with gaps": np.where(DRAWN % 5, 1e8 + DRAWN % 12, np.nan),
}
KEPT = {
    "whole numbers": 16_000_000 + DRAWN % 12,
    "multiples of 8": 100_000_000 + 8 * (DRAWN % 12),
    "years": 1990.0 + DRAWN % 30,
    "kelvin": 300 + DRAWN / 300,
    "large": 1_000_000_007 * DRAWN,
    "constant": np.full(600, 0.1),
    "one whole number": np.full(600, 4_000_000_000_000_001),
    "rounding of float64": np.where(LABELS, 0.1 + 0.2, 0.3),
    "gaps alone": np.full(600, np.nan),
}


def save(path: Path, values: np.ndarray) -> FileSpec:
    if path.suffix == ".npz":
        np.savez(path, X=np.stack([DRAWN, values], axis=1), y=LABELS)
    else:
        pq.write_table(pa.table({"size": DRAWN, "t": values, "label": LABELS}), path)
    return FileSpec(str(path))


@pytest.mark.parametrize("name", ["a.parquet", "a.npz"])
def test_columns_that_float32_makes_one_are_refused(tmp_path: Path, name: str) -> None:
    what = "column 't'" if name == "a.parquet" else "column 1 of X"
    for values in LOST.values():
        with pytest.raises(DataError, match=f"{name}: {what} has values that are too close together for float32"):
            read(save(tmp_path / name, values))
    for values in KEPT.values():
        read(save(tmp_path / name, values))


def test_digits_that_hardly_count_are_a_remark(tmp_path: Path) -> None:
    month = save(tmp_path / "a.parquet", 1_700_000_000 + 2592 * DRAWN)
    with pytest.warns(
        UserWarning, match=r"column 't' has values that float32 rounds to steps of 128 in a range of 2\.5"
    ):
        read(month)


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_what_a_model_is_given_is_not_refused(tmp_path: Path, ending: str) -> None:
    # Two rows of a column that was good in training may be near one another.
    near = save(tmp_path / f"near.{ending}", LOST["counter"])
    wide = save(tmp_path / f"wide.{ending}", np.where(LABELS, 1, 1e8 + DRAWN / 10))
    raw = read(FileSpec(wide.path, near.path))
    assert raw.test is not None and len(raw.test) == 600
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix({"t": [pa.array([1.7e9, 1.7e9 + 1])]}, "input")
