"""One fit on blocks of rows: the same model everywhere, two million rows in bounded memory, Ray, and what it costs.

The parts: `same` blocks and executors give one model; `on_ray` so they do on Ray, on two nodes and when a worker is
killed; `large` rows of 784 bytes against the fit of 60,000 in memory; `scaling` from one worker of Ray to two, a model
of the costs and what it predicts; `distorted` training images, learned centres, and the test set. `large` writes two
gigabytes to data/prepared. With `quick` Ray's parts take a minute or more, the others seconds.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from benchmarks.costs import Costs, latencies
from benchmarks.distorted import BLOCK, Distortion, folder
from benchmarks.harness import Bar, Result, clock, everything, mnist, progress
from ldsvm import LDSVMClassifier, RowBlocks
from ldsvm.blocks import OnRay, Serial, Threads
from ldsvm.blocks.source import Rows
from ldsvm.experiment.search.local_cluster import Nodes

LARGE, FIRST, M = 2_000_000, 60_000, 1_000
GAMMA = 0.02 / 255**2  # of pixels from 0 to 255
LIMIT = 5 * 2**30 // 2  # bytes of inputs and features that the large fit may keep
LITTLE = 700 * 2**20  # the same for the fits from one worker to two: inputs, and no features
TURNED = Distortion(2, 12)  # of the large fit's images
#: of those with learned centres, with their number, gradient steps of an F-step, F-steps after the first, and whether Z
#: follows F in these
LEARNED = [
    (Distortion(1), 540_000, 200_000, 3, False),
    (Distortion(1, 8, 0.1, 0.7), 1_500_000, 200_000, 4, True),
]
COMPONENTS = 70  # their inputs
HELD = {False: 55_000, True: 1_000}  # the training image from which on they validate, as they are, by `quick`
SINGLE = FunctionTransformer(np.asarray, kw_args={"dtype": np.float32})
MACHINES, ROWS = (8, 32, 128), (10**7, 10**8, 10**9)
NETWORK = 10e9 / 8, 2e-4  # bytes a second from the driver, and seconds there and back: a common data centre
PARTS = ("same", "on_ray", "large", "scaling", "distorted")


def run(quick: bool, parts: Collection[str] = PARTS) -> Result:
    warnings.filterwarnings("ignore", message="MAC stopped at max_iter")
    result = Result(settings={"gamma": GAMMA, "basis functions": M, "network": NETWORK})
    for name, part in zip(PARTS, (same, on_ray, large, scaling, distorted), strict=True):
        if name in parts:
            part(result, quick)
    keys = list(dict.fromkeys(key for row in result.rows for key in row))
    result.rows = [{key: row.get(key, "") for key in keys} for row in result.rows]
    return result


def same(result: Result, quick: bool) -> None:
    """One model for 1, 2 and 5 blocks, in serial and in threads."""
    worst = _worst(result, quick, (Serial(), Serial(memory=0), Threads(2)))
    result.bars.append(Bar("largest_relative_difference_of_models", worst, "<=", 1e-6))


def on_ray(result: Result, quick: bool) -> None:
    """The same model on Ray, on two nodes, and after a kill."""
    result.bars.append(Bar("largest_relative_difference_on_Ray", _worst(result, quick, (OnRay(2),)), "<=", 1e-6))
    progress("shards: two nodes, and a worker that is killed")
    two, killed, lost = _asked("nodes", quick)  # a process has one token for Ray in its life
    for what, apart in {"two nodes": two, f"two nodes, {lost:.0f} worker killed": killed}.items():
        result.rows.append({"what": f"same: {what}", "difference": apart})
    result.bars.append(Bar("difference_on_two_nodes", two, "<=", 1e-6))
    result.bars.append(Bar("difference_after_a_kill", killed, "<=", 1e-6))
    result.bars.append(Bar("workers_killed", lost, ">=", 1))


def _worst(result: Result, quick: bool, executors: tuple[Any, ...]) -> float:
    """Return the largest difference of an executor's models, for each number of blocks, from that of one block."""
    fit, worst = _small(quick), 0.0
    first = fit(1, Serial())
    for blocks in (1, 2, 5):
        for executor in executors:
            progress(f"shards: {blocks} blocks, {executor}")
            apart = _apart(fit(blocks, executor), first)
            worst = max(worst, apart)
            result.rows.append({"what": f"same: {blocks} blocks, {executor}", "difference": apart})
    return worst


def _small(quick: bool) -> Callable[..., LDSVMClassifier]:
    """Return what fits MNIST's 10,000 images, in so many blocks, with an executor."""
    data = mnist(0, quick)
    n, size = (300, 30) if quick else (10_000, 500)
    (X, y), valid = ((part[0][:n].astype(np.float64), part[1][:n]) for part in (data.train, data.valid))

    def fit(blocks: int, executor: Any, **more: Any) -> LDSVMClassifier:
        rows = RowBlocks.arrays(zip(np.array_split(X, blocks), np.array_split(y, blocks), strict=True))
        iterations = 3 if quick else 10
        model = LDSVMClassifier(
            n_basis=size, gamma=0.02, alpha=1e-3, C=0.1, mu_max=1e6, max_iter=iterations, random_state=0
        )
        return model.fit(rows, eval_set=valid, executor=executor, **more)

    return fit


def _nodes(quick: bool) -> tuple[float, ...]:
    """Differences of the models of two nodes of Ray, without and with a kill, from the serial one; workers lost."""
    fit = _small(quick)
    first = fit(1, Serial())
    with Nodes(2) as nodes:
        os.environ.update(nodes.environment)
        executor = Watched(2, address=nodes.address)
        two, killed = fit(5, executor), fit(5, executor, callback=executor.kill_after(2))
    lost = max(info["lost"] for info in killed.history_)
    return _apart(two, first), _apart(killed, first), lost


def _asked(*words: Any) -> list[float]:
    """Let a process of its own do something, and return the numbers in its last line."""
    code = [sys.executable, "-m", "benchmarks.shards", *map(str, words)]
    done = subprocess.run(code, stdout=subprocess.PIPE, check=True, text=True)
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def _apart(a: Any, b: Any) -> float:
    pairs = [
        (a.map_.W, b.map_.W),
        (a.latent_coef_, b.latent_coef_),
        (a.intercept_, b.intercept_),
        (a.centers_, b.centers_),
    ]
    return float(max(np.abs(p - q).max() / np.abs(q).max() for p, q in pairs))


class Watched(OnRay):
    """An executor whose workers can be killed."""

    def team(self, train: Rows, valid: Rows | None, n_jobs: int | None) -> Any:
        team = super().team(train, valid, n_jobs)
        object.__setattr__(self, "last", team)
        return team

    def kill_after(self, iteration: int) -> Callable[[dict[str, Any]], None]:
        """Return a callback that kills one worker's process soon after an iteration, in the middle of the next one."""

        def kill(info: dict[str, Any]) -> None:
            if info["iteration"] == iteration:
                import ray

                host = self.last._hosts[0]  # type: ignore[attr-defined]
                pid = ray.get(host.__ray_call__.remote(lambda self: os.getpid()))
                threading.Timer(0.05, os.kill, (pid, signal.SIGKILL)).start()

        return kill


def large(result: Result, quick: bool) -> None:
    """Two million rows against 60,000 in memory: time per row of the whole fit, and memory at its peak.

    Each in a process of its own, so that the peak is that of the fit and of nothing else.
    """
    rows, few, size = (1_200, 600, 20) if quick else (LARGE, FIRST, M)
    place = folder(rows, TURNED, quick=quick)
    found = {}
    for name, count in {"memory": few, "blocks": rows}.items():
        progress(f"shards: {count:,} rows in {name}")
        seconds, mib, error, iterations = _asked(name, quick, place, count, size)
        found[name] = 1e6 * seconds / count, mib
        result.rows.append({
            "what": f"large: {count:,} rows, {name}", "seconds": seconds, "us a row": found[name][0], "peak MiB": mib,
            "test %": error, "iterations": iterations,
        })  # fmt: skip
    result.bars.append(Bar("time_a_row_over_memory", found["blocks"][0] / found["memory"][0], "<=", 1.3))
    result.bars.append(Bar("peak_GiB_of_2000000_rows", found["blocks"][1] / 1024, "<=", 6))


def _fit_large(how: str, quick: bool, place: str, count: int, size: int) -> tuple[float, ...]:
    """One fit of `large`: seconds, the process's largest memory in MiB, test error in % and iterations."""
    model = LDSVMClassifier(
        n_basis=size, gamma=GAMMA, alpha=1e-3, C=0.1, mu_max=1e6, max_iter=10, random_state=0, verbose=1
    )
    rows = RowBlocks.parquet(place, "digit")
    if how == "memory":
        blocks = [rows.read(i) for i in range(-(-count // BLOCK))]
        X, y = np.concatenate([x for x, _ in blocks])[:count], np.concatenate([c for _, c in blocks])[:count]
        X = X.astype(np.float32)
        del blocks
        seconds = clock(lambda: model.fit(X, y), 1, warm=False)
    else:
        seconds = clock(lambda: model.fit(rows, executor=Serial(memory=LIMIT)), 1, warm=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _, _, X_test, y_test = everything(quick)
    return seconds, peak, 100 * (1 - model.score(X_test.astype(np.float32) * 255, y_test)), model.n_iter_


def scaling(result: Result, quick: bool) -> None:
    """From one worker to two, and a model of the costs: what it predicts for two, and for many machines."""
    rows, size, iterations = (10_000, 100, 3) if quick else (800_000, M, 5)
    place = folder(20_000 if quick else LARGE, TURNED, quick=quick)
    blocks = RowBlocks.parquet(place, "digit", rows=min(rows // 4, BLOCK))
    blocks = RowBlocks(blocks.blocks[: rows // (blocks.blocks[0].rows or rows)])
    found = {workers: _measured(blocks, workers, size, iterations) for workers in (1, 2)}
    base, per_worker = latencies()
    one, two = found[1], found[2]
    predicted = one.predict(2, one.rows, base, per_worker)
    for workers, cost in found.items():
        result.rows.append({
            "what": f"scaling: {workers} workers", "seconds": cost.seconds, "us a row": 1e6 * cost.busy / cost.rows,
            "calls": cost.calls, "KB a worker": cost.bytes / 1e3,
        })  # fmt: skip
    result.rows.append({"what": "scaling: 2 workers, predicted", "seconds": predicted})
    result.rows.append({"what": "scaling: a call, s", "seconds": base})
    result.rows.append({"what": "scaling: a call, s for each worker", "seconds": per_worker})
    result.bars.append(Bar("speedup_of_an_iteration_on_2_workers", one.seconds / two.seconds, ">=", 1.7))
    result.bars.append(Bar("prediction_of_2_workers_off_by", abs(predicted / two.seconds - 1), "<=", 0.15))
    speed, delay = NETWORK
    for N in ROWS:
        for machines in MACHINES:
            time_of = one.predict(machines, N, base + delay, per_worker, speed)
            result.rows.append({
                "what": f"predicted: {N:.0e} rows on {machines} machines", "seconds": time_of,
                "efficiency": one.busy / one.rows * N / (machines * time_of),
            })  # fmt: skip


def _measured(blocks: RowBlocks, workers: int, size: int, iterations: int) -> Costs:
    """What the iterations of a fit cost on so many workers of Ray."""
    progress(f"shards: {workers} workers")
    ends: list[float] = []
    model = LDSVMClassifier(
        n_basis=size, gamma=GAMMA, alpha=1e-3, C=0.1, mu_max=1e6, centers="random", max_iter=iterations, random_state=0
    )
    model.fit(
        blocks, executor=OnRay(workers, memory=LITTLE), callback=lambda _: ends.append(time.perf_counter())
    )  # fmt: skip
    steps = model.history_[1:]
    busy, calls, down, up = (
        fmean(info[key] for info in steps) for key in ("seconds_slowest", "calls", "bytes_down", "bytes_up")
    )
    rows = sum(block.rows or 0 for block in blocks.blocks)
    return Costs(rows, workers, (ends[-1] - ends[0]) / len(steps), busy, calls, (down + up) / workers)


def distorted(result: Result, quick: bool) -> None:
    """Learned centres on distorted images; what distorts and the iteration are chosen on training images left out."""
    _, _, X_test, y_test = everything(quick)
    found = []
    for kind, count, steps, few, follows in LEARNED:
        size = M
        if quick:
            count, few, size, steps = 1_200, 1, 20, 20
        progress(f"shards: {count:,} images, {kind}")
        begun = time.perf_counter()
        model, pca = _learn(kind, count, few, quick, n_basis=size, center_steps=steps, z_follows=follows)
        best = model.history_[model.best_iter_]
        result.rows.append({
            "what": f"distorted: {count:,} images, {kind}", "validation %": 100 * best["valid_error"],
            "iterations": model.best_iter_, "seconds": time.perf_counter() - begun,
        })  # fmt: skip
        found.append((best["valid_error"], kind, model, pca))
    _, kind, model, pca = min(found, key=lambda one: one[0])
    error = 100 * (1 - model.score(SINGLE.transform(pca.transform(255 * X_test)), y_test))
    result.rows.append({"what": f"distorted: the better, {kind}", "test %": error})
    result.bars.append(Bar("error_with_distorted_images", error, "<=", 0.9))


def _learn(kind: Distortion, count: int, few: int, quick: bool, **params: Any) -> tuple[LDSVMClassifier, Any]:
    """Fit to so many images by so many F-steps after the first; the model, and what reduces pixels from 0 to 255."""
    X, y, _, _ = everything(quick)
    n_valid = HELD[quick]
    rows, pca = RowBlocks.parquet(folder(count, kind, of=n_valid, quick=quick), "digit").principal(COMPONENTS)
    valid = RowBlocks.arrays([(255 * X[n_valid:], y[n_valid:])]).then(pca)
    model = LDSVMClassifier(
        map="adaptive_rbf", centers="random", gamma=0.06 / 255**2, C=1.0, random_state=0, verbose=1, **params
    )
    model.fit(rows.then(SINGLE), eval_set=valid.then(SINGLE), callback=lambda info: info["iteration"] >= few)
    return model, pca


def _main(what: str, *words: str) -> None:
    warnings.filterwarnings("ignore", message="MAC stopped at max_iter")
    quick, *rest = words
    small = quick == "True"
    print(*_nodes(small) if what == "nodes" else _fit_large(what, small, rest[0], int(rest[1]), int(rest[2])))


if __name__ == "__main__":
    _main(*sys.argv[1:])


def quoted(result: Result) -> list[tuple[str, str]]:
    blocks, memory = (result.row(what=f"large: {n:,} rows, {how}") for n, how in ((LARGE, "blocks"), (FIRST, "memory")))
    ratio, peak = result.bar("time_a_row_over_memory"), result.bar("peak_GiB_of_2000000_rows")
    speed, off = result.bar("speedup_of_an_iteration_on_2_workers"), result.bar("prediction_of_2_workers_off_by")
    far, near = (
        result.row(what=f"predicted: {rows:.0e} rows on 32 machines")["efficiency"] for rows in (ROWS[2], ROWS[1])
    )
    follows = [row for row in result.rows if row["what"].startswith("distorted: ") and row["iterations"] != ""][-1]
    error = result.bar("error_with_distorted_images")
    return [
        (
            f"one fit on blocks of rows: {LARGE:,} distorted MNIST images of 784 bytes, 1,000 fixed centres, 10 "
            f"iterations, against {FIRST:,} images in memory",
            f"{blocks['us a row']:.0f} µs a row, {memory['us a row']:.0f} in memory ({ratio:.2f} times); "
            f"{peak:.1f} GiB at its peak",
        ),
        (
            "the same on Ray: two workers against one, an iteration of 800,000 rows",
            f"{speed:.2f} times as fast; the cost model predicts the time within {100 * off:.0f} %, and an "
            f"efficiency on 32 machines of {far:.2f} at 1e9 rows, {near:.2f} at 1e8",
        ),
        (
            "1,000 learned centres, `z_follows`, 1,500,000 images shifted, turned, stretched and bent",
            f"{error:.2f} % test error (validation {follows['validation %']:.2f} %) "
            f"in {follows['seconds'] / 60:.0f} minutes",
        ),
    ]
