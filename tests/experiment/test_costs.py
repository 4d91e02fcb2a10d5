"""Costs of mistakes from the file to the answers of the kept model, on a table of two classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldsvm.datasets import DataError
from ldsvm.experiment.compare import record
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import divided, draw_split, load_source
from ldsvm.experiment.search.worker import Here
from ldsvm.experiment.storing import dumps, loads
from ldsvm.production import promotion
from ldsvm.production.promotion import Champion
from ldsvm.report.card import _threshold as sentence

ROOT = Path(__file__).resolve().parents[2]
METHODS = (
    "methods={ours: {estimator: ldsvm, params: {gamma: 0.3, max_iter: 5, n_basis: 10}, search: {C: [0.1, 1]}},"
    " linear: {estimator: linear_svm}}"
)


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return pd.DataFrame(rng.normal(size=(n, 2)) + y[:, None], columns=["a", "b"]).assign(
        label=np.array(["no", "yes"])[y]
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    rows(300, 0).to_parquet(tmp_path / "in" / "0.parquet")
    return tmp_path


def config(place: Path, *more: str, costs: str = "{missed: 5, false_alarm: 1}") -> Config:
    given = [
        f"paths.cache={place / 'cache'}", f"paths.runs={place / 'runs'}", f"dataset.path={place / 'in'}",
        "dataset.label=label", METHODS, "judge.repeats=1", "n_jobs=1", "production.trials=2",
        "production.gate={error_percent: {threshold: 50}}", f"costs={costs}", *more,
    ]  # fmt: skip
    return load_config("conf/production/digits.yaml", given, root=ROOT)


def settled(wanted: Config, name: str) -> tuple[Any, Any, Path]:
    source = load_source(wanted)
    prepared = divided(wanted, source, draw_split(wanted, source, 0), 0)
    record.settle(
        wanted, prepared, wanted.problems[0], name,
        on_trials=lambda done, total: None, on_step=lambda row: None, runner=Here(),
    )  # fmt: skip
    outcome = record.outcome(wanted, [prepared], wanted.problems[0], name)
    assert outcome is not None and outcome.failure is None, outcome
    return prepared, outcome.first, outcome.folder


@pytest.mark.slow
@pytest.mark.parametrize("refit", ["false", "true"])
def test_what_the_judge_scores_is_the_model_that_is_kept(place: Path, refit: str) -> None:
    wanted = config(place, "search.objective=cost", f"judge.refit={refit}")
    prepared, result, folder = settled(wanted, "ours")
    model = loads((folder / record.MODEL).read_bytes())
    X, y = prepared.arrays("test", "original")
    found = model.predict_proba(X)[:, 1] >= 1 / 6
    assert result.score.threshold == pytest.approx(1 / 6) and result.score.threshold_of == "probability"
    np.testing.assert_array_equal(model.predict(X) == "yes", found)
    cost = np.where((y == "yes") & ~found, 5, np.where((y == "no") & found, 1, 0))
    measured = result.score.metrics["cost"]
    assert measured.value == pytest.approx(cost.mean()) and measured.low < measured.value < measured.high
    assert result.score.n_wrong == int((cost > 0).sum())
    kept = record.answers(folder)
    assert kept is not None and kept.costs == (5, 1)
    losses = [trial.loss for trial in result.trials]
    assert None not in losses and min(losses) < 1
    chosen = min(result.trials, key=lambda trial: trial.loss)
    assert result.params["C"] in {t.params["C"] for t in result.trials if t.loss == chosen.loss}


@pytest.mark.slow
def test_other_costs_are_other_trials_and_results_and_none_leave_all_as_it_was(place: Path) -> None:
    one, other = (config(place, "search.objective=cost", costs=f"{{missed: {m}, false_alarm: 1}}") for m in (5, 9))
    (prepared, first, _), (_, second, _) = settled(one, "linear"), settled(other, "linear")
    assert first.score.threshold_of == "decision value" and first.score.threshold < 0
    assert first.trials[0].loss != second.trials[0].loss
    plain = config(place, costs="null")
    assert plain.metrics == ("error",) and settled(plain, "linear")[1].score.threshold is None
    problem = one.problems[0]
    assert len({record.place(c, prepared, problem, "linear") for c in (one, other, plain)}) == 3


@pytest.mark.slow
def test_the_gate_compares_costs_and_the_registered_pipeline_keeps_the_threshold(place: Path) -> None:
    wanted = config(place, "production.gate={metric: cost, metrics: {cost: {threshold: 3}}}")
    made = promotion.challenge(wanted, None)
    for number in (1, 2):
        prepared = made.prepared
        record.settle(
            made.config, prepared, made.config.problems[0], "ours",
            on_trials=lambda done, total: None, on_step=lambda row: None, runner=Here(),
        )  # fmt: skip
        found = promotion.compare(made)
        rows(300, number).to_parquet(place / "in" / f"{number}.parquet")
        made = promotion.challenge(wanted, Champion.of(found.pipeline, found.facts))
    assert [check.name for check in found.verdict.checks] == ["cost", "cost better", "randomisation cost better"]
    assert found.score.threshold == found.champion.threshold == pytest.approx(1 / 6)
    assert sentence(wanted, found.score) == [
        "A missed 'yes' costs 5 and a false alarm 1, so 'yes' is predicted where its probability ≥ 0.1667."
    ]
    table, model = rows(100, 9)[["a", "b"]], loads(dumps(found.pipeline))
    np.testing.assert_array_equal(model.predict(table) == "yes", model.predict_proba(table)[:, 1] >= 1 / 6)


def test_faults_are_one_sentence(place: Path) -> None:
    for costs, said in (
        ("{missed: -1, false_alarm: 1}", r'"costs\.missed" has value -1; input should be greater than or equal to 0'),
        ("{missed: 0, false_alarm: 0}", r'"costs" has value .*; missed or false_alarm must be above 0\.$'),
        ("{missed: 1}", r'"costs\.false_alarm" is missing'),
        ("{mised: 1, false_alarm: 1}", r'"costs\.mised" is unknown \(did you mean "missed"'),
    ):
        with pytest.raises(ConfigError, match=said):
            config(place, costs=costs)
    with pytest.raises(ConfigError, match=r'key "search\.objective" has the metric "cost", which needs the costs of'):
        config(place, "search.objective=cost", costs="null")
    rows(300, 0).assign(label=lambda f: f["label"].where(f["a"] < 1, "zebra")).to_parquet(place / "in" / "0.parquet")
    with pytest.raises(DataError, match=r"^costs are for two classes, but all classes has 3; leave costs out, or"):
        load_source(config(place))
