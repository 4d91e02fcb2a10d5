"""Retraining on tables that are too large for memory: rows are counted, checked and judged block by block."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldsvm.datasets import large
from ldsvm.experiment.compare import record
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.search.worker import Here
from ldsvm.production import promotion
from ldsvm.production.promotion import Champion

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
name: mine
title: mine
dataset: {name: mine, path: FOLDER, label: left}
split: {kind: stratified, train: 0.6, validation: 0.2, test: 0.2}
features: [table]
judge: {repeats: 1}
methods:
  ours: {estimator: ldsvm, params: {n_basis: 10, gamma: 0.1, C: 1, max_iter: 3}, executor: {kind: serial, rows: 50}}
production: {model: mine, method: ours, holdout: 0.5}
"""


def customers(n: int, seed: int, moved: float = 0.0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    size = draw.normal(moved, 1, n)
    return pd.DataFrame({
        "size": size, "town": draw.choice(["Ulm", "Bonn", "Kiel"], n), "plan": draw.choice(["basic", "plus", None], n),
        "left": np.where(np.sin(2 * size) + draw.normal(0, 0.3, n) > 0, "leaves", "stays"),
    })  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "rows").mkdir()
    customers(300, 0).to_parquet(tmp_path / "rows" / "0.parquet")
    (tmp_path / "mine.yaml").write_text(CONFIG.replace("FOLDER", str(tmp_path / "rows")))
    given = [f"paths.cache={tmp_path / 'cache'}", f"paths.runs={tmp_path / 'runs'}"]
    return load_config(tmp_path / "mine.yaml", given, root=ROOT)


def trained(config: Config, champion: Champion | None) -> promotion.Comparison:
    made = promotion.challenge(config, champion)
    record.settle(
        made.config, made.prepared, made.config.problems[0], "ours",
        on_trials=lambda done, total: None, on_step=lambda row: None, runner=Here(),
    )  # fmt: skip
    return promotion.compare(made)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:MAC stopped at max_iter")
def test_blocks_judge_and_check_as_all_rows_together(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained(config, None)
    champion = Champion.of(first.pipeline, first.facts)
    customers(200, 1, moved=9.0).to_parquet(tmp_path / "rows" / "1.parquet")
    whole, whole_score = promotion.inspect_data(config, champion), promotion.challenge(config, champion)
    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(promotion, "BLOCK", 30)
    blocks, blocks_score = promotion.inspect_data(config, champion), promotion.challenge(config, champion)
    assert blocks == whole
    assert any("column 'size'" in reason for reason in whole.decision.reasons)
    assert whole_score.champion is not None and blocks_score.champion is not None
    assert blocks_score.champion.confusion == whole_score.champion.confusion
    np.testing.assert_array_equal(blocks_score.right, whole_score.right)
    assert asdict(blocks_score.mark) == asdict(whole_score.mark)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:MAC stopped at max_iter")
def test_many_rows_are_compared_by_some_of_them(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotion, "COMPARED", 120)
    first = trained(config, None)
    champion = Champion.of(first.pipeline, first.facts)
    profile = champion.profile
    assert sum(profile.classes.values()) == 180 and sum(profile.latent_counts) == 120
    assert sum(profile.counts[0]) == 120
    same = customers(200, 1)
    same.loc[[7, 150], "left"] = "returns"  # a label is seen in whichever row it is
    same.to_parquet(tmp_path / "rows" / "1.parquet")
    found = promotion.inspect_data(config, champion)
    assert found.drift is not None and found.drift.unknown == ("returns",) and found.drift.share == 0
    customers(200, 2, moved=1.0).to_parquet(tmp_path / "rows" / "2.parquet")
    (tmp_path / "rows" / "1.parquet").unlink()
    found = promotion.inspect_data(config, champion)
    assert found.drift is not None and [shift.name for shift in found.drift.inputs if shift.drifted] == ["size"]


def test_the_drawn_rows_are_in_order_and_each_there_once() -> None:
    places = np.arange(0, 900_000, 3)
    some = promotion.some_of(places, 0)
    assert len(some) == promotion.COMPARED and (np.diff(some) > 0).all() and np.isin(some, places).all()
    np.testing.assert_array_equal(promotion.some_of(places[:9], 0), places[:9])
