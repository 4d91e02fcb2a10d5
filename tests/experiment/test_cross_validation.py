"""An experiment by cross-validation: its folds are splits like any others, and a run that was killed goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from ldsvm.datasets import DataError, Split
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.config.split import CrossValidationConfig
from ldsvm.experiment.prepared import SPLIT, Prepared
from ldsvm.experiment.search.worker import Here
from ldsvm.report import build, differences, publish

ROOT = Path(__file__).resolve().parents[2]
N = 60
METHODS = (
    "methods={linear SVM: {estimator: linear_svm, search: {C: [0.01, 1]}}, ours: {estimator: ldsvm, params: "
    "{n_basis: 8, gamma: 0.3, max_iter: 2}}, NN: {estimator: nearest_neighbour, search: {n_neighbors: [1, 3, 7]}}}"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 rows of 20 patients, two overlapping classes."""
    rng, place = np.random.default_rng(0), tmp_path_factory.mktemp("table") / "small.csv"
    y = np.arange(N) % 2
    X = rng.normal(size=(N, 3)) + 0.8 * y[:, None]
    rows = [
        f"{a:.4f},{b:.4f},{c:.4f},{i // 3},{'yes' if k else 'no'}"
        for i, ((a, b, c), k) in enumerate(zip(X, y, strict=True))
    ]
    place.write_text("\n".join(["a,b,c,patient,ill", *rows]) + "\n")
    return place


def config(table: Path, tmp_path: Path, *more: str, split: str = "folds: 3, repeats: 2") -> Config:
    given = [
        f"paths.cache={tmp_path / 'cache'}", f"paths.runs={tmp_path / 'runs'}", f"dataset.path={table}",
        "dataset.label=ill", "dataset.drop=[patient]", f"split={{kind: cross_validation, {split}}}",
        "judge.repeats=1", "metrics=[error, brier]", METHODS, *more,
    ]  # fmt: skip
    return load_config("conf/own_table.yaml", given, root=ROOT)


def run(config: Config, splits: list[Prepared], names: tuple[str, ...], stop_after: int | None = None) -> list[Outcome]:
    """Do what the flow does, up to a kill after so many results."""
    left = len(splits) * len(names) if stop_after is None else stop_after
    for name in names:
        for prepared in splits:
            if left and not record.known(config, prepared, config.problems[0], name):
                left -= 1
                record.settle(
                    config, prepared, config.problems[0], name,
                    on_trials=lambda done, total: None, on_step=lambda row: None, runner=Here(),
                )  # fmt: skip
    return record.collect(config, splits, config.problems[0])


def rows_of(table: Path) -> tuple[Any, Any]:
    found = np.genfromtxt(table, delimiter=",", skip_header=1, dtype=str)
    return found[:, :3].astype(np.float32), found[:, 4]


@pytest.mark.slow
def test_results_are_those_of_a_loop_written_by_hand(table: Path, tmp_path: Path) -> None:
    asked = config(table, tmp_path)
    splits = preparation.prepare(asked)
    (outcome,) = run(asked, splits, ("NN",))
    X, y = rows_of(table)
    errors, tested = [], []
    for prepared in splits:
        split = Split.load(prepared.folder / SPLIT)
        mean, std = X[split.train].mean(axis=0), X[split.train].std(axis=0)
        Z = (X - mean) / std
        models = [KNeighborsClassifier(k).fit(Z[split.train], y[split.train]) for k in (1, 3, 7)]
        wrong = [np.mean(model.predict(Z[split.validation]) != y[split.validation]) for model in models]
        best = models[int(np.argmin(wrong))]
        errors.append(np.mean(best.predict(Z[split.test]) != y[split.test]))
        tested += split.test.tolist()
    assert [score.error for score in outcome.scores] == pytest.approx(errors)
    assert (outcome.error, outcome.spread) == pytest.approx((np.mean(errors), np.std(errors, ddof=1)))
    assert sorted(tested) == sorted([*range(N), *range(N)]) and len(splits) == 6
    assert sum(map(sum, outcome.confusion[1])) == 2 * N  # every row, twice
    assert len({prepared.digest for prepared in splits}) == 6 and [one.seed for one in splits] == list(range(6))


@pytest.mark.slow
def test_a_run_that_was_killed_between_folds_ends_with_the_same_results(table: Path, tmp_path: Path) -> None:
    names = ("linear SVM", "NN")
    short = ("metrics=[error]", "methods.linear SVM.search={C: [1]}")
    whole, killed = (config(table, tmp_path / place, *short, split="folds: 3") for place in ("whole", "killed"))
    splits = preparation.prepare(whole)
    expected = run(whole, splits, names)
    assert run(killed, splits, names, stop_after=2) == []  # nothing is shown of three folds
    found = run(killed, preparation.prepare(killed), names)
    assert [[_decided(result) for result in one.results] for one in found] == [
        [_decided(result) for result in one.results] for one in expected
    ]


def _decided(result: Result) -> tuple[Any, ...]:
    """What of a result no clock decides."""
    assert result.score is not None
    trials = [(trial.params, trial.valid_error) for trial in result.trials]
    return result.split, result.data, trials, result.params, result.valid_error, result.score.confusion


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_report_has_means_deviations_and_tests(table: Path, tmp_path: Path) -> None:
    asked = config(table, tmp_path, split="folds: 2, repeats: 2")
    splits = preparation.prepare(asked)
    outcomes = run(asked, splits, ("linear SVM", "ours", "NN"))
    header, rows = differences.difference_rows(asked, outcomes)
    assert header[2] == "difference to ours"  # not to the best, which looks better than it is
    assert [row[:2] for row in rows] == [
        ["linear SVM", "error % ↓"], ["NN", "error % ↓"], ["NN", "brier ↓"],
    ]  # fmt: skip
    apart = [a.error - b.error for a, b in zip(outcomes[0].scores, outcomes[1].scores, strict=True)]
    assert float(rows[0][2]) == pytest.approx(100 * np.mean(apart), abs=0.005)
    each = differences.split_rows(outcomes)[1]
    assert len(each) == 12 and each[0][:2] == ["linear SVM", "0"]
    text = build.note(asked, asked.problems[0], outcomes)
    assert "Cross-validation: 2 folds, drawn 2 times, so that every row is tested 2 times. Of the rows outside" in text
    assert "(1/4 + 1) times that of the differences, not 1/4 times; both hold for all" in text
    asked.results.mkdir(parents=True)
    preparation.save(splits, asked.results / publish.FACTS)
    published = publish.publish(asked, splits)
    page = published.page.read_text(encoding="utf-8")
    assert "test error, mean of 2 folds, drawn 2 times: linear SVM" in page and "difference to ours" in page
    names = {file.name for file in published.files["all classes"][""]}
    assert {"differences.csv", "splits.csv", "metrics.csv", "table.csv"} <= names
    brier = [score.metrics["brier"].value for score in outcomes[2].scores]
    assert outcomes[2].metrics["brier_std"] == pytest.approx(np.std(brier, ddof=1))


def test_groups_are_whole_where_the_table_names_them(table: Path, tmp_path: Path) -> None:
    asked = config(table, tmp_path, "dataset.drop=[]", "dataset.group=patient", split="folds: 4")
    patients = np.arange(N) // 3
    for prepared in preparation.prepare(asked):
        split = Split.load(prepared.folder / SPLIT)
        parts = [set(patients[rows]) for rows in (split.train, split.validation, split.test)]
        assert sum(map(len, parts)) == 20
    assert "and rows of a group stay together" in build.protocol(asked)
    many = config(table, tmp_path, "dataset.drop=[]", "dataset.group=patient", split="folds: 21")
    with pytest.raises(
        DataError, match=r"^split\.folds is 21, but dataset\.group patient has 20 distinct values; allowed"
    ):
        preparation.prepare(many)


def test_one_split_and_a_common_test_set_are_not_tested() -> None:
    sizes = "train: 0.6, validation: 0.2, test: {}, repeats: 2"
    found = [
        load_config("conf/digits.yaml", [f"split={{kind: random, {sizes.format(test)}}}"], root=ROOT).split.test_ratio
        for test in ("0.2", "official")
    ]
    assert found == [pytest.approx(0.25), None]
    assert CrossValidationConfig(kind="cross_validation", folds=5).test_ratio == 0.25


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("split={kind: cross_validation, folds: 1}", ['"split.folds"', "1", "greater than or equal to 2"]),
        ("split={kind: cross_validation, validation: 1}", ['"split.validation"', "less than 1"]),
        ("split={kind: cross_validation, fold: 3}", ['"split.fold"', '"folds"', "kind, folds, repeats, validation."]),
        ("split.kind=cross_validation", ['"split.train" is unknown', "kind, folds, repeats, validation."]),
        ("split={folds: 3}", ['"split.kind" is missing']),
        ("vary={key: split.folds, values: [2, 3], label: folds}", ['"vary"', "except split.repeats and split.folds"]),
    ],
)
def test_a_wrong_entry_is_one_sentence(override: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("conf/digits.yaml", [override], root=ROOT)
    assert "\n" not in str(caught.value) and all(part in str(caught.value) for part in parts)


def test_production_keeps_one_model_and_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"split\.kind cross_validation trains 5; leave out production, or choose another"
    ):
        load_config("conf/production/digits.yaml", ["split={kind: cross_validation}"], root=ROOT)


def test_seeds_exist_for_all_folds() -> None:
    with pytest.raises(ConfigError, match=r"seed plus the 10 splits must be at most 2\*\*32"):
        load_config("conf/digits.yaml", ["seed=4294967290", "split={kind: cross_validation, repeats: 2}"], root=ROOT)
