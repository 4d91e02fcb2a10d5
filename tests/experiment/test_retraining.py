"""What is new, what it calls for, and who would be promoted: on real files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldsvm.datasets import DataError
from ldsvm.experiment import promotion, record, retraining
from ldsvm.experiment.config import Config, MethodConfig
from ldsvm.experiment.drift import Drift, Shift
from ldsvm.experiment.load import ConfigError, load_config
from ldsvm.experiment.prepared import load_source
from ldsvm.experiment.production import ProductionConfig
from ldsvm.experiment.promotion import Known
from ldsvm.experiment.retraining import Mark
from ldsvm.experiment.worker import Here

ROOT = Path(__file__).resolve().parents[2]
METHODS = (
    "methods={ours: {estimator: ldsvm, params: {gamma: 0.3, max_iter: 5}, search: {n_basis: [10], C: [0.1, 1]}},"
    " linear: {estimator: linear_svm}}"
)
RULES = ProductionConfig(model="m")


def rows(n: int, seed: int, angle: float = 0.0) -> pd.DataFrame:
    """Three classes around the corners of a triangle that turns by an angle, with a time for each row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    turns = 2 * np.pi * y / 3 + angle
    X = np.stack([np.cos(turns), np.sin(turns)], axis=1) + 0.3 * rng.normal(size=(n, 2))
    names = np.array(["ant", "bee", "cat"])[y]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": names, "when": np.arange(n) + 1000 * seed})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    rows(300, 0).to_parquet(tmp_path / "in" / "0.parquet")
    return tmp_path


def config(place: Path, *more: str) -> Config:
    given = [
        f"paths.cache={place / 'cache'}", f"paths.runs={place / 'runs'}", f"dataset.path={place / 'in'}",
        "dataset.drop=[when]", "dataset.label=label", METHODS, "judge.repeats=1", "n_jobs=1", "production.trials=2",
        "production.gate={error_percent: {threshold: 50}}", *more,
    ]  # fmt: skip
    return load_config("conf/production/digits.yaml", given, root=ROOT)


def trained(settings: Config, champion: Known | None) -> promotion.Duel:
    wanted, prepared = promotion.challenge(settings, champion)
    record.settle(
        wanted, prepared, wanted.problems[0], "ours",
        on_trials=lambda done, total: None, on_step=lambda row: None, runner=Here(),
    )  # fmt: skip
    return promotion.duel(wanted, prepared, champion)


def known(duel: promotion.Duel) -> Known:
    return Known.of(duel.pipeline, duel.facts)


def test_new_files_are_new_rows_and_half_of_a_holdout_of_them_judges_both(place: Path) -> None:
    settings = config(place)
    first = trained(settings, None)
    assert first.champion is None and first.verdict.promote
    assert promotion.look(settings, known(first)).decision.sentence == "skip: 0 new rows, production.least is 100."
    rows(200, 1).to_parquet(place / "in" / "1.parquet")
    found = promotion.look(settings, known(first))
    assert (found.new, found.decision.action) == (200, "retrain")
    assert found.drift is not None and found.drift.sentences == ["Nothing has drifted."]
    second = trained(settings, known(first))
    assert second.score.n_test == 60 and second.champion is not None and second.champion.n_test == 60
    assert not second.verdict.promote  # the rows are of the same kind: no gain beyond chance
    wrong = second.champion.n_wrong - second.score.n_wrong
    assert second.only_right[0] - second.only_right[1] == wrong


def test_rows_that_moved_are_told_and_a_challenger_that_knows_them_is_promoted(place: Path) -> None:
    settings = config(place, "production.drift.alarm_share=1", "production.drift.psi=0.02")
    first = trained(settings, None)
    rows(400, 1, angle=1.0).to_parquet(place / "in" / "1.parquet")
    found = promotion.look(settings, known(first))
    assert found.drift is not None and found.drift.latent.drifted
    second = trained(settings, known(first))
    assert second.champion is not None and second.champion.error > 0.3 > second.score.error
    assert second.verdict.promote


def test_times_tell_what_is_new_and_the_latest_rows_judge(place: Path) -> None:
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    source = load_source(settings)
    then = retraining.mark(settings, source)
    assert then.time == 299 and then.files is None
    rows(100, 1).to_parquet(place / "in" / "0.parquet")  # the same file with other rows: times tell all the same
    source = load_source(settings)
    assert retraining.fresh(settings, source, then).all()
    assert retraining.fresh(settings, source, replace(then, time=1049.0)).sum() == 50
    new = retraining.fresh(settings, source, replace(then, time=1049.0))
    split = retraining.divide(settings, source, new)
    assert source.data.train.times is not None
    assert sorted(source.data.train.times[split.test].tolist()) == list(range(1085, 1100))
    assert len(split.train) + len(split.validation) + len(split.test) == 100


def test_groups_stay_on_one_side_also_with_their_old_rows(place: Path) -> None:
    frame = rows(400, 0).assign(who=lambda f: f.index % 40)
    frame.iloc[:200].to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.group=who")
    then = retraining.mark(settings, load_source(settings))
    frame.iloc[200:].to_parquet(place / "in" / "1.parquet")
    source = load_source(settings)
    split = retraining.divide(settings, source, retraining.fresh(settings, source, then))
    assert source.data.train.groups is not None
    sides = [set(source.data.train.groups[part].tolist()) for part in (split.train, split.validation, split.test)]
    assert all(sides) and sum(map(len, sides)) == len(set.union(*sides)) == 40
    assert split.test.min() >= 200 and 40 <= len(split.test) <= 80


def test_dates_are_kept_as_texts_and_compared_as_dates(place: Path) -> None:
    frame = rows(50, 0).assign(when=pd.date_range("2024-01-01", periods=50, tz="UTC"))
    frame.to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    source = load_source(settings)
    then = retraining.mark(settings, source)
    assert isinstance(then.time, str) and then.time.startswith("2024-02-19")
    assert not retraining.fresh(settings, source, then).any()
    assert retraining.fresh(settings, source, replace(then, time="2024-02-10")).sum() == 9


def test_a_changed_file_is_refused_by_name(place: Path) -> None:
    settings = config(place)
    then = retraining.mark(settings, load_source(settings))
    rows(301, 0).to_parquet(place / "in" / "0.parquet")
    with pytest.raises(DataError, match=r"^0\.parquet was changed since the champion was trained on it"):
        retraining.fresh(settings, load_source(settings), then)


def test_a_file_that_was_renamed_or_copied_is_not_new(place: Path) -> None:
    settings = config(place)
    then = retraining.mark(settings, load_source(settings))
    (place / "in" / "0.parquet").rename(place / "in" / "9.parquet")
    (place / "in" / "8.parquet").write_bytes((place / "in" / "9.parquet").read_bytes())
    assert not retraining.fresh(settings, load_source(settings), then).any()


def test_times_that_come_or_go_are_refused(place: Path) -> None:
    settings = config(place)
    then = retraining.mark(settings, load_source(settings))
    timed = config(place, "dataset.drop=[]", "dataset.time=when")
    with pytest.raises(DataError, match=r"^dataset\.time is when, which it was not when the champion was trained"):
        retraining.fresh(timed, load_source(timed), then)


def test_a_new_file_that_sorts_before_the_old_ones_is_the_new_one(place: Path) -> None:
    settings = config(place, "dataset.missing=drop")
    then = retraining.mark(settings, load_source(settings))
    frame = rows(20, 1).assign(a=lambda f: f["a"].where(np.arange(20) > 4))  # five rows are left out on reading
    frame.to_parquet(place / "in" / "-1.parquet")
    new = retraining.fresh(settings, load_source(settings), then)
    assert np.flatnonzero(new).tolist() == list(range(15)) and len(new) == 315


def test_data_of_the_catalogue_are_new_when_their_content_is(tmp_path: Path) -> None:
    paths = [f"paths.cache={tmp_path / 'cache'}", f"paths.runs={tmp_path / 'runs'}"]
    settings = load_config("conf/production/digits.yaml", paths, root=ROOT)
    source = load_source(settings)
    then = retraining.mark(settings, source)
    assert then == Mark(source.data.sha256)
    assert not retraining.fresh(settings, source, then).any()
    assert retraining.fresh(settings, source, Mark("another")).all()


def shift(name: str, drifted: bool) -> Shift:
    return Shift(name, 1.0 if drifted else 0.0, 0.0 if drifted else 1.0, drifted)


def moved(inputs: int, unknown: tuple[str, ...] = ()) -> Drift:
    return Drift(tuple(shift(str(i), i < inputs) for i in range(4)), shift("label", False), shift("l", False), unknown)


@pytest.mark.parametrize(
    ("new", "drift", "rules", "action"),
    [
        (99, None, {}, "skip"),
        (100, moved(0), {}, "retrain"),
        (100, moved(1), {}, "retrain"),
        (100, moved(2), {}, "alarm"),
        (100, moved(2), {"alarm_share": 0.6}, "retrain"),
        (100, moved(0, ("dog",)), {}, "alarm"),
        (100, moved(0, ("dog",)), {"unknown_labels": "retrain"}, "retrain"),
    ],
)
def test_rows_and_drift_decide(new: int, drift: Drift | None, rules: dict[str, Any], action: str) -> None:
    wanted = ProductionConfig.model_validate({"model": "m", "drift": rules})
    assert retraining.decide(wanted, new, drift).action == action


def test_the_search_is_around_the_champion() -> None:
    method = MethodConfig(estimator="ldsvm", params={"gamma": 0.1}, search={"n_basis": [50, 100], "C": [1.0]})
    near = retraining.around(method, {"gamma": 0.2, "n_basis": 90, "C": 0.3, "map": "adaptive_rbf"}, RULES)
    assert near.params == {"gamma": 0.1}  # as the file says: only what is searched is the champion's
    assert near.search == {"n_basis": [30, 90, 270], "C": pytest.approx([0.1, 0.3, 0.9])}
    whole = retraining.around(method, {"n_basis": 90, "C": 1}, RULES)
    assert whole.space["C"] == pytest.approx([1 / 3, 1, 3])
    low = ProductionConfig.model_validate({"model": "m", "gate": {"n_basis": {"threshold": 100}}})
    assert retraining.around(method, {"n_basis": 90, "C": 1.0}, low).space["n_basis"] == [30, 90]
    assert near.strategy is None
    few = retraining.around(method, {"n_basis": 90, "C": 0.3}, ProductionConfig(model="m", trials=4))
    assert few.strategy is not None and few.strategy.n_candidates == 4
    assert retraining.around(method, {"C": None, "gamma": "scale"}, RULES).search == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("production.method=linear", r'production.method "linear"'),
        ("split.repeats=2", "production is of one model"),
        ("production.gate.error_percents=1", "error_percents"),
        ("production.holdout=1", "production.holdout"),
        ("production.model='a b'", "production.model"),
    ],
)
def test_what_production_cannot_mean_is_refused(place: Path, change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(place, change)
