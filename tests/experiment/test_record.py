"""What an earlier run has left is found again, as long as nothing it depends on has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldsvm.experiment import prepared as preparation
from ldsvm.experiment import sources
from ldsvm.experiment.compare import record, results
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.worker import Here
from ldsvm.experiment.storing import loads

ROOT = Path(__file__).resolve().parents[2]
GIVEN = (
    "split={kind: stratified, train: 200, validation: 100, test: 200, repeats: 2}",
    "judge.repeats=1",
    "n_jobs=1",
    "problems=[{name: all, labels: original}]",
    "methods={ours: {estimator: ldsvm, params: {n_basis: 20, gamma: 0.1, max_iter: 2}, search: {C: [1, 10]}},"
    " NN: {estimator: nearest_neighbour, search: {n_neighbors: [1, 3]}}}",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("record")


def config(place: Path, *more: str) -> Config:
    paths = [f"paths.cache={place / 'cache'}", f"paths.runs={place / 'runs'}"]
    return load_config("conf/digits.yaml", [*paths, *GIVEN, *more], root=ROOT)


@pytest.fixture(scope="module")
def splits(place: Path) -> list[Prepared]:
    return preparation.prepare(config(place))


def settle(wanted: Config, splits: list[Prepared], name: str) -> None:
    for prepared in splits:
        record.settle(
            wanted, prepared, wanted.problems[0], name,
            on_trials=lambda done, total: None, on_step=lambda row: None, runner=Here(),
        )  # fmt: skip


def place_of(wanted: Config, prepared: Prepared, name: str = "ours") -> Path:
    return record.place(wanted, prepared, wanted.problems[0], name)


@pytest.mark.slow
def test_a_result_is_kept_with_its_model_and_latent_space_and_known_from_then_on(
    place: Path, splits: list[Prepared]
) -> None:
    wanted = config(place, f"paths.runs={place / 'kept'}")
    problem = wanted.problems[0]
    assert not any(record.known(wanted, prepared, problem, "ours") for prepared in splits)
    settle(wanted, splits[:1], "ours")
    assert [record.known(wanted, prepared, problem, "ours") for prepared in splits] == [True, False]
    assert record.outcome(wanted, splits, problem, "ours") is None  # a mean over half the splits would be another thing
    settle(wanted, splits[1:], "ours")
    (outcome,) = record.collect(wanted, splits, problem)
    assert [result.split for result in outcome.results] == [0, 1]
    assert np.load(outcome.folder / record.LATENT).shape == (200, 9)
    model, (X, y) = loads((outcome.folder / record.MODEL).read_bytes()), splits[0].arrays("test", "original")
    assert np.mean(model.predict(X) != y) == outcome.scores[0].error
    assert not (place_of(wanted, splits[1]) / record.MODEL).exists()  # one is enough
    assert not record.known(config(place, f"paths.runs={place / 'kept'}", "refresh=true"), splits[0], problem, "ours")


@pytest.mark.parametrize(
    "line",
    [
        "title=Other",
        "search.workers=3",
        "search={workers: 2, n_jobs: 1}",
        "methods.NN.search.n_neighbors=[5]",
        "published=[]",
        "refresh=true",
    ],
)
def test_what_a_method_does_not_depend_on_leaves_its_result_valid(
    place: Path, splits: list[Prepared], line: str
) -> None:
    assert place_of(config(place, line), splits[0]) == place_of(config(place), splits[0])


@pytest.mark.parametrize(
    "line",
    [
        "methods.ours.search.C=[1]",
        "methods.ours.params.n_basis=21",
        "n_jobs=2",
        "judge.repeats=2",
        "limits.fit_s=5",
        "problems=[{name: all, labels: parity}]",
        "problems=[{name: other, labels: original}]",
    ],
)
def test_what_it_depends_on_gives_it_another_place(place: Path, splits: list[Prepared], line: str) -> None:
    assert place_of(config(place, line), splits[0]) != place_of(config(place), splits[0])


def test_data_split_name_and_code_give_it_another_place_too(
    place: Path, splits: list[Prepared], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_code: None
) -> None:
    wanted = config(place)
    found = {
        place_of(wanted, splits[0]),
        place_of(wanted, splits[1]),
        place_of(wanted, splits[0], "NN"),
        place_of(wanted, replace(splits[0], digest="other")),
    }
    for source in sources.HOME.rglob("*.py"):
        copy = tmp_path / source.relative_to(sources.HOME)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    monkeypatch.setattr(sources, "HOME", tmp_path)
    sources.code.cache_clear()
    assert place_of(wanted, splits[0]) in found  # a copy of the code elsewhere is the same code
    (tmp_path / "report" / "tables.py").write_text("changed = True")
    sources.code.cache_clear()
    assert place_of(wanted, splits[0]) in found
    step = tmp_path / "mac" / "z_step.py"
    words = step.read_text().replace('"""', '"""Other words. ', 1) + "# and a comment"
    step.write_text(words)
    sources.code.cache_clear()
    assert place_of(wanted, splits[0]) in found  # words decide nothing
    step.write_text(words + "\nchanged = True")
    sources.code.cache_clear()
    found.add(place_of(wanted, splits[0]))
    assert len(found) == 5


@pytest.fixture
def fresh_code() -> Iterator[None]:
    yield
    sources.code.cache_clear()


def test_a_failure_is_kept_and_tried_again_and_the_trials_are_not(place: Path, splits: list[Prepared]) -> None:
    wanted = config(place, "methods.NN.search.n_neighbors=[1, 1000]")
    folder = place_of(wanted, splits[0], "NN")
    late = Failure(Kind.TIME_LIMIT, "stopped: time limit of 3 s for all trials (limits.task_s)")
    record.give_up(wanted, splits, wanted.problems[0], "NN", late, 0.0)
    assert results.read(folder).failure == late
    outcome = record.outcome(wanted, splits, wanted.problems[0], "NN")
    assert outcome is not None and (outcome.judged, outcome.foreseen, outcome.verdict) == (False, True, "stopped")
    assert not record.known(wanted, splits[0], wanted.problems[0], "NN")
    settle(wanted, splits[:1], "NN")
    assert [trial.failure is None for trial in results.read(folder).trials] == [True, False]
    record.give_up(wanted, splits, wanted.problems[0], "NN", late, 0.0)
    assert results.read(folder).score is not None  # what is there stays


def test_refresh_does_the_trials_again(place: Path, splits: list[Prepared]) -> None:
    wanted = config(place, f"paths.runs={place / 'refresh'}")
    folder = place_of(wanted, splits[0], "NN")
    settle(wanted, splits[:1], "NN")
    first = results.read(folder)
    settle(wanted, splits[:1], "NN")
    assert [t.seconds for t in results.read(folder).trials] == [t.seconds for t in first.trials]  # of the journal
    settle(config(place, f"paths.runs={place / 'refresh'}", "refresh=true"), splits[:1], "NN")
    again = results.read(folder)
    assert [t.seconds for t in again.trials] != [t.seconds for t in first.trials]
    assert [t.valid_error for t in again.trials] == [t.valid_error for t in first.trials]
