"""One method on one problem: search, fit the winner, judge it. Fits and clocks run in the process of the runner."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm import solvers
from ldsvm.blocks.connection import ClusterFailed
from ldsvm.experiment.compare.judge import Score, judge
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.schema import Config, LimitsConfig, MethodConfig, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.failure import failure_of
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.search import Executor, OnTrials, best, run_search
from ldsvm.experiment.search.trial import Data, Job, OnStep, Trial, fit_point, reason, run_job
from ldsvm.experiment.search.worker import Runner, Stopped, Tell
from ldsvm.methods import Method, lookup
from ldsvm.methods.label_map import Coarser
from ldsvm.methods.memory import NotRun
from ldsvm.methods.memory_limit import MemoryLimit


@dataclass(frozen=True)
class Judged:
    """What fitting and judging one point gave. model: only ours, which is kept.

    latent: the training set (N, L) in the latent space of ours, or of a reduction to a plane or a line.
    """

    score: Score
    valid_error: float
    train_s: float
    notes: list[str]
    history: list[dict[str, Any]]
    stop_reason: str | None = None
    best_iter: int | None = None
    map: str | None = None
    n_latent: int | None = None
    peak_mib: float | None = None
    model: Any = None
    latent: Any = None


@dataclass(frozen=True)
class Match:
    """Where one method competes: the data of one split in one labelling, and what a fit may take."""

    prepared: Prepared
    labels: str
    limits: LimitsConfig
    runner: Runner

    def _memory(self, job: Job) -> MemoryLimit | None:
        # The rows are with Ray's workers; refused memory, what joins them would end the process.
        return None if job.method.on_ray else MemoryLimit(self.limits.fit_mib, job.n_jobs)

    def search(self, job: Job, on_step: OnStep) -> list[Trial]:
        """Run one job of a search within its time; never raises."""
        start = time.perf_counter()
        try:
            seconds = self.limits.fit_s * len(job.points)
            found: list[Trial] = self.runner.call(
                fit_job, job, self.prepared, self.labels, limit_s=seconds, memory=self._memory(job), tell=on_step
            )
            return found
        except Stopped as stop:
            spent = (time.perf_counter() - start) / len(job.points)
            points = zip(job.points, job.orders, strict=True)
            return [Trial(dict(p), i, seconds=spent, failure=stop.failure) for p, i in points]

    def judge(self, job: Job, repeats: int, on_step: OnStep) -> Judged:
        """Fit the single point of a job and judge it."""
        judged: Judged = self.runner.call(
            fit_and_judge, job, self.prepared, self.labels, repeats,
            limit_s=2 * self.limits.fit_s, memory=self._memory(job), tell=on_step,
        )  # fmt: skip
        return judged

    def train_alone(self, job: Job) -> float | None:
        """Return the seconds of a job whose fit is on one thread, None when they, or its rows, are too many here."""
        try:
            seconds: float = self.runner.call(
                fit_on_one_thread, job, self.prepared, self.labels,
                limit_s=self.limits.fit_s, memory=self._memory(job),
            )  # fmt: skip
            return seconds
        except (Stopped, NotRun):
            return None


def compete(
    config: Config,
    prepared: Prepared,
    problem: ProblemConfig,
    name: str,
    runner: Runner,
    on_trials: OnTrials,
    on_step: OnStep,
    executor: Executor | None = None,
) -> tuple[Result, Judged | None]:
    """Return what the method `name` achieves on one split, and what the judge saw (None when it failed).

    A Ray that its fits are to run on, and that is nowhere yet, is started here meanwhile.

    executor: runs the trials in several processes, see `parallel.Cluster.map`; without it they run one after the other
    in the runner's.

    The grid is compared on the validation set; then the best point is fitted once more by itself, on the training
    set alone, so that every method's `train_s` is the time of one fit from nothing and the judged model is what
    `fit` gives anyone with these parameters. It is not refitted on training and validation data together.
    """
    method, number = config.methods[name], prepared.seed - config.seed
    match = Match(prepared, problem.labels, config.limits, runner)
    result = Result(problem.name, name, method.estimator, [], number, prepared.digest, time.time())
    try:
        with _joined(method) as there:
            return _compete(config, match, there, result, on_trials, on_step, executor)
    except ClusterFailed as error:
        if not method.on_ray:  # then it is the search that has none
            raise
        return replace(result, failure=failure_of(error)), None


def _compete(
    config: Config,
    match: Match,
    method: MethodConfig,
    result: Result,
    on_trials: OnTrials,
    on_step: OnStep,
    executor: Executor | None,
) -> tuple[Result, Judged | None]:
    """Fill an empty result."""
    seed, started = match.prepared.seed, result.started
    trials = _search(config, match, method, on_trials, on_step, executor)
    # The work of all points: it depends neither on how many ran at a time nor on what a journal had.
    result = replace(result, trials=trials, search_s=sum(trial.seconds for trial in trials))
    try:
        point = best(trials).params
        job = Job(method, (point,), (0,), seed, config.n_jobs)
        judged = match.judge(job, config.judge.repeats, on_step)
    except Exception as error:
        return replace(result, seconds=time.time() - started, failure=failure_of(error)), None
    done = replace(
        result,
        params={**method.params, **point},
        train_alone_s=judged.train_s if job.alone == job else match.train_alone(job.alone),
        **{key: value for key, value in vars(judged).items() if key not in ("model", "latent")},
    )
    return replace(done, seconds=time.time() - started), judged


def _search(
    config: Config, match: Match, method: MethodConfig, on_trials: OnTrials, on_step: OnStep, executor: Executor | None
) -> list[Trial]:
    """Search on the executor; where Ray cannot be had and the file allows it, here, from where the journal stands."""
    find = partial(
        run_search,
        method,
        seed=match.prepared.seed,
        n_jobs=config.trial_jobs,
        on_trials=on_trials,
        journal=Journal(config.journal, config.limits.fit_s, believe=not config.refresh),
        place=f"{match.prepared.digest} {match.labels}" + (f" learnt from {method.labels}" if method.labels else ""),
        rows=match.prepared.sizes["train"],
        checkpoints=config.checkpoints,
    )
    if executor is not None:
        try:
            return find(partial(fit_job, prepared=match.prepared, labels=match.labels), executor=executor)
        except ClusterFailed as error:
            if config.search.without_ray == "fail":
                raise
            warnings.warn(f"{error} Trials run one after the other instead.", UserWarning, stacklevel=2)
    return find(partial(match.search, on_step=on_step))


def is_cold() -> bool:
    """Return whether `warm` surely has to compile: the package's own cache of kernels, which can be written, has none.

    False where kernels may lie elsewhere, in the user's folder or in that of NUMBA_CACHE_DIR.
    """
    folder = Path(solvers.__file__).parent
    if "NUMBA_CACHE_DIR" in os.environ or not os.access(folder, os.W_OK):
        return False
    return not any((folder / "__pycache__").glob(f"*.py{sys.version_info.major}{sys.version_info.minor}.nbi"))


def warm(_: Tell) -> None:
    """Load our compiled kernels, which a first run on a machine compiles, so that no fit's clock counts it."""
    from ldsvm.estimator import LDSVMClassifier

    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    for classes in (2, 3):
        y = np.arange(30) % classes
        model = LDSVMClassifier(n_basis=5, max_iter=2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two iterations converge to nothing
            model.fit(X, y, eval_set=(X, y)).predict(X)


def fit_job(job: Job, prepared: Prepared, labels: str, tell: Tell | None = None) -> list[Trial]:
    """Fit every point of a job; for another process."""
    return run_job(job, training_data(prepared, labels, job.method.labels), tell)


def fit_and_judge(job: Job, prepared: Prepared, labels: str, repeats: int, tell: Tell) -> Judged:
    """Fit the single point of a job on the training set and score it on the test set; for the runner's process."""
    data = training_data(prepared, labels, job.method.labels)
    fit = fit_point(job, job.points[0], data, tell)
    model, method = fit.model, lookup(job.method.estimator)
    answers = Coarser(model, labels) if job.method.labels else model  # what answers the problem
    X_test, y_test = prepared.arrays("test", labels)
    score = judge(answers, method, X_test, y_test, repeats=repeats, n_jobs=job.n_jobs)
    return Judged(
        score=score,
        valid_error=data.valid_error(model),
        train_s=fit.seconds,
        peak_mib=fit.peak_mib,
        notes=fit.notes,
        history=[dict(row) for row in getattr(model, "history_", [])],
        stop_reason=reason(model),
        best_iter=getattr(model, "best_iter_", None),
        **(_ours(model) if method.iterative else {}),
        model=answers if method.iterative else None,
        latent=_latent(model, method, data),
    )


def fit_on_one_thread(job: Job, prepared: Prepared, labels: str, _: Tell) -> float:
    """Return the seconds of the fit of a job's single point, which is on one thread; for the runner's process."""
    return fit_point(job, job.points[0], training_data(prepared, labels, job.method.labels)).seconds


def training_data(prepared: Prepared, labels: str, learnt: str | None = None) -> Data:
    """Return the training and validation arrays of one problem. The test set is not among them on purpose.

    labels: in which errors are counted. learnt: those of the arrays, None for the same.
    """
    train, validation = (prepared.arrays(part, learnt or labels) for part in ("train", "validation"))
    return Data(*train, *validation, n_test=prepared.sizes["test"], reading=labels)


def _ours(model: Any) -> dict[str, Any]:
    kind = model.map if isinstance(model.map, str) else None
    return {"map": kind, "n_latent": int(model.latent_coef_.shape[-1])}


def _latent(model: Any, method: Method, data: Data) -> Any:
    """Return the training set in the latent space of ours, or of a reduction that can be looked at; else None."""
    if method.iterative:
        return model.transform(data.X)
    reduce = getattr(model, "named_steps", {}).get("reduce")
    if reduce is None or reduce.transform(data.X[:1]).shape[1] > 2:
        return None
    return reduce.transform(data.X)


@contextmanager
def _joined(method: MethodConfig) -> Iterator[MethodConfig]:
    """Let a method's fits find a Ray, see `ExecutorConfig.joined`."""
    if method.executor is None:
        yield method
        return
    with method.executor.joined() as executor:
        yield method.model_copy(update={"executor": executor})
