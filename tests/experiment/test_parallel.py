"""Jobs on a real Ray: the same trials as without it, and what happens when processes die, hang or are interrupted."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from ldsvm.blocks.connection import ClusterFailed, interrupted
from ldsvm.blocks.hosts import too_small
from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.memory_shares import shares
from ldsvm.experiment.search.parallel import Cluster
from ldsvm.experiment.search.search import run_search
from ldsvm.experiment.search.trial import Data, Job, Trial, run_job
from ldsvm.methods import memory_limit
from ldsvm.methods.memory_limit import MIB, MemoryLimit
from tests.experiment.conftest import living, until

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

ROOT = Path(__file__).resolve().parents[2]
GRID = MethodConfig(estimator="linear_svm", search={"C": [float(c) for c in range(1, 9)]})
SVM = MethodConfig(estimator="gaussian_svm", search={"gamma": [0.1, 1.0], "C": [1.0, 10.0]})
OURS = MethodConfig(estimator="ldsvm", params={"n_basis": 10}, search={"gamma": [0.1, 1.0], "C": [10.0, 1.0]})


def job(order: int, points: int = 1) -> Job:
    return Job(GRID, tuple({"C": float(i)} for i in range(points)), tuple(range(order, order + points)), 0, 1)


def done(job: Job) -> list[Trial]:
    return [Trial(dict(p), i, valid_error=0.5) for p, i in zip(job.points, job.orders, strict=True)]


def waits(job: Job, seconds: float) -> list[Trial]:
    time.sleep(seconds)
    return done(job)


def marks(job: Job, folder: Path, seconds: float) -> list[Trial]:
    """Leave a file for every point that is begun."""
    for order in job.orders:
        (folder / f"{order}-{uuid4().hex}").touch()
    return waits(job, seconds)


def misbehaves(job: Job, folder: Path) -> list[Trial]:
    """Die once, die always, raise, or behave, by the job's place."""
    place = job.orders[0]
    first = not (folder / "died").exists()
    if place == 1 or (place == 0 and first):
        (folder / ("died" if place == 0 else f"died-{uuid4().hex}")).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if place == 2:
        raise FileNotFoundError("no such folder\non this machine")
    return done(job)


def hangs(job: Job, folder: Path) -> list[Trial]:
    """Answer at once in place 0, and only tell its process elsewhere."""
    if job.orders[0] > 0:
        (folder / "pid").write_text(str(os.getpid()))
        time.sleep(60)
    return done(job)


def greedy(job: Job, folder: Path) -> list[Trial]:
    """Take 500 MiB in place 0, take them where nobody looks in place 1, and behave elsewhere."""
    (folder / f"{job.orders[0]}-{uuid4().hex}").touch()
    if job.orders[0] == 0:
        np.ones(500 * 2**17)
    if job.orders[0] == 1:
        malloc = ctypes.CDLL(None).malloc
        malloc.restype = ctypes.c_void_p
        ctypes.memset(ctypes.c_void_p(malloc(500 * 2**20)), 1, 1)
    return done(job)


def allowance(job: Job) -> list[Trial]:
    return [Trial({"bytes": memory_limit.available()}, job.orders[0])]


def threads(job: Job) -> list[Trial]:
    from threadpoolctl import threadpool_info

    return [Trial({}, job.orders[0], history=[{"threads": [pool["num_threads"] for pool in threadpool_info()]}])]


def drive(folder: Path, address: str | None, workers: int, seconds: float) -> list[Trial]:
    """Search with a journal and marks in a folder; for the processes below."""
    with Cluster(workers, address, 1, 60.0) as cluster:
        return search(cluster, folder, seconds)


def search(cluster: Cluster, folder: Path, seconds: float) -> list[Trial]:
    run = partial(marks, folder=folder, seconds=seconds)
    return run_search(GRID, run, seed=0, n_jobs=1, executor=cluster.map, journal=Journal(folder / "journal" / "a"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2, None, 1, 60.0) as found:
        list(found.map(done, [job(0)]))  # Ray starts with the first job: before a test changes what it starts with
        yield found


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `drive` in a session of its own, as a terminal does."""
    started: list[subprocess.Popen[str]] = []
    short = tempfile.mkdtemp(prefix="t")  # where Ray may leave its files when it is killed

    def start(address: str | None = None, workers: int = 2, seconds: float = 1.0) -> subprocess.Popen[str]:
        # Ray's processes look for modules in the folder that the driver is in.
        code = (
            f"import pathlib, {__name__} as module\n"
            f"module.drive(pathlib.Path({str(tmp_path)!r}), {address!r}, {workers}, {seconds})"
        )
        command = [sys.executable, "-c", code]
        env = {**os.environ, "TMPDIR": short}
        process = subprocess.Popen(
            command, cwd=ROOT, start_new_session=True, env=env, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
    shutil.rmtree(short, ignore_errors=True)


def lines(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def begun(folder: Path) -> list[int]:
    return sorted(int(mark.name.partition("-")[0]) for mark in folder.glob("*-*"))


def timeless(line: dict[str, Any]) -> str:
    """A journal's line without what a clock or the system says, to compare."""
    history = [{k: v for k, v in row.items() if "second" not in k} for row in line["trial"]["history"]]
    measured = {"history": history, "train_s": 0, "seconds": 0, "peak_mib": 0}
    return json.dumps({**line, "trial": {**line["trial"], **measured}})


@pytest.mark.parametrize("method", [SVM, OURS], ids=["points", "paths"])
def test_processes_journal_what_this_one_does(cluster: Cluster, tmp_path: Path, method: MethodConfig) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    run = partial(run_job, data=Data(X[:40], y[:40], X[40:], y[40:]))
    here, there = tmp_path / "here", tmp_path / "there"
    run_search(method, run, seed=0, n_jobs=1, journal=Journal(here), place="a")
    run_search(method, run, seed=0, n_jobs=1, journal=Journal(there), place="a", executor=cluster.map)
    assert len(lines(here)) == 4 and all(line["trial"]["failure"] is None for line in lines(here))
    assert {timeless(line) for line in lines(here)} == {timeless(line) for line in lines(there)}


def test_a_killed_process_is_replaced_and_what_does_not_end_well_is_a_row(cluster: Cluster, tmp_path: Path) -> None:
    trials = [t for found in cluster.map(partial(misbehaves, folder=tmp_path), [*map(job, range(4))]) for t in found]
    assert {trial.order: trial.failure for trial in trials} == {
        0: None,
        1: Failure(Kind.ENDED, "stopped: its process ended 3 times"),
        2: Failure(Kind.ACCIDENT, "FileNotFoundError: no such folder"),
        3: None,
    }
    assert len(list(tmp_path.glob("died-*"))) == 3


def test_memory_beyond_the_limit_is_a_row_at_once_and_tried_again_by_the_next_search(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_limit", MemoryLimit(100))
    monkeypatch.setattr(cluster, "_shares", {})
    run, journal = partial(greedy, folder=tmp_path), tmp_path / "journal" / "a"

    def find() -> list[Failure | None]:
        trials = run_search(GRID, run, seed=0, n_jobs=1, executor=cluster.map, journal=Journal(journal))
        return [trial.failure for trial in trials]

    short = Failure(Kind.MEMORY_LIMIT, "stopped: memory limit of 100 MiB")
    words = "stopped: its process ended with segmentation fault under a memory limit of 100 MiB"
    crashed = Failure(Kind.ENDED, words)
    assert find() == [short, crashed] + [None] * 6
    assert begun(tmp_path) == list(range(8))  # the crash was not tried three times
    assert find() == [short, crashed] + [None] * 6
    assert begun(tmp_path) == sorted([0, 1, *range(8)])


def test_without_a_limit_the_jobs_at_a_time_share_what_the_machine_has(cluster: Cluster) -> None:
    import ray

    ((trial,),) = cluster.map(allowance, [job(0)])
    share = ray.cluster_resources()["memory"] / 2
    assert [limit.mib for limit in cluster._shares.values()] == [share // memory_limit.MIB]
    assert 0 < trial.params["bytes"] <= share  # less where the machine has less left meanwhile


def test_time_counts_from_when_a_job_runs_and_for_each_of_its_points(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_fit_s", 1.5)
    monkeypatch.setattr(cluster, "_workers", 6)  # more than run at once: the last wait longer than their time
    work = [*map(job, range(5)), job(5, points=2)]
    assert [t.failure for found in cluster.map(partial(waits, seconds=0.8), work) for t in found] == [None] * 7
    start = time.monotonic()
    (both, alone) = sorted(cluster.map(partial(waits, seconds=2.2), [job(0), job(1, points=2)]), key=len, reverse=True)
    assert [t.failure for t in both] == [None, None]
    over = Failure(Kind.TIME_LIMIT, "stopped: time limit of 1.5 s")
    assert [(t.failure, t.order, t.params) for t in alone] == [(over, 0, {"C": 0.0})]
    (late,) = cluster.map(partial(waits, seconds=60), [job(3, points=2)])
    over = Failure(Kind.TIME_LIMIT, "stopped: time limit of 3 s")
    assert [(t.failure, t.order) for t in late] == [(over, 3), (over, 4)]
    assert time.monotonic() - start < 20


def test_a_caller_that_stops_early_leaves_nothing_running(cluster: Cluster, tmp_path: Path) -> None:
    results = cluster.map(partial(hangs, folder=tmp_path), [job(0), job(1)])
    assert next(results) == done(job(0))
    assert until(lambda: (tmp_path / "pid").exists(), 60)
    results.close()  # type: ignore[attr-defined]
    pid = (tmp_path / "pid").read_text()
    assert until(lambda: not Path("/proc", pid).exists(), 60)
    assert list(cluster.map(done, [job(2)])) == [done(job(2))]


def test_threads_of_a_job_are_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    ((trial,),) = cluster.map(threads, [job(0)])
    assert set(trial.history[0]["threads"]) == {1}


def test_two_searches_share_a_journal_and_the_cluster_that_one_of_them_joined(
    cluster: Cluster, driver: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    import ray

    journal = tmp_path / "journal" / "a"
    other = driver(address=ray.get_runtime_context().gcs_address, workers=1, seconds=0.5)
    assert until(lambda: len(lines(journal)) > 0, 200)
    trials = search(cluster, tmp_path, 0.5)
    assert other.wait(200) == 0
    assert len({line["key"] for line in lines(journal)}) == 8
    assert {line["trial"]["failure"] for line in lines(journal)} == {None}
    assert len(begun(tmp_path)) == len(lines(journal)) > 8  # what was not there yet, both did
    before = begun(tmp_path)
    assert search(cluster, tmp_path, 0.3) == trials
    assert begun(tmp_path) == before


def test_a_killed_search_goes_on_where_it_was(
    cluster: Cluster, driver: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    journal = tmp_path / "journal" / "a"
    process = driver()
    assert until(lambda: len(lines(journal)) >= 3, 200)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    known = [line["trial"]["order"] for line in lines(journal) if line["trial"]["failure"] is None]
    assert 3 <= len(known) == len(lines(journal)) < 8
    assert until(lambda: not living({process.pid}), 100), living({process.pid})
    trials = search(cluster, tmp_path, 0.0)
    assert [(t.order, t.params, t.failure) for t in trials] == [(i, {"C": i + 1.0}, None) for i in range(8)]
    assert set(begun(tmp_path)) == set(range(8))
    assert [begun(tmp_path).count(order) for order in known] == [1] * len(known)


def test_ctrl_c_ends_every_process_and_keeps_what_is_done(
    driver: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    journal = tmp_path / "journal" / "a"
    process = driver()
    assert until(lambda: len(lines(journal)) >= 2, 200)
    assert any("raylet" in name for name in living({process.pid}))
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=200)
    assert told.splitlines()[-1] == "KeyboardInterrupt"
    assert until(lambda: not living({process.pid}), 100), living({process.pid})
    kept = lines(journal)
    assert len(kept) < 8 and [line["trial"]["failure"] for line in kept] == [None] * len(kept)


def test_the_end_of_ray_is_told_and_not_taken_for_failed_jobs(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    from ray.exceptions import LocalRayletDiedError

    def dead(_: Any) -> None:
        raise LocalRayletDiedError

    list(cluster.map(done, [job(0)]))
    with monkeypatch.context() as patch:
        patch.setattr(ray, "get", dead)
        with pytest.raises(ClusterFailed, match=r"^Ray ended during the search;"):
            list(cluster.map(done, [job(0), job(1)]))
    assert list(cluster.map(done, [job(0)])) == [done(job(0))]


def test_without_jobs_nothing_starts() -> None:
    assert list(Cluster(2, "nobody.invalid:1", 1, 1.0).map(done, [])) == []


def test_a_second_cluster_in_one_process_is_refused(cluster: Cluster) -> None:
    list(cluster.map(done, [job(0)]))
    with pytest.raises(ClusterFailed, match="already in use in this process; allowed: one cluster at a time"):
        list(Cluster(1, None, 1, 1.0).map(done, [job(0)]))
    assert list(cluster.map(done, [job(0)])) == [done(job(0))]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ray://head:10001", "'ray://head:10001' is not the address of a Ray cluster; allowed: host:port of its head"),
        ("head", "'head' is not the address of a Ray cluster"),
        ("127.0.0.1:{closed}", r"Ray at 127\.0\.0\.1:\d+ cannot be joined: nothing answers there"),
        ("127.0.0.1:99999", "nothing answers there"),
    ],
)
def test_an_address_that_leads_nowhere_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, address: str, words: str
) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(ClusterFailed, match=words) as caught:
            list(Cluster(1, address.format(closed=held.getsockname()[1]), 1, 1.0).map(done, [job(0)]))
    assert "\n" not in str(caught.value)


def test_a_ray_that_does_not_start_is_one_sentence_and_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import ray

    def refuses(**options: Any) -> None:
        assert Path(options["_temp_dir"]).is_dir()
        folders.append(options["_temp_dir"])
        raise RuntimeError("no room\nfor so much")

    folders: list[str] = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray, "init", refuses)
    with pytest.raises(ClusterFailed, match=r"^Ray did not start \(RuntimeError: no room\)\.$"):
        list(Cluster(1, None, 1, 1.0).map(done, [job(0)]))
    assert len(folders) == 1 and not Path(folders[0]).exists()


def test_more_threads_than_any_machine_has_are_refused_and_not_waited_for() -> None:
    nodes = [{"Alive": True, "Resources": {"CPU": 4.0}}, {"Alive": False, "Resources": {"CPU": 64.0}}]
    assert too_small(4, nodes) is None
    assert too_small(5, nodes) == "5 threads per job, more than any machine of the cluster has; allowed: up to 4."


def test_each_machine_divides_its_memory_by_the_jobs_that_go_there() -> None:
    def node(name: str, threads: float, mib: float, alive: bool = True) -> dict[str, Any]:
        return {"NodeID": name, "Alive": alive, "Resources": {"CPU": threads, "memory": mib * MIB}}

    nodes = [node("a", 4, 1000), node("b", 32, 1000), node("c", 1, 1000), node("d", 4, 1000, alive=False)]
    silent = {"NodeID": "e", "Alive": True, "Resources": {"CPU": 4.0}}
    found = shares(10, 2, [*nodes, silent])
    assert found == {"a": MemoryLimit(500, 2), "b": MemoryLimit(100, 2)}  # "c" can run none


def test_an_interrupt_that_ray_has_made_something_else_of_is_one_again() -> None:
    def wait(cause: BaseException | None) -> None:
        raise SystemError("<cyfunction CoreWorker.wait> returned a result with an exception set") from cause

    with pytest.raises(KeyboardInterrupt), interrupted():
        wait(KeyboardInterrupt())
    with pytest.raises(SystemError), interrupted():
        wait(None)
