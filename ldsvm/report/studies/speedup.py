"""How training and search gain from threads and processes, after the paper's figure of speed-ups on MNIST."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from pydantic import Field, field_validator

from ldsvm.datasets import load, shuffled
from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.config.spaces import Scalar
from ldsvm.experiment.search.local_cluster import Nodes
from ldsvm.experiment.search.parallel import Cluster
from ldsvm.experiment.search.search import run_search
from ldsvm.experiment.search.trial import Data, Job, Trial, run_job
from ldsvm.experiment.search.worker import Tell, Worker
from ldsvm.report.studies import base

WARM_ROWS = 300  # of the small fits that load compiled code before a clock starts
WAIT_SECONDS = 60.0  # for the other processes of a search to start


class Params(base.Params):
    """What is timed: fits of one size on several threads, and one search on several processes.

    n_train, n_basis, n_components, gamma, C: the paper's size on MNIST and what validation chose there. iterations:
    of each fit, the same for all. repeats: of each measurement, in turn. threads, workers: with 1, which the others
    are compared with. nodes: Ray nodes of one processor each on this machine, 0 for no cluster. search_gamma: one
    trial each, on one thread, with search_train rows and search_basis basis functions. limit_s: seconds that one
    measurement may take.
    """

    dataset: Literal["mnist", "digits"] = "mnist"
    n_train: int = Field(default=10_000, gt=0)
    n_basis: int = Field(default=2_500, gt=0)
    n_components: int = Field(default=10, gt=0)
    gamma: float = Field(default=1 / 32, gt=0)
    C: float = Field(default=0.1, gt=0)
    iterations: int = Field(default=10, gt=0)
    repeats: int = Field(default=3, gt=0)
    threads: tuple[int, ...] = (1, 2)
    workers: tuple[int, ...] = (1, 2)
    nodes: int = Field(default=2, ge=0)
    search_gamma: tuple[float, ...] = (0.008, 0.011, 0.016, 0.022, 0.031, 0.044, 0.062, 0.088)
    search_train: int = Field(default=4_000, gt=0)
    search_basis: int = Field(default=1_000, gt=0)
    limit_s: float = Field(default=600, gt=0)

    @field_validator("threads", "workers")
    @classmethod
    def _with_one(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if 1 not in value or min(value) < 1:
            raise ValueError("allowed: whole numbers from 1, with 1, which the others are compared with")
        return tuple(sorted(set(value)))


def compute(params: Params, context: base.Context) -> base.Found:
    """Time every setting `repeats` times, in turn, so that a change of the machine's speed hits all alike."""
    with tempfile.TemporaryDirectory(prefix="speedup-") as name:
        folder = Path(name)
        save_rows(params, context, folder)
        settings = [("fit", n) for n in params.threads] + [("here", 1)] + [("ray", n) for n in params.workers]
        if params.nodes:
            settings.append(("cluster", params.nodes))
        rounds = [(kind, n, i) for i in range(params.repeats) for kind, n in _turned(settings, i)]
        found = []
        for done, (kind, n, i) in enumerate(rounds):
            context.tell(f"{kind}, {n} at a time, repeat {i + 1} of {params.repeats}", done / len(rounds))
            found.append({"kind": kind, "n": n, "repeat": i, **_measure(kind, n, params, context.seed, folder)})
    return base.Found({"processors": cpu_count(), "runs": found})


def _turned(settings: Sequence[tuple[str, int]], repeat: int) -> Sequence[tuple[str, int]]:
    return settings if repeat % 2 == 0 else settings[::-1]


def save_rows(params: Params, context: base.Context, folder: Path) -> None:
    """Write the rows of the fits and of the search, X_{part} and y_{part}, for the processes that map them."""
    data = load(params.dataset, cache_dir=context.cache)
    fit = shuffled(len(data.y), train=params.n_train, validation=0, seed=context.seed)
    search = shuffled(len(data.y), train=params.search_train, validation=params.search_train // 2, seed=context.seed)
    for part, rows in (("fit", fit.train), ("train", search.train), ("valid", search.validation)):
        np.save(folder / f"X_{part}.npy", data.X[rows])
        np.save(folder / f"y_{part}.npy", data.y[rows])


def rows(folder: Path, part: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return X (n, D) and y (n,) of a part, mapped."""
    X, y = (np.load(folder / f"{name}_{part}.npy", mmap_mode="r") for name in "Xy")
    return X, y


def _measure(kind: str, n: int, params: Params, seed: int, folder: Path) -> dict[str, Any]:
    """Return what one measurement found, in a process of its own."""
    nodes = Nodes(n) if kind == "cluster" else None
    with nodes or nullcontext(), Worker() as worker:
        if kind == "fit":
            answer = worker.call(timed_fit, params, n, seed, folder, limit_s=params.limit_s)
        else:
            workers, joined = (0 if kind == "here" else n), (nodes and (nodes.address, nodes.environment))
            answer = worker.call(timed_search, params, workers, joined, seed, folder, limit_s=params.limit_s)
    found: dict[str, Any] = answer
    return found


def timed_fit(params: Params, n_threads: int, seed: int, folder: Path, _: Tell) -> dict[str, Any]:
    """Return seconds of a fit by part, how many processors it kept busy, and what it found."""
    from sklearn.base import clone

    from ldsvm import LDSVMClassifier

    X, y = rows(folder, "fit")
    model = LDSVMClassifier(
        params.n_components, n_basis=params.n_basis, gamma=params.gamma, alpha=1e-3, C=params.C,
        n_jobs=n_threads, random_state=seed,
    )  # fmt: skip
    clone(model).set_params(n_basis=10).fit(X[:WARM_ROWS], y[:WARM_ROWS], callback=_stop_after(1, []))
    reached: list[float] = []
    busy, start = time.process_time(), time.perf_counter()
    model.fit(X, y, callback=_stop_after(params.iterations, reached))
    whole, busy = time.perf_counter() - start, time.process_time() - busy
    history = model.history_
    seconds = {step: sum(row[f"seconds_{step}"] for row in history) for step in "zgf"}
    seconds["prepare"] = reached[0] - start - sum(history[0][f"seconds_{step}"] for step in "zgf")
    seconds["rest"] = whole - sum(seconds.values())
    last = {key: history[-1][key] for key in ("iteration", "nested", "train_error")}
    return {"seconds": {**seconds, "whole": whole}, "busy": busy / whole, **last}


def _stop_after(iterations: int, reached: list[float]) -> Callable[[dict[str, Any]], bool]:
    """Return a callback that notes when each iteration is reached and stops after so many."""

    def callback(info: dict[str, Any]) -> bool:
        reached.append(time.perf_counter())
        return bool(info["iteration"] >= iterations)

    return callback


def timed_search(
    params: Params, workers: int, joined: tuple[str, dict[str, str]] | None, seed: int, folder: Path, _: Tell
) -> dict[str, Any]:
    """Return seconds of a search and of the start before it, its trials, and on how many nodes each of both ran.

    workers: trials at a time on Ray, 0 for one after the other in this process. joined: address of a cluster to join
    and what this process, which is ours alone, needs in its environment for that.
    """
    address, environment = joined or (None, {})
    os.environ.update(environment)
    fixed: dict[str, Scalar] = {"n_components": params.n_components, "n_basis": params.search_basis, "C": params.C}
    method = MethodConfig(estimator="ldsvm", params=fixed, search={"gamma": list(params.search_gamma)})
    small = method.model_copy(update={"params": {**fixed, "n_basis": 10, "max_iter": 1}})
    with tempfile.TemporaryDirectory(dir=folder) as marks, Cluster(workers, address, 1, params.limit_s) as cluster:
        executor = cluster.map if workers else map
        start = time.perf_counter()
        warm = [Job(small, ({"gamma": 0.1},), (i,), seed, 1) for i in range(2 * max(workers, 1))]
        list(executor(partial(run_small, folder=folder, marks=Path(marks), all_of=max(workers, 1)), warm))
        ready = time.perf_counter()
        run = partial(run_marked, folder=folder, marks=Path(marks))
        trials = run_search(method, run, seed=seed, n_jobs=1, executor=executor)
        end = time.perf_counter()
        nodes = {kind: {mark.name.split("-")[1] for mark in Path(marks).glob(f"{kind}-*")} for kind in ("small", "run")}
    rows = [
        {**trial.params, "valid_error": trial.valid_error, "failure": trial.failure and trial.failure.sentence}
        for trial in trials
    ]
    return {
        "start": ready - start, "search": end - ready, "started": len(nodes["small"]), "nodes": len(nodes["run"]),
        "trials": rows, "digest": digest(trials),
    }  # fmt: skip


def run_marked(job: Job, folder: Path, marks: Path) -> list[Trial]:
    """Fit a job, and leave a file named after the parent process, which on Ray is the node."""
    _mark(marks, "run")
    return run_job(job, Data(*rows(folder, "train"), *rows(folder, "valid")))


def run_small(job: Job, folder: Path, marks: Path, all_of: int) -> list[Trial]:
    """Fit a job on a few rows, to load libraries and compiled code, as soon as `all_of` processes are ready for it.

    Without this wait one process could do all such jobs before the others have started.
    """
    _mark(marks, "small")
    end = time.monotonic() + WAIT_SECONDS
    while len(list(marks.glob("small-*"))) < all_of and time.monotonic() < end:
        time.sleep(0.05)
    X, y = (values[:WARM_ROWS] for values in rows(folder, "train"))
    return run_job(job, Data(X, y, X, y))


def _mark(marks: Path, kind: str) -> None:
    (marks / f"{kind}-{os.getppid()}-{os.getpid()}").touch()


def digest(trials: Sequence[Trial]) -> str:
    """Return 16 hexadecimal digits that change with anything about the trials but seconds and memory."""
    text = json.dumps([dict(_without_times(asdict(trial))) for trial in trials], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without_times(trial: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in trial.items():
        if key == "history":
            yield key, [{k: v for k, v in row.items() if "seconds" not in k} for row in value]
        elif key not in ("train_s", "seconds", "peak_mib"):
            yield key, value
