"""Fits in processes of a real Ray: the same bits as in threads, what moves, workers that are killed."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from ldsvm import RowBlocks
from ldsvm.blocks import BlockError, OnRay, Threads
from ldsvm.blocks.actors import Actors
from ldsvm.blocks.connection import ClusterFailed, Connection
from tests.blocks.conftest import cut, far, model
from tests.experiment.conftest import until

Data = tuple[np.ndarray, np.ndarray]
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed for this Python"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def _ray() -> Iterator[None]:
    connection = Connection(None, 4, 1)
    connection.open()
    yield
    connection.close()


@pytest.fixture
def teams(_ray: None, monkeypatch: pytest.MonkeyPatch) -> list[Actors]:
    """The teams that a test's fits have."""
    seen: list[Actors] = []
    plain = Actors.__init__

    def noting(self: Actors, *args: Any) -> None:
        plain(self, *args)
        seen.append(self)

    monkeypatch.setattr(Actors, "__init__", noting)
    return seen


def pids(team: Actors) -> list[int]:
    import ray

    return ray.get([host.__ray_call__.remote(lambda self: os.getpid()) for host in team._hosts])


LEARNED: dict[str, Any] = {"map": "adaptive_rbf", "center_steps": 20, "n_basis": 20, "z_follows": True}


@pytest.mark.parametrize("params", [{}, LEARNED], ids=["fixed", "learned"])
def test_processes_give_the_bits_of_threads_and_end(
    params: dict[str, Any], teams: list[Actors], train: Data, valid: Data
) -> None:
    rows, held, seen = cut(train, 300, 600), cut(valid, 200), set[int]()
    look = lambda info: seen.update(pids(teams[0]))  # noqa: E731
    found = model(**params).fit(rows, eval_set=held, executor=OnRay(2), callback=look)
    assert far(found, model(**params).fit(rows, eval_set=held, executor=Threads(2))) == 0.0
    assert len(teams[0]) == len(seen) == 2 and {info["lost"] for info in found.history_} == {0}
    assert sys.platform != "linux" or until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in seen), 100), seen


def test_what_moves_is_the_model_and_sums_whatever_the_rows(teams: list[Actors]) -> None:
    rng = np.random.default_rng(0)
    M, L, K, D = 20, 2, 3, 5
    moved = []
    for N in (300, 3_000):
        X = rng.normal(size=(N, D))
        y = np.argmax(X[:, :3] + 0.3 * rng.normal(size=(N, 3)), axis=1)
        model(n_basis=M, max_iter=2, calibration=None).fit(cut((X, y), N // 2), executor=OnRay(1))
        moved.append((teams[-1].traffic.calls, {m: table[0] for m, table in teams[-1].traffic.moved.items()}))
    words = 8 * 30  # a method's name, and what pickle says of arrays
    P = 4  # L + 1 in fours
    down = {
        "cross": 0,
        "map": M * L,
        "z_step": K * (L + 1) + 1,
        "measure": K * (L + 1),
        "validate": M * L + K * (L + 1),
    }
    up = {"cross": M * L, "map": 0, "z_step": 1, "measure": 3 + 2 * K, "validate": 2}
    for method in down:
        (few_calls, few), (many_calls, many) = moved
        assert few_calls[method] == many_calls[method] == 1
        assert tuple(few[method][1:]) == tuple(many[method][1:])  # not a byte more for ten times the rows
        for numbers, found in ((down[method], few[method][1]), (up[method], few[method][2])):
            assert 8 * numbers < found + 1 and found < 8 * numbers + words + 60 * 3, (method, numbers, found)
    for calls, by_method in moved:
        passes = calls["svm_pass"]
        # of each of K problems: Newton sums at most, and the SVM
        assert by_method["svm_pass"][2] < passes * (K * (8 * (P * P + 2 * P + 3) + 150) + words)
        assert by_method["svm_pass"][1] < passes * (K * (8 * 4 * P + 150) + words)
        assert by_method["svm_open"][2] < K * (8 * (3 + P + P * P) + 150) + words
    assert max(len(pickle.dumps(v)) for v in teams[-1].setup_calls.values()) < 20_000  # nor do new workers need more


def kill(victim: int, delay: float) -> None:
    """Kill a process, at once or while others go on."""
    if delay:
        threading.Timer(delay, os.kill, (victim, signal.SIGKILL)).start()
    else:
        os.kill(victim, signal.SIGKILL)


KILLED = {2: (1, 0.0), 4: (0, 0.01)}  # of a fit's iterations: which worker is killed, and how much later
PREPARED = ["begin", "column_squares", "nearest", "normal"]  # what comes before the first iteration


@pytest.mark.parametrize(
    ("params", "iterations", "calls"),
    [({}, KILLED, PREPARED), (LEARNED, {3: (1, 0.005)}, [])],
    ids=["fixed", "learned"],
)
def test_killed_workers_are_replaced_and_the_model_is_the_same(
    params: dict[str, Any], iterations: dict[int, tuple[int, float]], calls: list[str],
    teams: list[Actors], train: Data, valid: Data, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    rows, plain, killed = cut(train, 300, 600), Actors._each, []

    def each(self: Actors, given: Any) -> Any:
        if (name := given[0][0]) in calls and name not in killed:
            killed.append(name)
            kill(pids(self)[0], 0.0)
        return plain(self, given)

    def after(info: dict[str, Any]) -> None:
        if found := iterations.get(info["iteration"]):
            victim, delay = found
            kill(pids(teams[-1])[victim], delay)

    monkeypatch.setattr(Actors, "_each", each)
    found = model(max_iter=8, **params).fit(rows, eval_set=valid, executor=OnRay(2), callback=after)
    assert killed == calls and teams[-1].lost == len(calls) + len(iterations)
    whole = model(max_iter=8, **params).fit(rows, eval_set=valid, executor=Threads(2))
    assert far(found, whole) < (1e-3 if params else 1e-8)
    assert [h["iteration"] for h in found.history_] == [h["iteration"] for h in whole.history_]


def test_workers_that_always_end_end_the_fit_with_a_sentence(
    teams: list[Actors], train: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldsvm.blocks import executors as module

    monkeypatch.setattr(module, "REPAIRED", 1)
    plain = Actors._each

    def killing(self: Actors, calls: Any) -> Any:
        if calls[0][0] == "z_step":
            os.kill(pids(self)[0], signal.SIGKILL)
        return plain(self, calls)

    monkeypatch.setattr(Actors, "_each", killing)
    with pytest.raises(module.WorkerLost, match="1 of 2 workers ended repeatedly"):
        model().fit(cut(train, 400), executor=OnRay(2))


def test_no_room_for_a_new_worker_is_made_up_for_by_the_others(
    teams: list[Actors], train: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    from ldsvm.blocks import actors

    class Sleeper:  # of this function, so that Ray's process need not import this module for it
        def here(self) -> None:
            pass

    def crowd(info: dict[str, Any]) -> None:
        if info["iteration"] == 2:
            kill(pids(teams[-1])[0], 0.0)
            taker = ray.remote(num_cpus=3)(Sleeper).remote()  # all but what the fit's other worker has of the four
            held.append(taker)
            ray.get(taker.here.remote())
            monkeypatch.setattr(actors, "SECONDS", 2.0)

    held: list[Any] = []
    try:
        found = model().fit(cut(train, 400), executor=OnRay(2), callback=crowd)
    finally:
        for one in held:
            ray.kill(one)
    assert teams[-1].lost == 1
    assert far(found, model().fit(cut(train, 400), executor=Threads(2))) < 1e-8


@pytest.mark.usefixtures("_ray")
def test_more_workers_than_there_is_room_for_are_refused(train: Data) -> None:
    with pytest.raises(ClusterFailed, match="no room for 1 of 3 workers with 2 threads each"):
        model().fit(cut(train, 200, 400), executor=OnRay(3, threads=2))


@pytest.mark.usefixtures("_ray")
def test_objects_of_ray_are_blocks(train: Data) -> None:
    import pyarrow as pa
    import ray

    X, y = train
    whole = model(max_iter=2).fit(cut(train, 400), executor=Threads(1))
    pairs = [ray.put((X[:400], y[:400])), ray.put((X[400:], y[400:]))]
    assert far(model(max_iter=2).fit(RowBlocks.ray(pairs), executor=OnRay(1)), whole) == 0.0
    columns = [f"p{d}" for d in range(64)]
    parts = zip(*(np.split(a, [400]) for a in (X, y)), strict=True)
    tables = [pa.table({**dict(zip(columns, part.T, strict=True)), "digit": c}) for part, c in parts]
    found = model(max_iter=2).fit(RowBlocks.ray([ray.put(one) for one in tables], "digit"), executor=OnRay(1))
    assert far(found, whole) == 0.0
    with pytest.raises(BlockError, match="block 0 of Ray is a Table; allowed: a pair"):
        model().fit(RowBlocks.ray([ray.put(tables[0])]), executor=OnRay(1))


@pytest.mark.usefixtures("_ray")
def test_a_block_that_a_worker_cannot_read_is_named(train: Data, tmp_path: Any) -> None:
    np.save(tmp_path / "X.npy", train[0])
    np.save(tmp_path / "y.npy", train[1])
    rows = RowBlocks.mapped(tmp_path / "X.npy", tmp_path / "y.npy", rows=300)
    (tmp_path / "X.npy").unlink()
    with pytest.raises(BlockError, match=r"rows 0 to 300 of .*X\.npy cannot be read"):
        model().fit(rows, executor=OnRay(1))
