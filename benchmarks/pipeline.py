"""What Prefect, Ray, MLflow and the journal cost beside the work that they arrange, on the digits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.harness import ROOT, Bar, Result, progress
from ldsvm.experiment.compare.judge import warm
from ldsvm.experiment.compare.record import compete
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config, MethodConfig
from ldsvm.experiment.prepared import Prepared, prepare
from ldsvm.experiment.search.parallel import Cluster
from ldsvm.experiment.search.search import run_search
from ldsvm.experiment.search.trial import Trial, fit_job
from ldsvm.experiment.search.worker import Here
from ldsvm.tracking.client import Tracker
from ldsvm.tracking.results import track_trials

DIGITS = "conf/digits.yaml"
# On one thread a search of some two minutes: forty widths, three penalties fitted together for each, all rows centres,
# small tolerance, so that a trial takes most of a second.
ALIKE = [
    "n_jobs=1",
    "problems=[{name: 10 classes, labels: original}]",
    "methods.ours.params={max_iter: 150, n_iter_no_change: 150, tol: 1e-4}",
    "methods.ours.search.n_basis=[899]",
]
LONG = [*ALIKE, f"methods.ours.search.gamma={[round(0.05 + 0.01 * i, 2) for i in range(40)]}"]
SHORT = [*ALIKE, f"methods.ours.search.gamma={[round(0.05 + 0.02 * i, 2) for i in range(20)]}"]
ONE = [*ALIKE, "methods.ours.search.gamma=[0.05]", "methods.ours.search.C=[1]"]
EQUAL = MethodConfig(estimator="ldsvm", params={"n_basis": 500, "max_iter": 80, "n_iter_no_change": 80, "C": 1.0})


PARTS = ("overhead", "logging", "resume", "workers")


def run(quick: bool = False, parts: Collection[str] = PARTS) -> Result:
    """All parts, or some of them. With `quick` logging takes seconds; the others, which start servers, minutes."""
    result = Result(settings={"experiment": DIGITS, "long": LONG, "equal": EQUAL.model_dump(mode="json")})
    warm(lambda _: None)  # compiled on this machine, once, before anything is timed
    with TemporaryDirectory() as folder:
        for name, part in zip(PARTS, (_overhead, _logging, _resume, _workers), strict=True):
            if name not in parts:
                continue
            place = Path(folder) / name
            place.mkdir()
            progress((part.__doc__ or "").splitlines()[0])
            part(place, quick, result)
    return result


@dataclass
class Flow:
    """`python -m flows` with a folder of its own."""

    place: Path
    overrides: list[str]

    @property
    def config(self) -> Config:
        return load_config(DIGITS, self.given, root=ROOT)

    @property
    def given(self) -> list[str]:
        return [f"paths.runs={self.place / 'runs'}", f"paths.cache={self.place / 'cache'}", *self.overrides]

    def start(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "flows", name, DIGITS, *self.given]
        with (self.place / "output").open("ab") as out:
            return subprocess.Popen(command, cwd=ROOT, env=_plain(), stdout=out, stderr=out)

    def seconds(self, name: str) -> float:
        """Seconds of a whole call of the command line."""
        begun = time.perf_counter()
        code = self.start(name).wait()
        if code:
            raise RuntimeError(f"{name} ended with {code}: {(self.place / 'output').read_text('utf-8')[-2000:]}")
        return time.perf_counter() - begun


def _plain() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}


def _overhead(place: Path, quick: bool, result: Result) -> None:
    """The whole pipeline against the same contests without it, and once more when all is there already.

    The same with a search of one trial is the start: imports, Prefect's server, the process that fits, report, end.
    """
    one, flow = Flow(place, ONE), Flow(place, SHORT if quick else LONG)
    one.seconds("prepare")
    start, total = (each.seconds("pipeline") for each in (one, flow))
    (start_bare, _), (bare, search) = (_bare(each.config) for each in (one, flow))
    again = flow.seconds("pipeline")
    over = (total - start - (bare - start_bare)) / search
    result.rows += [
        _row("the pipeline with one trial", start, "s"),
        _row("its contests in this process", start_bare, "s"),
        _row("the pipeline", total, "s"),
        _row("its contests in this process", bare, "s"),
        _row("their searches", search, "s"),
        _row("the pipeline again", again, "s"),
    ]
    result.bars += [Bar("overhead beyond the start / search", over, "<=", 0.1), Bar("again, s", again, "<=", 30)]


def _bare(config: Config) -> tuple[float, float]:
    """Return the seconds of all contests without Prefect, MLflow, journal and worker, and of their trials."""
    (prepared,) = prepare(config)
    apart = config.model_copy(update={"search": config.search.model_copy(update={"resume": False})})
    begun, trials = time.perf_counter(), 0.0
    for problem in config.problems:
        for name in config.methods:
            found, _ = compete(apart, prepared, problem, name, Here(), lambda *_: None, lambda _: None)
            trials += sum(trial.seconds for trial in found.trials)
    return time.perf_counter() - begun, trials


def _here(prepared: Prepared) -> Callable[..., list[Trial]]:
    return partial(fit_job, prepared=prepared, labels="original")


def _logging(place: Path, quick: bool, result: Result) -> None:
    """Trials of a search into the tracking store."""
    config = load_config(DIGITS, [f"paths.cache={place / 'cache'}"], root=ROOT)
    (prepared,) = prepare(config)
    method = config.methods["ours"]
    if quick:
        method = method.model_copy(update={"search": {"n_basis": [50], "C": [0.1, 1.0]}})
    trials = run_search(method, _here(prepared), seed=0, n_jobs=1)
    tracker = Tracker(place / "runs", "logging")
    with tracker.run("problem", kind="problem") as parent, tracker.run("ours", kind="method", parent=parent.id) as run:
        track_trials(tracker, run, trials[:2], "", time.time())  # MLflow imports on first use
        begun = time.perf_counter()
        track_trials(tracker, run, trials, "", time.time())
        each = (time.perf_counter() - begun) / len(trials)
    steps = sum(len(trial.history) for trial in trials) / len(trials)
    result.rows += [
        _row(f"logging one trial, of {len(trials)} with {steps:.0f} iterations on average", 1000 * each, "ms")
    ]
    result.bars.append(Bar("logging, ms per trial", 1000 * each, "<=", 30))


def _resume(place: Path, quick: bool, result: Result) -> None:
    """A search that is killed in the middle and started again."""
    flow = Flow(place, SHORT)
    journal = flow.config.journal
    assert journal is not None
    process = flow.start("search")
    while process.poll() is None and len(_lines(journal)) < 5:
        time.sleep(0.05)
    process.kill()
    process.wait()
    kept = _lines(journal)
    flow.seconds("search")
    keys = [json.loads(line)["key"] for line in _lines(journal)]
    redone = sum(keys.count(json.loads(line)["key"]) - 1 for line in kept)
    result.rows += [_row("trials finished before a kill -9", len(kept), ""), _row("trials in all", len(set(keys)), "")]
    result.bars += [
        Bar("finished trials done again", redone, "<=", 0),
        Bar("trials before the kill", len(kept), ">=", 5),
    ]


def _lines(journal: Path) -> list[bytes]:
    return journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []


def _workers(place: Path, quick: bool, result: Result) -> None:
    """Equal trials, one thread each, one and two at a time on Ray."""
    config = load_config(DIGITS, [f"paths.cache={place / 'cache'}"], root=ROOT)
    (prepared,) = prepare(config)
    widths = [round(0.05 + 0.001 * i, 3) for i in range(2 if quick else 24)]
    method = EQUAL.model_copy(update={"search": {"gamma": widths}})
    # In turn, so that whatever else the machine does meets both.
    times = [{workers: _search(method, prepared, workers) for workers in (1, 2)} for _ in range(1 if quick else 3)]
    seconds = {workers: median(one[workers] for one in times) for workers in (1, 2)}
    result.rows += [_row(f"{len(widths)} equal trials, {n} at a time", s, "s") for n, s in seconds.items()]
    result.bars.append(Bar("2 workers over 1", median(one[1] / one[2] for one in times), ">=", 1.7))


def _search(method: MethodConfig, prepared: Prepared, workers: int) -> float:
    """Return the seconds of a search on Ray, whose start and whose workers' imports are not counted."""
    with _started(prepared, workers) as cluster:
        begun = time.perf_counter()
        trials = run_search(method, _here(prepared), seed=0, n_jobs=1, executor=cluster.map)
        seconds = time.perf_counter() - begun
    if failed := [trial.failure for trial in trials if trial.failure]:
        raise RuntimeError(failed[0].sentence)
    return seconds


@contextmanager
def _started(prepared: Prepared, workers: int) -> Iterator[Cluster]:
    with Cluster(workers, None, 1, 600.0) as cluster:
        few = MethodConfig(
            estimator="ldsvm", params={"max_iter": 2}, search={"gamma": [0.1 + i for i in range(2 * workers)]}
        )
        run_search(few, _here(prepared), seed=0, n_jobs=1, executor=cluster.map)
        yield cluster


def _row(what: str, value: float, unit: str) -> dict[str, object]:
    return {"what": what, "value": value, "unit": unit}


def quoted(result: Result) -> list[tuple[str, str]]:
    over, workers = result.bar("overhead beyond the start / search"), result.bar("2 workers over 1")
    again, logging = result.bar("again, s"), result.bar("logging, ms per trial")
    return [
        (
            "Prefect, MLflow, journal and processes around a search of the digits, beyond their start",
            f"{100 * over:.0f} % of the search; {logging:.0f} ms to log a trial; {again:.0f} s for a second run in "
            "which nothing has changed",
        ),
        ("a search on Ray, two trials at a time against one", f"{workers:.2f} times as fast"),
    ]
