"""The flow on real servers and stores: what a second run does again, and what a fault on the way leaves behind."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ldsvm.experiment.compare import record
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.tracking.client import Tracker, TrackingFailed

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests" / "flows" / "tiny.yaml"
pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(300),
    # Prefect and MLflow use what their own dependencies have deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
]


@pytest.fixture
def run(in_prefect: None, undrawn: None, tmp_path: Path) -> Callable[..., list[tuple[str, str]]]:
    """Run the pipeline and return names and states of its tasks."""

    def call(*overrides: str) -> list[tuple[str, str]]:
        from flows.pipeline import pipeline

        state: Any = pipeline(str(TINY), given(tmp_path, *overrides), return_state=True)
        error = state.result(raise_on_failure=False)
        if isinstance(error, BaseException):
            raise error
        return tasks(state.state_details.flow_run_id)

    return call


def tasks(flow_run_id: UUID) -> list[tuple[str, str]]:
    """Names and states once Prefect's server, which stores events of tasks a moment later, knows that of the last."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterFlowRunId

    only = TaskRunFilter(flow_run_id=TaskRunFilterFlowRunId(any_=[flow_run_id]))
    end = time.monotonic() + 200
    with get_client(sync_client=True) as client:
        while True:
            found = client.read_task_runs(task_run_filter=only)
            over = [one for one in found if one.state is not None and one.state.is_final()]
            if len(over) == len(found) and any(one.name == "track report" for one in over):
                return [(str(one.name), str(one.state_name)) for one in found]
            assert time.monotonic() < end, found
            time.sleep(0.3)  # each question costs the server some


def given(place: Path, *overrides: str) -> list[str]:
    return [f"paths.runs={place / 'runs'}", f"paths.cache={place / 'cache'}", "n_jobs=1", *overrides]


def config(place: Path, *overrides: str) -> Config:
    return load_config(TINY, given(place, *overrides), root=ROOT)


def rows(place: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(place / "runs" / "mlflow.db")) as store:
        return store.execute(query).fetchall()


def kinds(place: Path) -> dict[str, int]:
    return dict(rows(place, "select value, count(*) from tags where key = 'ldsvm.kind' group by value"))


def statuses(place: Path) -> set[str]:
    return {status for (status,) in rows(place, "select status from runs")}


@pytest.mark.parametrize(("executor", "mode"), [
    ("{kind: ray}", "token"), ("{kind: ray, address: auto}", None), ("{kind: threads}", None), ("null", None),
])  # fmt: skip
def test_the_process_that_fits_knows_how_a_ray_that_is_started_here_is_joined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, executor: str, mode: str | None
) -> None:
    from flows._runtime import workers

    monkeypatch.setenv("RAY_AUTH_MODE", "so that it is as it was afterwards")
    monkeypatch.delenv("RAY_AUTH_MODE")
    with workers(config(tmp_path, f"methods.ours.executor={executor}")):
        assert os.environ.get("RAY_AUTH_MODE") == mode


def test_only_what_depends_on_a_change_is_done_again(run: Callable[..., Any], tmp_path: Path) -> None:
    ours, NN = "odd or even: ours", "odd or even: NN"
    states = dict(run())
    assert (states[ours], states[NN]) == ("Completed", "Completed")
    assert kinds(tmp_path) == {"problem": 1, "method": 2, "trial": 3}
    _prefects_pages_show_progress_tables_and_the_report()
    states = dict(run())
    assert (states[ours], states[NN]) == ("Cached", "Cached")
    assert kinds(tmp_path) == {"problem": 2, "method": 4, "trial": 3}  # the trials are where they were
    again = {value for (value,) in rows(tmp_path, "select value from tags where key = 'ldsvm.found_again'")}
    first = rows(tmp_path, "select r.run_uuid from runs r join tags t on t.run_uuid = r.run_uuid where t.key ="
                 " 'ldsvm.kind' and t.value = 'method' order by r.end_time limit 2")  # fmt: skip
    assert again == {number for (number,) in first}
    states = dict(run("methods.NN.params.n_neighbors=3", "title=Other"))
    assert (states[ours], states[NN]) == ("Cached", "Completed")
    assert kinds(tmp_path) == {"problem": 3, "method": 6, "trial": 4}
    states = dict(run("refresh=true"))
    assert (states[ours], states[NN]) == ("Completed", "Completed")
    assert kinds(tmp_path) == {"problem": 4, "method": 8, "trial": 7}
    assert statuses(tmp_path) == {"FINISHED"}


def _prefects_pages_show_progress_tables_and_the_report() -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = {one.key: one for one in client.read_latest_artifacts() if (one.key or "").startswith("tiny-")}
    assert found["tiny-odd-or-even-ours"].type == "progress" and found["tiny-odd-or-even-ours"].data == 100.0
    assert "2 trials, test error" in str(found["tiny-odd-or-even-ours"].description)
    assert "| method | error % |" in str(found["tiny-odd-or-even-report"].data)
    assert all(name in str(found["tiny-odd-or-even-results"].data) for name in ("ours", "NN", "predict"))


@contextmanager
def time_is_over_after(journal: Path, trials: int) -> Iterator[None]:
    """Ends the time of the task that runs, by the signal of its timer, once so many trials are in the journal.

    So the test does not depend on how many trials a busy machine does in how many seconds.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            begun = signal.getsignal(signal.SIGALRM) != signal.SIG_DFL
            if begun and journal.exists() and len(journal.read_bytes().splitlines()) >= trials:
                os.kill(os.getpid(), signal.SIGALRM)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


# Prefect's timer is an alarm only where nothing else, such as pytest's limit of time, has one.
# The end of the time may come between the opening of a file and the block that closes it.
@pytest.mark.timeout(300, method="thread")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_method_over_its_time_is_a_row_with_that_reason_and_the_next_one_runs(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    widths = [0.1 + i / 10000 for i in range(2000)]
    slow = ["methods.ours.params={max_iter: 100}", f"methods.ours.search.gamma={widths}", "limits.task_s=250"]
    journal = config(tmp_path).journal
    assert journal is not None
    with time_is_over_after(journal, trials=2):
        states = dict(run(*slow))
    assert (states["odd or even: ours"], states["odd or even: NN"]) == ("TimedOut", "Completed")
    page = (config(tmp_path, *slow).results / "report.html").read_text("utf-8")
    assert "ours: stopped: time limit of 250 s for all trials (limits.task_s)" in page
    assert statuses(tmp_path) == {"FINISHED"}
    assert len(journal.read_bytes().splitlines()) >= 2  # what was finished is kept


def test_a_store_that_is_lost_on_the_way_costs_no_result_and_gets_them_later(
    run: Callable[..., Any], command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    settle = record.settle

    def lose(*arguments: Any, **more: Any) -> None:
        settle(*arguments, **more)
        shutil.rmtree(tmp_path / "runs" / "artifacts", ignore_errors=True)
        for file in (tmp_path / "runs").glob("mlflow.db*"):
            file.unlink()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "settle", lose)
        with pytest.raises(TrackingFailed, match=r"mlflow\.db.*the report is complete, run again to track it"):
            run()
    assert (config(tmp_path).results / "report.html").is_file()
    # In a folder that was moved: MLflow in this process still has the store that is lost, which another had not.
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "runs").rename(moved / "runs")
    code, _, err = command("pipeline", str(TINY), *given(moved))
    assert (code, err.count("unchanged since an earlier run")) == (0, 2)
    assert kinds(moved) == {"problem": 1, "method": 2, "trial": 3}
    assert statuses(moved) == {"FINISHED"}


def test_a_store_that_is_locked_for_a_while_is_waited_for(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = record.settle
    locked = threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(tmp_path / "runs" / "mlflow.db", timeout=30)) as store:
            store.execute("begin exclusive")
            locked.set()
            time.sleep(3)
            store.rollback()

    def lock(*arguments: Any, **more: Any) -> None:
        settle(*arguments, **more)
        if not locked.is_set():
            threading.Thread(target=hold).start()
            locked.wait(120)

    monkeypatch.setattr(record, "settle", lock)
    run()
    assert locked.is_set()
    assert kinds(tmp_path) == {"problem": 1, "method": 2, "trial": 3}
    assert statuses(tmp_path) == {"FINISHED"}


def test_ctrl_c_keeps_what_is_done_and_says_how_far_it_was(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = record.settle

    def stop(wanted: Config, prepared: Any, problem: Any, name: str, **more: Any) -> None:
        if name == "NN":
            raise KeyboardInterrupt
        settle(wanted, prepared, problem, name, **more)

    monkeypatch.setattr(record, "settle", stop)
    with pytest.raises(KeyboardInterrupt):
        run()
    ((name, status),) = rows(tmp_path, "select r.name, r.status from runs r join tags t on t.run_uuid = r.run_uuid"
                             " where t.key = 'ldsvm.kind' and t.value = 'problem'")  # fmt: skip
    assert name.startswith("odd or even · stopped after 1 of 2 · ours ") and status == "KILLED"
    assert "RUNNING" not in statuses(tmp_path)
    monkeypatch.undo()
    assert dict(run())["odd or even: ours"] == "Cached"


def test_a_tracker_of_a_junk_file_ends_the_flow_with_a_sentence(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mlflow.db").write_text("no database " * 100)
    with pytest.raises(TrackingFailed, match=r"mlflow\.db"):
        run()
    with pytest.raises(TrackingFailed, match=r"mlflow\.db"):
        Tracker(tmp_path / "runs", "tiny").experiment_id  # noqa: B018
