"""One method on one problem: search, fit the winner, judge it and store the result, or find a stored one.

Fits and timings run in the process of the runner. A result is stored in its own folder before anything else uses it;
the folder is named by a digest of all that the result depends on, so that the same computation finds it instead.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ldsvm.blocks.connection import ClusterFailed
from ldsvm.datasets.stored_arrays import plain
from ldsvm.datasets.transformers import source_digest
from ldsvm.datasets.words import slug
from ldsvm.experiment.compare import results
from ldsvm.experiment.compare.judge import Judged, fit_and_judge, fit_on_one_thread
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.schema import Config, JudgeConfig, LimitsConfig, MethodConfig, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.failure import Failure, failure_of
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.learned import StudyFile
from ldsvm.experiment.search.search import Executor, OnTrials, best, run_search
from ldsvm.experiment.search.trial import Job, OnStep, Trial, fit_job
from ldsvm.experiment.search.worker import Runner, Stopped
from ldsvm.experiment.sources import check_code, code
from ldsvm.methods import MissingPackage, lookup
from ldsvm.methods.memory import NotRun
from ldsvm.methods.memory_limit import MemoryLimit
from ldsvm.metrics import Answers, Costs

LATENT, PLANE, ANSWERS, MODEL = "latent.npy", "plane.npy", "answers.npz", "model.skops"
IN_FILES = ("model", "latent", "plane", "stored", "answers")  # what of a Judged has a file of its own
OTHER_MODEL = "estimator.skops"  # a fitted classifier by import path; MODEL is always ours
LAYOUT = 4  # raise it when what a result's folder holds changes


def place(config: Config, prepared: Prepared, problem: ProblemConfig, name: str) -> Path:
    """Return the folder of that result; experiments that share a method, its data and its settings share the folder."""
    digest = _key(config, prepared, problem, name)[:16]
    return config.paths.runs / "results" / "methods" / f"{slug(problem.name)}-{slug(name)}-{digest}"


def _key(config: Config, prepared: Prepared, problem: ProblemConfig, name: str) -> str:
    """Return the digest of everything that decides what the method `name` achieves on one split of one problem.

    Also of what decides only its times, such as the number of threads: they are part of the result.
    """
    method, split = config.methods[name], prepared.seed - config.seed
    facts = [
        LAYOUT, code(), name, method.model_dump(), method.space, problem.model_dump(), prepared.digest, prepared.seed,
        split, config.judge.model_dump(), config.limits.model_dump(), config.n_jobs, lookup(method.estimator).version(),
        config.metrics, config.search.objective, *map(source_digest, config.metric_paths), config.mistakes,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=plain).encode()).hexdigest()


def known(config: Config, prepared: Prepared, problem: ProblemConfig, name: str) -> bool:
    """Return whether an earlier run has left this very result; one that says why there is none does not count."""
    found = None if config.refresh else results.find(place(config, prepared, problem, name))
    return found is not None and found.failure is None


def settle(
    config: Config,
    prepared: Prepared,
    problem: ProblemConfig,
    name: str,
    *,
    on_trials: OnTrials,
    on_step: OnStep,
    runner: Runner,
    executor: Executor | None = None,
) -> None:
    """Compute the result of one method on one split and write it to its folder, completely or not at all."""
    result, judged = compete(config, prepared, problem, name, runner, on_trials, on_step, executor)
    check_code()
    results.write(result, place(config, prepared, problem, name), partial(_keep, judged, result.split == 0))


def give_up(
    config: Config, splits: Sequence[Prepared], problem: ProblemConfig, name: str, failure: Failure, since: float
) -> None:
    """Write why a method has no result on the remaining splits. since: when the run began."""
    estimator = config.methods[name].estimator
    for prepared in splits:
        folder, number = place(config, prepared, problem, name), prepared.seed - config.seed
        found = results.find(folder)
        if found is None or found.failure or (config.refresh and found.started < since):
            results.write(Result(problem.name, name, estimator, [], number, prepared.digest, failure=failure), folder)


def collect(config: Config, splits: Sequence[Prepared], problem: ProblemConfig) -> list[Outcome]:
    """Return the outcomes of one problem that are there, in the order of the methods: with a result for every split."""
    found = [outcome(config, splits, problem, name) for name in config.methods]
    return [one for one in found if one is not None]


def outcome(config: Config, splits: Sequence[Prepared], problem: ProblemConfig, name: str) -> Outcome | None:
    """Return the outcome of one method, None unless every split has a result."""
    folders = [place(config, prepared, problem, name) for prepared in splits]
    found = [result for folder in folders if (result := results.find(folder)) is not None]
    return Outcome(folders[0], tuple(found)) if len(found) == len(folders) else None


def _keep(judged: Judged | None, first: bool, folder: Path) -> None:
    """Keep where training rows lie in the latent space and in the plane of the scores, the answers, and our model."""
    if judged is None or not first:
        return
    if judged.latent is not None:
        np.save(folder / LATENT, judged.latent)
    if judged.plane is not None:
        np.save(folder / PLANE, judged.plane)
    if judged.answers is not None:
        parts = {name: part for name, part in vars(judged.answers).items() if part is not None}
        np.savez(folder / ANSWERS, **{**parts, "classes": np.array(judged.answers.classes.tolist())})
    if judged.model is not None:
        from ldsvm.experiment.storing import dumps

        (folder / MODEL).write_bytes(dumps(judged.model))
    if judged.stored is not None:
        (folder / OTHER_MODEL).write_bytes(judged.stored)


def answers(folder: Path) -> Answers | None:
    """Return what the method of a result says of the test set, None where only its error was measured."""
    if not (folder / ANSWERS).is_file():
        return None
    with np.load(folder / ANSWERS) as kept:
        parts = {name: kept[name] for name in kept.files}
    costs = parts.pop("costs", None)
    return Answers(**parts, costs=None if costs is None else Costs(*costs.tolist()))


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

    def judge(self, job: Job, how: JudgeConfig, metrics: Sequence[str], on_step: OnStep) -> Judged:
        """Fit the single point of a job and judge it."""
        judged: Judged = self.runner.call(
            fit_and_judge, job, self.prepared, self.labels, how, metrics,
            limit_s=(3 if how.refit else 2) * self.limits.fit_s, memory=self._memory(job), tell=on_step,
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
    set alone, so that every method's `train_s` is the time of one fit from nothing. With `judge.refit` another fit, to
    training and validation rows together, gives the model that is judged.
    """
    method, number = config.methods[name], prepared.seed - config.seed
    match = Match(prepared, problem.labels, config.limits, runner)
    result = Result(problem.name, name, method.estimator, [], number, prepared.digest, time.time())
    try:
        lookup(method.estimator).make()
    except MissingPackage as error:
        return replace(result, failure=failure_of(error)), None
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
    study = f"{result.problem}, {result.method}, split {result.split}"
    trials = _search(config, match, method, study, on_trials, on_step, executor)
    # The work of all points: it depends neither on how many ran at a time nor on what a journal had.
    result = replace(result, trials=trials, search_s=sum(trial.seconds for trial in trials))
    try:
        point = best(trials).params
        job = Job(method, (point,), (0,), seed, config.n_jobs, costs=config.mistakes)
        judged = match.judge(job, config.judge, config.metrics, on_step)
    except Exception as error:
        return replace(result, seconds=time.time() - started, failure=failure_of(error)), None
    done = replace(
        result,
        params={**method.params, **point},
        train_alone_s=judged.train_s if job.alone == job else match.train_alone(job.alone),
        **{
            key: value
            for key, value in vars(judged).items()
            if key not in ("model", "latent", "plane", "stored", "answers")
        },
    )
    return replace(done, seconds=time.time() - started), judged


def _search(
    config: Config,
    match: Match,
    method: MethodConfig,
    study: str,
    on_trials: OnTrials,
    on_step: OnStep,
    executor: Executor | None,
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
        study_file=StudyFile(config.paths.runs / "studies" / f"{config.name}.db", study),
        objective=config.search.objective,
        costs=config.mistakes,
    )
    if executor is not None:
        try:
            return find(partial(fit_job, prepared=match.prepared, labels=match.labels), executor=executor)
        except ClusterFailed as error:
            if config.search.without_ray == "fail":
                raise
            warnings.warn(f"{error} Trials run one after the other instead.", UserWarning, stacklevel=2)
    return find(partial(match.search, on_step=on_step))


@contextmanager
def _joined(method: MethodConfig) -> Iterator[MethodConfig]:
    """Let a method's fits find a Ray, see `ExecutorConfig.joined`."""
    if method.executor is None:
        yield method
        return
    with method.executor.joined() as executor:
        yield method.model_copy(update={"executor": executor})
