"""Preparing tables that are too large for memory: the arrays of memory, without a copy of all rows."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from ldsvm.datasets import DataError, dataset, features, flaws, large
from ldsvm.datasets.split_checks import check_parts
from ldsvm.datasets.steps import parse
from ldsvm.datasets.summary import summarise
from ldsvm.experiment import feature_arrays
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config.executors import ExecutorConfig
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.trial import Job, fit_point, training_data

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
name: mine
title: mine
dataset: {name: mine, path: FOLDER, label: left}
split: {kind: stratified, train: 0.6, validation: 0.2, test: 0.2}
features: [table]
methods:
  ours: {estimator: ldsvm, params: {n_basis: 20, gamma: 0.1, C: 1, max_iter: 3}, executor: {kind: serial, rows: 50}}
"""


def config(tmp_path: Path, table: pd.DataFrame, cache: str) -> Config:
    if not (tmp_path / "rows").exists():
        (tmp_path / "rows").mkdir(parents=True)
        for i, some in enumerate(np.array_split(np.arange(len(table)), 3)):
            table.iloc[some].to_parquet(tmp_path / "rows" / f"{i}.parquet", row_group_size=5_000)
        (tmp_path / "mine.yaml").write_text(CONFIG.replace("FOLDER", str(tmp_path / "rows")))
    return load_config(tmp_path / "mine.yaml", [f"paths.cache={tmp_path / cache}"], root=ROOT)


def customers(n: int, numbers: int = 3) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    table = pd.DataFrame({f"x{i}": draw.normal(i, 1 + i, n) for i in range(numbers)})
    table["town"] = draw.choice([f"town {i}" for i in range(60)], n)  # target-encoded
    table["plan"] = draw.choice(["basic", "plus", None], n)
    table["note"] = [f"{i} {' '.join(draw.choice(['late', 'slow', 'fine', 'new', 'old'], 4))}" for i in range(n)]
    table["left"] = np.where(np.sin(table["x0"]) + draw.normal(0, 0.5, n) > 0, "left", "stayed")
    table.loc[draw.random(n) < 0.2, "x1"] = np.nan
    return table


def content(found: Prepared) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in found.folder.glob("[Xy]_*.npy")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:MAC stopped at max_iter")
@pytest.mark.parametrize("fitted", [feature_arrays.FITTED, 200])
def test_arrays_digest_and_model_are_those_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fitted: int
) -> None:
    table = customers(600).drop(columns="note") if fitted == 200 else customers(600)  # digests name texts otherwise
    monkeypatch.setattr(feature_arrays, "FITTED", fitted)
    (small,) = preparation.prepare(config(tmp_path, table, "small"))
    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(feature_arrays, "BLOCK", 70)
    wanted = config(tmp_path, table, "large")
    (found,) = preparation.prepare(wanted)
    assert content(found) == content(small)
    assert (found.features, found.schema, found.summary) == (small.features, small.schema, small.summary)
    assert ("fitted to 200 of 360 training rows, drawn in proportion to the classes" in found.features) == (
        fitted == 200
    )
    assert (found.digest == small.digest) == (fitted == 200)
    job = Job(wanted.methods["ours"], ({},), (0,), 0, 1)
    models = [fit_point(job, {}, training_data(one, "original")).model for one in (small, found)]
    np.testing.assert_array_equal(models[0].map_.W, models[1].map_.W)
    np.testing.assert_array_equal(models[0].latent_coef_, models[1].latent_coef_)


@pytest.mark.parametrize("steps", ["[]", "[scale, {pca: {n_components: 2}}]"])
def test_numbers_alone_are_those_of_memory_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: str) -> None:
    table = customers(600)[["x0", "x2", "left"]]
    given = config(tmp_path, table, "small").model_copy(update={"features": parse(yaml.safe_load(steps))})
    (small,) = preparation.prepare(given)
    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(feature_arrays, "BLOCK", 70)
    paths = given.paths.model_copy(update={"cache": tmp_path / "large"})
    (found,) = preparation.prepare(given.model_copy(update={"paths": paths}))
    assert (found.digest, found.features, found.summary) == (small.digest, small.features, small.summary)
    if steps == "[]":
        assert content(found) == content(small)
    for part in feature_arrays.PARTS:  # matrix products of other sizes round in other ways
        ours, theirs = (one.arrays(part, "original")[0] for one in (found, small))
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.server
def test_blocks_that_ray_converts_are_those_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(feature_arrays, "FITTED", 200)
    monkeypatch.setattr(feature_arrays, "BLOCK", 70)  # six blocks, two at a time
    monkeypatch.setattr(large, "LARGE", 0)
    wanted, calls = config(tmp_path, customers(600), "here"), []
    (here,) = preparation.prepare(wanted)
    method = wanted.methods["ours"]
    fitted_on_ray = method.model_copy(update={"executor": ExecutorConfig(kind="ray", workers=2)})
    paths = wanted.paths.model_copy(update={"cache": tmp_path / "there"})
    elsewhere = wanted.model_copy(update={"methods": {"ours": fitted_on_ray}, "paths": paths})
    plain = features.transform
    monkeypatch.setattr(features, "transform", lambda *given, **named: calls.append(1) or plain(*given, **named))
    (there,) = preparation.prepare(elsewhere)
    assert content(there) == content(here) and there.features == here.features
    assert not calls and not ray.is_initialized()  # nothing was converted here, and Ray has ended


@pytest.mark.slow
def test_ray_that_cannot_be_joined_is_one_sentence_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_arrays, "BLOCK", 70)
    wanted = config(tmp_path, customers(600), "cache")
    executor = ExecutorConfig(kind="ray", address="127.0.0.1:1")
    wanted = wanted.model_copy(
        update={"methods": {"ours": wanted.methods["ours"].model_copy(update={"executor": executor})}}
    )
    with pytest.raises(DataError, match=r"127\.0\.0\.1:1"):
        preparation.prepare(wanted)
    assert not [*(tmp_path / "cache").glob("mine-*/")]


@pytest.mark.slow
def test_reading_and_checking_copy_no_more_than_some_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = 10_000, 80
    for module, name, value in ((large, "LARGE", 0), (dataset, "ROWS", 500), (flaws, "BLOCK", 30_000)):
        monkeypatch.setattr(module, name, value)

    def prepare(wanted: Config) -> None:
        source = preparation.load_source(wanted)
        split = preparation.draw_split(wanted, source, 0)
        parts = [source.data.train.take(getattr(split, part)) for part in feature_arrays.PARTS]
        check_parts(parts[0], parts[1], parts[2], split=split)
        summarise(source.data.train, None)

    prepare(config(tmp_path / "few", customers(300), "cache"))  # imports are not counted
    wanted = config(tmp_path / "many", customers(rows, columns), "cache")
    tracemalloc.start()
    try:
        prepare(wanted)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * rows * columns / 2  # codes of float64
