"""The tracking store, with a real MLflow in a temporary folder."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from ldsvm import LDSVMClassifier
from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.search.trial import Trial
from ldsvm.metrics import Measured
from ldsvm.tracking import client, results, run_owner
from ldsvm.tracking.client import STEP_METRICS, Tracker, TrackingFailed
from ldsvm.tracking.results import track_dataset, track_trials
from ldsvm.tracking.store import has_open_runs
from ldsvm.tracking.system import system_metrics

# MLflow 3.17 itself uses a loading strategy that its database library has deprecated, and warns about its own types.
pytestmark = [
    pytest.mark.slow,  # MLflow and its store
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
    pytest.mark.filterwarnings("ignore:Operation with range is deprecated"),  # of pandas, in MLflow
]


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Tracker:
    found = Tracker(tmp_path_factory.mktemp("store"), "tests")
    assert found.experiment_id
    return found


def status(tracker: Tracker, run_id: str) -> str:
    return str(tracker.client.get_run(run_id).info.status)


def points(tracker: Tracker, run_id: str, key: str) -> dict[int, float]:
    """The values of one quantity of the training by iteration, or of another one by its step."""
    return {m.step: m.value for m in tracker.client.get_metric_history(run_id, STEP_METRICS.get(key, key))}


def test_the_store_is_a_file_in_the_folder(tracker: Tracker) -> None:
    assert (tracker.runs / "mlflow.db").is_file()
    assert client.store_uri(Path("runs")) == f"sqlite:///{Path.cwd() / 'runs' / 'mlflow.db'}"


def test_an_experiment_that_was_deleted_in_mlflow_is_told_and_can_be_restored(tracker: Tracker) -> None:
    found = Tracker(tracker.runs, "binned").experiment_id
    tracker.client.delete_experiment(found)
    said = (
        f"The experiment 'binned' was deleted in MLflow; restore it (mlflow experiments restore -x {found}), "
        "remove it for good (mlflow gc), or choose another key name."
    )
    with pytest.raises(TrackingFailed, match=f"^{re.escape(said)}$"):
        assert Tracker(tracker.runs, "binned").experiment_id
    tracker.client.restore_experiment(found)
    assert Tracker(tracker.runs, "binned").experiment_id == found


def test_a_run_that_ends_well_is_finished_and_nested(tracker: Tracker) -> None:
    with tracker.run("parent", kind="problem") as parent, tracker.run("child", kind="method", parent=parent.id) as run:
        run.log({"C": 1.0}, {"error_percent": 2.5, "n_basis": None, "train_s": float("nan")})
        run.history([{"iteration": 0, "nested": 3.0}, {"iteration": 1, "nested": 2.0, "valid_error": None}])
        run.describe(name="child · 2.5 %", note="| a |")
        run.tag("place", "here")
    data = tracker.client.get_run(run.id).data
    assert status(tracker, run.id) == status(tracker, parent.id) == "FINISHED"
    assert data.params == {"C": "1.0"}
    assert data.metrics == {"error_percent": 2.5, "iteration/nested": 2.0}
    assert data.tags["mlflow.parentRunId"] == parent.id
    assert data.tags["mlflow.note.content"] == "| a |"
    assert data.tags["place"] == "here"
    assert points(tracker, run.id, "nested") == {0: 3.0, 1: 2.0}


def test_a_run_that_is_over_is_written_whole_in_three_calls(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = tracker.client.client

    class Spy:
        def __getattr__(self, name: str) -> Any:
            calls.append(name)
            return getattr(real, name)

    monkeypatch.setattr(tracker.client, "client", Spy())
    parent = tracker.finished("ours", kind="method", params={}, metrics={}, started=1e9, seconds=20)
    calls.clear()
    history = [{"iteration": i, "nested": 9.0 - i, "seconds_z": 0.1, "unknown": 1.0} for i in range(3)]
    run = tracker.finished(
        "C=1", kind="trial", parent=parent.id, params={"C": 1.0}, metrics={"valid_error_percent": 2.5, "n_basis": None},
        history=history, started=1e9 + 2, seconds=1.25,
    )  # fmt: skip
    assert calls == ["create_run", "log_batch", "set_terminated"]
    found = real.get_run(run.id)
    assert (found.info.start_time, found.info.end_time) == (1_000_000_002_000, 1_000_000_003_250)
    assert (found.info.status, found.info.run_name) == ("FINISHED", "C=1")
    assert found.data.params == {"C": "1.0"}
    assert found.data.metrics == {"valid_error_percent": 2.5, "iteration/nested": 7.0, "iteration/seconds_z": 0.1}
    assert found.data.tags["mlflow.parentRunId"] == parent.id
    assert found.data.tags["ldsvm.kind"] == "trial"


def test_a_run_that_is_over_and_failed_says_why(tracker: Tracker) -> None:
    run = tracker.finished("C=1", kind="trial", params={}, metrics={}, started=1e9, seconds=1, failure="time limit")
    assert status(tracker, run.id) == "FAILED"
    assert tracker.client.get_run(run.id).data.tags["ldsvm.failure"] == "time limit"


def test_a_history_longer_than_one_batch_is_whole_and_ends_with_the_last_iteration(tracker: Tracker) -> None:
    history = [{"iteration": i, **{key: float(i + j) for j, key in enumerate(STEP_METRICS)}} for i in range(120)]
    run = tracker.finished("long", kind="trial", params={}, metrics={}, history=history, started=1e9, seconds=1)
    assert len(history) * len(STEP_METRICS) > 1000
    for j, key in enumerate(STEP_METRICS):
        assert points(tracker, run.id, key) == {i: float(i + j) for i in range(120)}
        assert tracker.client.get_run(run.id).data.metrics[STEP_METRICS[key]] == 119 + j


def test_a_run_can_begin_earlier_than_it_is_opened(tracker: Tracker) -> None:
    with tracker.run("earlier", kind="method", started=1e9) as run:
        pass
    info = tracker.client.get_run(run.id).info
    assert info.start_time == 1_000_000_000_000 and info.end_time > info.start_time


def test_methods_have_the_data_as_mlflow_shows_it_and_trials_its_name(tracker: Tracker) -> None:
    prepared: Any = SimpleNamespace(
        digest="0123abcd", dataset={"name": "digits", "source": "here.csv"}, summary={"rows": 9}
    )
    with tracker.run("ours", kind="method") as run:
        track_dataset(run, [prepared], "odd")
        trials = [Trial({"C": 1.0}, 0, valid_error=0.1, seconds=1.0)]
        track_trials(tracker, run, trials, "", 1e9)
    (found,) = tracker.client.get_run(run.id).inputs.dataset_inputs
    data = found.dataset
    assert (data.name, data.digest, data.source, data.profile) == ("digits, odd", "0123abcd", "here.csv", '{"rows": 9}')
    (trial,) = tracker.client.search_runs([tracker.experiment_id], f"tags.mlflow.parentRunId = '{run.id}'")
    assert trial.data.tags["ldsvm.dataset"] == "digits, odd, 0123abcd"
    assert tracker.client.get_experiment(tracker.experiment_id).tags["mlflow.experimentKind"].startswith("custom_model")


def test_several_splits_are_a_mean_with_its_deviation_and_a_point_each(tracker: Tracker) -> None:
    found = []
    for split, (error, brier) in enumerate([(0.1, 0.25), (0.3, 0.75)]):
        metrics = {"error": Measured(error), "brier": Measured(brier, 0.0, 1.0)}
        score = Score(error, 0.0, 1.0, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]], metrics)
        found.append(Result("p", "m", "linear_svm", [], split, valid_error=0.1, train_s=1.0, search_s=2.0, score=score))
    with tracker.run("m", kind="method") as run:
        results._track_outcome(run, Outcome(Path("m"), tuple(found)), None, "")
    known = tracker.client.get_run(run.id).data.metrics
    assert (known["error_percent"], known["brier"]) == (20.0, 0.5)
    assert (known["error_std_percent"], known["brier_std"]) == pytest.approx((100 * 0.02**0.5, 0.125**0.5), abs=1e-3)
    assert points(tracker, run.id, "split/error_percent") == {0: 10.0, 1: 30.0}
    assert points(tracker, run.id, "split/brier") == {0: 0.25, 1: 0.75}


def test_tables_and_texts_are_artifacts(tracker: Tracker) -> None:
    with tracker.run("files", kind="method") as run:
        run.table("confusion.json", {"class": ["a", "b"], "predicted a": [3, 0]})
        run.text("configuration.yaml", "name: digits · µ\n")
    files = {
        file.path: tracker.client.download_artifacts(run.id, file.path)
        for file in tracker.client.list_artifacts(run.id)
    }
    assert json.loads(Path(files["confusion.json"]).read_text("utf-8")) == {
        "columns": ["class", "predicted a"], "data": [["a", 3], ["b", 0]],
    }  # fmt: skip
    assert Path(files["configuration.yaml"]).read_text("utf-8") == "name: digits · µ\n"


def test_a_store_knows_its_own_runs_and_no_others(tracker: Tracker) -> None:
    with tracker.run("known", kind="method") as run:
        assert tracker.knows(run.id)
    assert not tracker.knows("0" * 32)
    assert not tracker.knows("no number of a run")
    tracker.client.delete_run(run.id)
    assert not tracker.knows(run.id)


def test_an_experiment_that_several_begin_at_once_is_made_once(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    find, several = mlflow.MlflowClient.get_experiment_by_name, [Tracker(tracker.runs, "at once") for _ in range(3)]

    def slowly(client: Any, name: str) -> Any:
        found = find(client, name)
        time.sleep(0.1)
        return found

    def begin(one: Tracker) -> str:
        return Tracker.experiment_id.func(one)  # Python 3.11 lets one thread at a time into the property itself

    assert all(one.client for one in several)
    monkeypatch.setattr(mlflow.MlflowClient, "get_experiment_by_name", slowly)
    with ThreadPoolExecutor() as pool:
        assert len(set(pool.map(begin, several))) == 1


@pytest.mark.parametrize(("error", "expected"), [(ValueError("no"), "FAILED"), (KeyboardInterrupt(), "KILLED")])
def test_an_exception_marks_the_run_and_goes_on(tracker: Tracker, error: BaseException, expected: str) -> None:
    with pytest.raises(type(error)), tracker.run("bad", kind="method") as run:
        raise error
    assert status(tracker, run.id) == expected
    assert type(error).__name__ in tracker.client.get_run(run.id).data.tags["ldsvm.failure"]


def test_a_failure_without_an_exception_marks_the_run_too(tracker: Tracker) -> None:
    with tracker.run("bad", kind="method") as run:
        run.failure = "all trials failed"
    assert status(tracker, run.id) == "FAILED"


def test_only_runs_of_dead_processes_are_swept(tracker: Tracker) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with tracker.run("alive", kind="method") as alive, tracker.run("dead", kind="method") as dead:
        tracker.client.set_tag(dead.id, run_owner.PID, done.stdout.decode().strip())
        assert tracker.sweep() == 1
        assert status(tracker, dead.id) == "KILLED"
        assert status(tracker, alive.id) == "RUNNING"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say when a process began")
def test_a_process_that_got_the_number_of_another_is_not_that_one() -> None:
    """As in a container that starts again, whose processes get the same numbers."""
    mine = run_owner.tags()
    assert run_owner.alive(mine) and run_owner.alive({run_owner.PID: mine[run_owner.PID]})
    assert not run_owner.alive({**mine, run_owner.BORN: str(int(mine[run_owner.BORN]) - 1)})


def test_a_pipeline_that_is_over_leaves_none_of_its_runs_open(tracker: Tracker) -> None:
    mine, other = Tracker(tracker.runs, "tests", "p-mine"), Tracker(tracker.runs, "tests", "p-other")
    with other.run("of another pipeline", kind="method") as theirs:
        with pytest.raises(TrackingFailed), mine.run("open", kind="method") as run:
            raise TrackingFailed("the store was lost for a while")
        assert status(tracker, run.id) == "RUNNING"
        assert (mine.sweep(), mine.sweep(own=True)) == (0, 1)
        assert (status(tracker, run.id), status(tracker, theirs.id)) == ("KILLED", "RUNNING")


def test_every_experiment_of_the_store_is_swept(tracker: Tracker) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with Tracker(tracker.runs, "another").run("dead", kind="method") as dead:
        tracker.client.set_tag(dead.id, run_owner.PID, done.stdout.decode().strip())
        assert has_open_runs(tracker.runs)
        assert client.sweep(tracker.runs) == 1
        assert status(tracker, dead.id) == "KILLED"


def test_a_look_without_mlflow_finds_open_runs_alone(tmp_path: Path) -> None:
    assert not has_open_runs(tmp_path)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as store, store:
        store.execute("create table runs (status)")
        store.execute("insert into runs values ('FINISHED')")
    assert not has_open_runs(tmp_path)
    (tmp_path / "mlflow.db").write_text("damaged, of which MLflow says more than we could")
    assert has_open_runs(tmp_path)


def test_the_links_open_a_view_that_the_experiment_has(tracker: Tracker) -> None:
    number = Tracker(tracker.runs, "tests", "p-1").experiment_id
    tags = tracker.client.get_experiment(number).tags
    (line,) = [line for line in client.links(tracker.runs, 5001) if line.startswith("tests: ")]
    start = f"http://127.0.0.1:5001/#/experiments/{number}/runs?workflowType=machine_learning&viewStateShareKey="
    assert line == f"tests: {start}methods"
    assert client.link(number, 5001, "p-1") == f"{start}p-1"
    every, one = (json.loads(tags[f"mlflow.sharedViewState.{key}"]) for key in ("methods", "p-1"))
    assert one.pop("searchFilter") == every.pop("searchFilter") + " and tags.`ldsvm.pipeline` = 'p-1'"
    assert one == every


def test_the_filter_of_a_pipeline_finds_its_methods_only(tracker: Tracker) -> None:
    runs = {}
    for name in ("p-2", "p-3"):
        of_one = Tracker(tracker.runs, "filter", name)
        with of_one.run(name, kind="problem") as parent, of_one.run(name, kind="method", parent=parent.id) as run:
            runs[name] = run.id
    tags = of_one.client.get_experiment(of_one.experiment_id).tags
    rule = json.loads(tags["mlflow.sharedViewState.p-2"])["searchFilter"]
    assert [run.info.run_id for run in of_one.client.search_runs([of_one.experiment_id], rule)] == [runs["p-2"]]


def test_a_model_of_ours_comes_back_with_the_same_scores(tracker: Tracker) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(X, np.arange(60) % 3, eval_set=(X, np.arange(60) % 3))
    with tracker.run("model", kind="method") as run:
        run.model(model, X[:5], "digits-ours")
    import mlflow

    (found,) = [m for m in mlflow.search_logged_models([tracker.experiment_id], output_format="list")
                if m.source_run_id == run.id]  # fmt: skip
    loaded = mlflow.sklearn.load_model(found.model_uri)
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.fixture(scope="module")
def on_a_table(tracker: Tracker) -> tuple[Any, Any, Any]:
    """A model of named columns as MLflow loads it, some whole numbers as its input, and the answers to them."""
    import mlflow
    import pandas

    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.integers(2, 100, size=(60, 2)), columns=["height", "age"], dtype="float32")
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(table, table["height"] > table["age"])
    with tracker.run("table", kind="method") as run:
        loaded = mlflow.pyfunc.load_model(run.model(model, table[:5], "table"))
    return loaded, table, model.predict(table)


@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "uint8", "Float64"])
def test_a_loaded_model_takes_columns_of_any_type_within_float64(on_a_table: tuple[Any, Any, Any], kind: str) -> None:
    loaded, table, right = on_a_table
    assert np.array_equal(loaded.predict(table.astype(kind)), right)


def test_a_loaded_model_finds_its_columns_by_name(on_a_table: tuple[Any, Any, Any]) -> None:
    loaded, table, right = on_a_table
    wider = table.astype("float64")[["age", "height"]].assign(name="x")
    assert np.array_equal(loaded.predict(wider), right)


def test_a_loaded_model_without_names_takes_float64(tracker: Tracker) -> None:
    import mlflow

    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(X, X[:, 0] > 0)
    with tracker.run("array", kind="method") as run:
        source = run.model(model, X[:5], "array")
    loaded = mlflow.pyfunc.load_model(source)
    assert np.array_equal(loaded.predict(X.astype(np.float64)), model.predict(X))
    wanted = Path(mlflow.pyfunc.get_model_dependencies(source)).read_text().split()
    assert f"numpy=={np.__version__}" in wanted
    assert {line.partition("==")[0] for line in wanted if "==" in line} == set(client.NEEDED)


ELSEWHERE = """
import sys, zipfile
model, answers, home, project = sys.argv[1:]
sys.path[:] = [home, *(path for path in sys.path if path != project)]
import mlflow, numpy, ldsvm
assert ldsvm.__file__.startswith(home), ldsvm.__file__
X, right = numpy.load(answers).values()
assert numpy.array_equal(mlflow.pyfunc.load_model(model).predict(X), right)
"""


def test_a_logged_model_predicts_the_same_where_the_project_is_not(tracker: Tracker, tmp_path: Path) -> None:
    # to unpack a wheel is to install it; the versions of what it needs are in the test above
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(X, X[:, 0] > 0)
    path = [*sys.path]
    with tracker.run("alone", kind="method") as run:
        folder = client.download(run.model(model, X[:5], "alone"), str(tmp_path / "model"))
    assert sys.path == path  # MLflow loads a model once when it is logged
    (own,) = [line for line in (folder / "requirements.txt").read_text().split() if line.endswith(".whl")]
    with ZipFile(folder / own) as wheel:
        wheel.extractall(tmp_path / "home")
    np.savez(tmp_path / "answers.npz", X, model.predict(X))
    places = [folder, tmp_path / "answers.npz", tmp_path / "home", Path(client.__file__).parents[2]]
    command = [sys.executable, "-I", "-c", ELSEWHERE, *map(str, places)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_telemetry_is_off(tracker: Tracker) -> None:
    assert tracker.client
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_a_run_has_the_metrics_of_the_system_while_it_is_open(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.01")

    def names(run_id: str) -> set[str]:
        return {key for key in tracker.client.get_run(run_id).data.metrics if key.startswith("system/")}

    with tracker.run("watched", kind="problem") as run:
        deadline = time.monotonic() + 60
        while not names(run.id) and time.monotonic() < deadline:
            time.sleep(0.01)
    found = names(run.id)
    assert {"system/cpu_utilization_percentage", "system/system_memory_usage_megabytes"} <= found
    assert status(tracker, run.id) == "FINISHED"
    assert "system metrics" not in {thread.name for thread in threading.enumerate()}
    with tracker.run("of before", kind="method", started=time.time()) as run:
        time.sleep(0.1)
    assert not names(run.id)
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    with tracker.run("off", kind="problem") as run:
        time.sleep(0.1)
    assert not names(run.id)


def test_a_fault_of_the_store_ends_the_sampling_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.01")
    calls: list[int] = []

    def log(values: Mapping[str, float], step: int) -> None:
        calls.append(step)
        raise TrackingFailed("the store is away")

    with system_metrics(log):
        deadline = time.monotonic() + 60
        while not calls and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
    assert calls == [0]
