"""From a grid in a file to its best point, through an executor that works like `map`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ldsvm.baselines import lookup
from ldsvm.experiment.config import MethodConfig
from ldsvm.experiment.journal import Journal, key
from ldsvm.experiment.trial import Job, Trial

Executor = Callable[[Callable[[Job], list[Trial]], Sequence[Job]], Iterable[list[Trial]]]

OnTrials = Callable[[list[Trial], int], None]


class SearchFailed(RuntimeError):
    """No point of the grid could be fitted; the message is one sentence."""


def grid(method: MethodConfig) -> list[dict[str, Any]]:
    """Return every combination of the values to try; one empty point when nothing is searched."""
    return [dict(zip(method.space, values, strict=True)) for values in itertools.product(*method.space.values())]


def jobs(method: MethodConfig, *, seed: int, n_jobs: int) -> list[Job]:
    """Group the grid into jobs: points that differ only in C go together where the method can share their work."""
    points = list(enumerate(grid(method)))
    groups: dict[Any, list[tuple[int, dict[str, Any]]]] = {}
    for order, point in points:
        shared = lookup(method.estimator).iterative and "C" in point
        key = tuple((k, v) for k, v in point.items() if k != "C") if shared else order
        groups.setdefault(key, []).append((order, point))
    return [Job(method, tuple(p for _, p in g), tuple(o for o, _ in g), seed, n_jobs) for g in groups.values()]


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
) -> list[Trial]:
    """Fit every point of the grid and return the trials in grid order, the same for any executor and journal.

    run: fits the points of one job and never raises, see `trial.run_job`. executor: `map` runs the jobs here, one after
    the other; anything that calls a function on each job and yields the results in any order will do. on_trials:
    called with the trials so far and the grid's size, first for those of the journal, then after each job. journal:
    gives the trials of an earlier search and gets every new one as soon as its job is done; place: names the data and
    their labelling in it.
    """
    journal = Journal(None) if journal is None else journal
    work = jobs(method, seed=seed, n_jobs=n_jobs)
    total = sum(len(job.points) for job in work)
    done, missing = _known(work, journal, place)
    if done:
        on_trials(done, total)
    keys = {order: key(job, order, place) for job in missing for order in job.orders}
    for trials in executor(run, missing):
        for trial in trials:
            journal.add(keys[trial.order], trial)
        done.extend(trials)
        on_trials(done, total)
    return sorted(done, key=lambda trial: trial.order)


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
    """Return the trials of a job that the journal holds by their order, with point and order as this grid has them."""
    trials = {order: journal.find(key(job, order, place)) for order in job.orders}
    points = dict(zip(job.orders, job.points, strict=True))
    return {o: replace(t, params=dict(points[o]), order=o) for o, t in trials.items() if t is not None}


def best(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the smallest validation error; ties: fewer basis functions, smaller C, earlier in the grid.

    Raises SearchFailed with the first reason when every trial failed.
    """
    good = [trial for trial in trials if trial.valid_error is not None]
    if not good:
        count = f"all {len(trials)} trials failed, the first: " if len(trials) > 1 else ""
        raise SearchFailed(f"{count}{trials[0].failure}")
    return min(good, key=lambda t: (t.valid_error, t.n_basis or 0, _penalty(t.params), t.order))


def _penalty(point: dict[str, Any]) -> float:
    """Return C, of the classifier itself or of a step of it."""
    return next((value for key, value in point.items() if key.split("__")[-1] == "C"), 0.0)
