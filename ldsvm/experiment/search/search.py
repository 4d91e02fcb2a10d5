"""From a method's space in a file to its best point, through an executor that works like `map`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.config.spaces import ROWS, Point, draw, grid
from ldsvm.experiment.search.failure import Failure, KnownFailure
from ldsvm.experiment.search.halving import Ask, Halving, rank
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.learned import Learned, StudyFile
from ldsvm.experiment.search.trial import Job, Trial
from ldsvm.methods import lookup
from ldsvm.metrics import DEFAULT, Costs

Executor = Callable[[Callable[[Job], list[Trial]], Sequence[Job]], Iterable[list[Trial]]]

OnTrials = Callable[[list[Trial], int], None]


class SearchFailed(KnownFailure):
    """No point could be fitted; the kind is that of the first failure."""


def plan(
    method: MethodConfig, *, seed: int, rows: int | None = None, study_file: StudyFile | None = None
) -> tuple[list[Point], Halving | Learned]:
    """Return the points of a search (all of the grid, or random ones) and the strategy that says which to fit.

    With a sampler the points are those of the first batch, and become more. study_file: for optuna-dashboard.
    """
    strategy = method.strategy
    if strategy is not None and strategy.sampler is not None:
        learned = Learned(method.space, strategy, seed, study_file)
        return learned.points, learned
    count, resource = (None, None) if strategy is None else (strategy.n_candidates, strategy.resource)
    points = grid(method.space) if count is None else draw(method.space, count, seed)
    if resource == ROWS:
        if rows is not None and strategy is not None and rows <= (strategy.min_resources or 0):
            text = (
                f"strategy.min_resources is {strategy.min_resources}, but there are only {rows} training rows: every "
                "point is fitted to all of them."
            )
            warnings.warn(text, UserWarning, stacklevel=3)
        return points, Halving(len(points), strategy, math.inf if rows is None else rows)
    return points, Halving(len(points), strategy, math.inf if resource is None else method.settings[resource])


def jobs(
    method: MethodConfig,
    points: Sequence[Point],
    asked: Sequence[Ask],
    *,
    seed: int,
    n_jobs: int,
    objective: str = DEFAULT,
    costs: Costs | None = None,
) -> list[Job]:
    """Group what is asked into jobs: points that differ only in C, where the method can share their work."""
    shared = lookup(method.estimator).iterative and method.executor is None
    groups: dict[Any, list[tuple[int, Point]]] = {}
    for order, _ in asked:
        point = points[order]
        key = tuple((k, v) for k, v in point.items() if k != "C") if shared and "C" in point else order
        groups.setdefault(key, []).append((order, point))
    found = []
    for group in groups.values():
        orders, together = zip(*group, strict=True)
        # A rung's points have the same resource.
        found.append(Job(method, together, orders, seed, n_jobs, asked[0][1], objective=objective, costs=costs))
    return found


def run_search(
    method: MethodConfig,
    run: Callable[[Job], list[Trial]],
    *,
    seed: int,
    n_jobs: int,
    executor: Executor = map,
    on_trials: OnTrials = lambda done, total: None,
    journal: Journal | None = None,
    place: str = "",
    rows: int | None = None,
    checkpoints: Path | None = None,
    study_file: StudyFile | None = None,
    objective: str = DEFAULT,
    costs: Costs | None = None,
) -> list[Trial]:
    """Fit the points of a method's space as its strategy asks, and return the trials, rung by rung in their order.

    They are the same for any executor and journal. run: fits the points of one job and never raises, see
    `trial.run_job`. executor: `map` runs the jobs here, one after the other; anything that calls a function on each
    job and yields the results in any order will do; it gets one rung at a time. on_trials: called with the trials so
    far and how many are planned, first for those of the journal, then after each job. journal: gives the trials of an
    earlier search and gets every new one as soon as its job is done; place: names the data and their labelling in it.
    rows: of the training set; a rung with as many is the last one. checkpoints: folder for those of fits over blocks of
    rows. study_file: where optuna-dashboard finds a search with a sampler.
    """
    journal = Journal(None) if journal is None else journal
    points, halving = plan(method, seed=seed, rows=rows, study_file=study_file)
    done: list[Trial] = []
    while asked := halving.ask():
        rung: list[Trial] = []
        wanted = jobs(method, points, asked, seed=seed, n_jobs=n_jobs, objective=objective, costs=costs)
        work = [_kept(job, place, checkpoints) for job in wanted]
        for trials in _finished(work, run, executor, journal, place):
            rung += trials
            on_trials([*done, *rung], halving.total)
        done += sorted(rung, key=lambda trial: trial.order)
        halving.tell(rung)
    return done


def _kept(job: Job, place: str, folder: Path | None) -> Job:
    """Give a fit over blocks of rows a checkpoint whose name nothing but the same fit has."""
    if folder is None or job.method.executor is None:
        return job
    return replace(job, checkpoint=folder / f"checkpoint-{job.key(job.orders[0], place)[:16]}.npz")


def _finished(
    work: list[Job], run: Callable[[Job], list[Trial]], executor: Executor, journal: Journal, place: str
) -> Iterator[list[Trial]]:
    """Yield the trials of the journal, then those of each job once the journal has them."""
    known, missing = _known(work, journal, place)
    if known:
        yield known
    jobs = {order: job for job in missing for order in job.orders}
    for trials in executor(run, missing):
        trials = [replace(trial, resource=jobs[trial.order].resource) for trial in trials]
        journal.extend({jobs[trial.order].key(trial.order, place): trial for trial in trials})
        yield trials


def _known(work: Sequence[Job], journal: Journal, place: str) -> tuple[list[Trial], list[Job]]:
    """Return the trials that the journal holds, and the jobs, or what is left of them, that are still to be done.

    Points that are fitted together can be fitted apart with the same result, see `ldsvm.fit_path`. But an error, or
    the time limit, is of all points of a job at once: it counts only while none of them is missing.
    """
    done: list[Trial] = []
    left: list[Job] = []
    for job in work:
        found = _found(job, journal, place)
        if len(found) < len(job.points):
            found = {order: trial for order, trial in found.items() if trial.failure is None}
        done.extend(found.values())
        rest = [(p, o) for p, o in zip(job.points, job.orders, strict=True) if o not in found]
        if rest:
            left.append(replace(job, points=tuple(p for p, _ in rest), orders=tuple(o for _, o in rest)))
    return done, left


def _found(job: Job, journal: Journal, place: str) -> dict[int, Trial]:
    """Return a job's trials that the journal holds by their order, with point, order and resource as they are here."""
    trials = {order: journal.find(job.key(order, place)) for order in job.orders}
    points = dict(zip(job.orders, job.points, strict=True))
    found = {order: trial for order, trial in trials.items() if trial is not None}
    return {o: replace(t, params=dict(points[o]), order=o, resource=job.resource) for o, t in found.items()}


def best(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the smallest loss of those that had everything; ties: see `halving.rank`.

    Raises SearchFailed with the first failure when every such trial failed, or there was none for failures before.
    """
    good = [trial for trial in trials if trial.valid_error is not None and trial.resource is None]
    if good:
        return min(good, key=rank)
    failures = [trial.failure for trial in trials if trial.failure is not None]
    share = "all" if len(failures) == len(trials) else f"{len(failures)} of"
    count = f"{share} {len(trials)} trials failed, the first: " if len(trials) > 1 else ""
    raise SearchFailed(Failure(failures[0].kind, f"{count}{failures[0].sentence}"))
