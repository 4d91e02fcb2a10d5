"""The tracking store, with a real MLflow in a temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ldsvm import LDSVMClassifier
from ldsvm.experiment import tracking
from ldsvm.experiment.tracking import Tracker

# MLflow 3.17 itself uses a loading strategy that its database library has deprecated, and warns about its own types.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
]


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Tracker:
    found = Tracker(tmp_path_factory.mktemp("store"), "tests")
    assert found.experiment_id
    return found


def status(tracker: Tracker, run_id: str) -> str:
    return str(tracker.client.get_run(run_id).info.status)


def test_the_store_is_a_file_in_the_folder(tracker: Tracker) -> None:
    assert (tracker.runs / "mlflow.db").is_file()
    assert tracking.store_uri(Path("runs")) == f"sqlite:///{Path.cwd() / 'runs' / 'mlflow.db'}"


def test_a_run_that_ends_well_is_finished_and_nested(tracker: Tracker) -> None:
    with tracker.run("parent", kind="problem") as parent, tracker.run("child", kind="method", parent=parent.id) as run:
        run.log({"C": 1.0}, {"error_percent": 2.5, "n_basis": None, "train_s": float("nan")})
        run.history([{"iteration": 0, "nested": 3.0}, {"iteration": 1, "nested": 2.0, "valid_error": None}])
        run.describe(name="child · 2.5 %", note="| a |")
    data = tracker.client.get_run(run.id).data
    assert status(tracker, run.id) == status(tracker, parent.id) == "FINISHED"
    assert data.params == {"C": "1.0"}
    assert data.metrics == {"error_percent": 2.5, "iteration_nested": 2.0}
    assert data.tags["mlflow.parentRunId"] == parent.id
    assert data.tags["mlflow.note.content"] == "| a |"
    assert [m.value for m in tracker.client.get_metric_history(run.id, "iteration_nested")] == [3.0, 2.0]


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
        tracker.client.set_tag(dead.id, tracking.PID, done.stdout.decode().strip())
        assert tracker.sweep() == 1
        assert status(tracker, dead.id) == "KILLED"
        assert status(tracker, alive.id) == "RUNNING"


def test_every_experiment_of_the_store_is_swept(tracker: Tracker) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with Tracker(tracker.runs, "another").run("dead", kind="method") as dead:
        tracker.client.set_tag(dead.id, tracking.PID, done.stdout.decode().strip())
        assert tracking.sweep(tracker.runs) == 1
        assert status(tracker, dead.id) == "KILLED"


def test_the_link_opens_the_table_of_methods_sorted_by_error(tracker: Tracker) -> None:
    (line,) = [line for line in tracking.links(tracker.runs, 5001) if line.startswith("tests: ")]
    assert line.startswith(f"tests: http://127.0.0.1:5001/#/experiments/{tracker.experiment_id}/runs?")
    assert "workflowType=machine_learning" in line
    assert "orderByKey=metrics.%60error_percent%60" in line


def test_a_model_of_ours_comes_back_with_the_same_scores(tracker: Tracker) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(X, np.arange(60) % 3, eval_set=(X, np.arange(60) % 3))
    with tracker.run("model", kind="method") as run:
        run.model(model, X[:5])
    import mlflow

    (found,) = mlflow.search_logged_models([tracker.experiment_id], output_format="list")
    loaded = mlflow.sklearn.load_model(found.model_uri)
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


def test_telemetry_is_off(tracker: Tracker) -> None:
    assert tracker.client
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
