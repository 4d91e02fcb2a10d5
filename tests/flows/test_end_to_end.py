"""A tiny experiment through the real Prefect and the real MLflow: well, with a method that fails, and interrupted."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.__main__ import main
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.tracking import client

ROOT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).with_name("tiny.yaml")
LONG = TINY.with_name("long.yaml")
pytestmark = pytest.mark.server


@dataclass
class Ran:
    """One call of the command line and the folder it worked in."""

    done: subprocess.CompletedProcess[str]
    place: Path
    config: Config


@contextmanager
def started(file: Path, place: Path, *overrides: str, prefect: Any = None) -> Iterator[subprocess.Popen[str]]:
    """Begin an experiment in a session of its own, as a terminal would; its processes carry the folder as a mark.

    prefect: the server that it uses; by default it starts one, as for most users.
    """
    (place / "elsewhere").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LDSVM_TEST": str(place)}
    environment.pop("PREFECT_API_URL", None)
    environment |= prefect.variables if prefect else {}
    with subprocess.Popen(
        [sys.executable, "-m", "flows", "pipeline", str(file), *paths(place), *overrides],
        cwd=place / "elsewhere", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()  # a test failed half-way, or it has ended


def paths(place: Path) -> list[str]:
    return [f"paths.runs={place / 'runs'}", f"paths.cache={place / 'cache'}"]


def statuses(place: Path) -> list[tuple[str, str, str]]:
    """Kind, name and status of every run in the store, oldest first, read without MLflow."""
    with sqlite3.connect(place / "runs" / "mlflow.db") as store:
        return store.execute(
            "select t.value, r.name, r.status from runs r join tags t on t.run_uuid = r.run_uuid"
            " where t.key = 'ldsvm.kind' order by r.start_time"
        ).fetchall()


def by_pipeline(place: Path) -> list[list[tuple[str, str, str]]]:
    """Kind, name and status of the runs of each pipeline, the oldest first."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    with sqlite3.connect(place / "runs" / "mlflow.db") as store:
        for pipeline, *run in store.execute(
            "select p.value, t.value, r.name, r.status from runs r join tags t on t.run_uuid = r.run_uuid"
            " join tags p on p.run_uuid = r.run_uuid where t.key = 'ldsvm.kind' and p.key = 'ldsvm.pipeline'"
            " order by r.start_time"
        ):
            found.setdefault(pipeline, []).append((run[0], run[1], run[2]))
    return list(found.values())


@pytest.fixture(scope="module")
def first(prefect: Any, make_tables: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The first of three that start together in a new folder.

    Two are the same experiment, each of which makes Prefect's database too, and one is of another seed, in this
    process.
    """
    before, place = sorted(p.name for p in ROOT.iterdir()), tmp_path_factory.mktemp("tiny")
    with started(TINY, place) as one, started(TINY, place) as same, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_make_tables", make_tables)
        other = prefect.call("pipeline", str(TINY), *paths(place), "seed=1")
        ends = [process.communicate(timeout=300) for process in (one, same)]
    assert [one.returncode, same.returncode, other] == [0, 0, 0], ends
    assert sorted(p.name for p in ROOT.iterdir()) == before
    done = subprocess.CompletedProcess(one.args, one.returncode, *ends[0])
    return Ran(done, place, load_config(TINY, paths(place), root=ROOT))


@pytest.mark.timeout(400)
def test_three_that_start_together_in_a_new_folder_share_its_stores(first: Ran) -> None:
    assert len(list((first.place / "runs" / "logs").glob("*-prefect-server.log"))) == 2
    found = by_pipeline(first.place)[:3]
    assert {status for runs in found for _, _, status in runs} == {"FINISHED"}
    counts = list(map(len, found))
    # a problem, two methods, and three trials, which of the two that are the same one or the other may have found
    assert len(counts) == 3 and max(counts) == 6 and 15 <= sum(counts) <= 18


@pytest.mark.timeout(400)
def test_it_ends_with_table_report_and_the_command_for_the_ui(first: Ran) -> None:
    out = first.done.stdout
    assert first.done.returncode == 0, first.done.stderr
    for part in (
        "odd or even",
        "error %",
        "basis functions",
        "train s",
        "predict",  # its unit may stand on the next line
        "µs/sample",
        "report.html",
        "ui RUNS=",
    ):
        assert part in out
    assert "Traceback" not in first.done.stderr
    assert "2 trials, test error" in first.done.stderr


@pytest.mark.timeout(400)
def test_runs_are_nested_and_finished_and_named_by_what_matters(first: Ran) -> None:
    for runs in by_pipeline(first.place)[:3]:
        if len(runs) == 6:  # it found no trials of another one
            assert sorted(kind for kind, _, _ in runs) == ["method", "method", "problem", "trial", "trial", "trial"]
        names = [name for kind, name, _ in runs if kind == "method"]
        assert names[0].startswith("ours rbf M=20 L=1 · ") and names[1].startswith("NN M=200 · ")
    with sqlite3.connect(first.place / "runs" / "mlflow.db") as store:
        notes = store.execute(
            "select n.value from tags n join tags k on k.run_uuid = n.run_uuid where n.key = 'mlflow.note.content'"
            " and k.key = 'ldsvm.kind' and k.value = 'problem'"
        ).fetchall()
    assert all("| method | error % |" in text for (text,) in notes)
    assert notes


@pytest.mark.timeout(400)
def test_report_model_and_results_are_where_they_belong_and_nothing_else(first: Ran) -> None:
    page = (first.config.results / "report.html").read_text("utf-8")
    for part in ("Tiny digits", "digest", "scikit-learn", "data:image/png;base64,", "How it was measured", "licence"):
        assert part in page
    assert str(first.place) not in page
    assert sorted(p.name for p in first.place.iterdir()) == ["cache", "elsewhere", "runs"]
    assert list((first.place / "elsewhere").iterdir()) == []
    assert not [p for p in first.place.rglob(".*") if "prefect" not in p.parts and p.name != ".lock"]
    assert list((first.place / "runs" / "artifacts").rglob("MLmodel"))
    assert list((first.place / "runs" / "artifacts").rglob("splits/0/split.npz"))
    for name in ("ours", "nn"):
        files = (first.place / "runs" / "results" / "methods").glob(f"odd_or_even-{name}-*/result.json")
        scores = [json.loads(file.read_text("utf-8"))["score"] for file in files]
        assert {score["n_test"] for score in scores if score} == {150}


@pytest.mark.timeout(400)
def test_a_second_run_in_which_a_method_fails_says_so_and_finishes_the_rest(
    first: Ran, command: Callable[..., tuple[int, str, str]]
) -> None:
    given = [
        *paths(first.place),
        "methods.NN.params.n_neighbors=1000",
        "methods.ours.executor={kind: serial, rows: 80}",
    ]
    code, out, err = command("pipeline", str(TINY), *given)
    assert code == 1
    last = err.strip().splitlines()[-1]
    assert last.startswith("1 failed; the first: NN on odd or even: ValueError: Expected n_neighbors")
    assert "(log: " in last
    assert "Traceback" not in err
    assert "failed" in out
    *_, runs = by_pipeline(first.place)
    assert ("problem", "FAILED") in {(kind, status) for kind, _, status in runs}
    assert [status for kind, _, status in runs if kind == "method"] == ["FINISHED", "FAILED"]
    assert len(list((first.place / "cache").glob("[!.]*"))) == 2  # one for each seed
    config = load_config(TINY, given, root=ROOT)
    assert "Expected n_neighbors" in (config.results / "report.html").read_text("utf-8")
    _the_store_has_who_fitted_over_blocks_of_rows_and_what_that_took(first.place)


def _the_store_has_who_fitted_over_blocks_of_rows_and_what_that_took(place: Path) -> None:
    with sqlite3.connect(place / "runs" / "mlflow.db") as store:
        params = store.execute("select key, value from params where run_uuid in"
                               " (select run_uuid from params where key = 'executor')")  # fmt: skip
        said = dict(params.fetchall())
        keys = store.execute("select distinct m.key from latest_metrics m join params p on p.run_uuid = m.run_uuid"
                             " where p.key = 'executor'").fetchall()  # fmt: skip
    assert {key: said[key] for key in ("executor", "workers", "blocks", "rows_per_block")} == {
        "executor": "serial", "workers": "1", "blocks": "3", "rows_per_block": "80",
    }  # fmt: skip
    assert {("workers/calls",), ("iteration/nested",), ("straggler_ratio",), ("bytes_per_iteration",)} <= set(keys)


def children(place: Path) -> list[str]:
    """Command line of every process that carries our mark, whoever its parent is."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"LDSVM_TEST={place}\0".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text("utf-8").replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["by a terminal", "to the process alone"])
def test_ctrl_c_in_the_middle_leaves_no_process_and_no_open_run(
    send: Callable[[int, int], None], prefect: Any, tmp_path: Path
) -> None:
    prefect.fill(tmp_path / "runs")
    own = send is os.killpg  # its server, which is in no group of a terminal, has to end too
    with started(LONG, tmp_path, prefect=None if own else prefect) as process:
        end = time.monotonic() + 200
        while not _computes(tmp_path):
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.2)
        send(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err.splitlines()[-1].startswith("stopped")) == (130, "", True)
    assert "Traceback" not in err
    assert children(tmp_path) == []
    assert {status for _, _, status in statuses(tmp_path)} == {"KILLED"}


def _computes(place: Path) -> bool:
    """Whether a run is open and the process of the fits is there."""
    try:
        running = any(status == "RUNNING" for _, _, status in statuses(place))
        return running and any("spawn_main" in command for command in children(place))
    except sqlite3.OperationalError:  # its tables are still being made
        return False


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:9/api"])
def test_an_address_where_no_server_answers_is_one_sentence_at_once(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", address)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command line sets its own
    begin = time.monotonic()
    assert main(["pipeline", str(TINY), *paths(tmp_path)]) == 2
    assert time.monotonic() - begin < 60
    said = capsys.readouterr()
    assert said.err.startswith(f'PREFECT_API_URL is "{address}", where no Prefect server answers (')
    assert (said.out, said.err.count("\n"), list(tmp_path.iterdir())) == ("", 1, [])
