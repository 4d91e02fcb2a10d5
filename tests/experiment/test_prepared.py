"""Prepared arrays: complete or absent, rebuilt when damaged, no leak from validation or test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldsvm.datasets import DataError, load
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config import Config
from ldsvm.experiment.load import load_config

ROOT = Path(__file__).resolve().parents[2]


def config(tmp_path: Path, *overrides: str) -> Config:
    return load_config("conf/digits.yaml", [f"paths.cache={tmp_path / 'cache'}", *overrides], root=ROOT)


def test_parts_hold_every_sample_once_and_labels_fit(tmp_path: Path) -> None:
    found = preparation.prepare(config(tmp_path))
    data = load("digits", cache_dir=tmp_path / "raw")
    X = np.concatenate([found.arrays(part, "original")[0] for part in preparation.PARTS])
    assert found.sizes == {"train": 899, "validation": 449, "test": 449}
    assert sorted(map(bytes, X)) == sorted(map(bytes, data.X))
    assert np.array_equal(found.arrays("test", "parity")[1], found.arrays("test", "original")[1] % 2)


def test_the_second_time_nothing_is_written(tmp_path: Path) -> None:
    first = preparation.prepare(config(tmp_path))
    times = {p: p.stat().st_mtime_ns for p in first.folder.iterdir()}
    assert preparation.prepare(config(tmp_path)) == first
    assert {p: p.stat().st_mtime_ns for p in first.folder.iterdir()} == times


def test_facts_survive_the_way_through_a_file(tmp_path: Path) -> None:
    found = preparation.prepare(config(tmp_path))
    preparation.save(found, tmp_path / "facts.json")
    assert preparation.read(tmp_path / "facts.json") == found


@pytest.mark.parametrize("harm", ["cut", "gone", "list"])
def test_a_damaged_folder_is_rebuilt_with_a_warning(tmp_path: Path, harm: str) -> None:
    found = preparation.prepare(config(tmp_path))
    file = found.folder / ("sha256.json" if harm == "list" else "X_train.npy")
    file.unlink() if harm == "gone" else file.write_bytes(file.read_bytes()[:100])
    with pytest.warns(UserWarning, match="is rebuilt"):
        preparation.prepare(config(tmp_path))
    assert found.arrays("train", "original")[0].shape == (899, 64)


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(DataError, match="cannot be written"):
        preparation.prepare(config(tmp_path))
    assert list((tmp_path / "cache").iterdir()) == []


def test_principal_axes_come_from_the_training_part_only(tmp_path: Path) -> None:
    plain = preparation.prepare(config(tmp_path))
    found = preparation.prepare(config(tmp_path, "dataset.preprocess=pca 5"))
    X = np.asarray(plain.arrays("train", "original")[0], dtype=float)
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5]
    expected = (plain.arrays("test", "original")[0] - X.mean(axis=0)) @ axes.T
    assert np.allclose(np.abs(found.arrays("test", "original")[0]), np.abs(expected), atol=1e-4)
    assert (found.n_features, found.folder) != (plain.n_features, plain.folder)


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        (["dataset.preprocess=pca 65"], "at most pca 64"),
        (["split.kind=mnist10", "split.test=null"], "official test set"),
        (["split.train=5000", "split.validation=10", "split.test=10"], "5000"),
    ],
)
def test_impossible_wishes_are_one_sentence(tmp_path: Path, overrides: list[str], part: str) -> None:
    with pytest.raises(DataError) as caught:
        preparation.prepare(config(tmp_path, *overrides))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
