"""One piece of a search: fit, measure on the validation set, return plain values. Knows no framework, never raises."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from threadpoolctl import threadpool_limits

from ldsvm.blocks.row_blocks import RowBlocks
from ldsvm.datasets import relabel
from ldsvm.datasets.stored_arrays import plain
from ldsvm.datasets.transformers import source_digest
from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.config.spaces import ROWS
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.failure import Failure, failure_of
from ldsvm.experiment.search.nested_rows import nested_rows
from ldsvm.experiment.search.objective import loss
from ldsvm.experiment.sources import code
from ldsvm.mac.state import MU_LIMIT
from ldsvm.methods import check_memory, lookup, memory_limit
from ldsvm.metrics import DEFAULT, Costs, paths
from ldsvm.model_answers import labels_of

LAYOUT = 2  # raise it when what a trial holds, or how it is computed, changes
Arrays = NDArray[Any]
OnStep = Callable[[dict[str, Any]], None]
RESUMED = "It continued an earlier run that was killed; its time counts from then on."


@dataclass(frozen=True)
class Data:
    """Training inputs X (N, D) and labels y (N,), and the validation set that only chooses and stops.

    n_test: how many rows the judge will predict, for the estimate of memory; the rows themselves are not here.
    reading: how the labels, and answers, are read where errors are counted, see `ldsvm.datasets.relabel`. joined:
    whether the validation rows train too, so that nothing stops a fit.
    """

    X: Arrays
    y: Arrays
    X_valid: Arrays
    y_valid: Arrays
    n_test: int = 0
    reading: str = "original"
    joined: bool = False

    def valid_error(self, model: Any) -> float:
        """Return the share of the validation set that a fitted model gets wrong."""
        answers, labels = (relabel(y, self.reading) for y in (labels_of(model, self.X_valid), self.y_valid))
        return float(np.mean(answers != labels))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Training rows N, the most rows to be predicted at once, inputs D."""
        n = sum(len(y) for _, y in self.parts)
        return n, max(len(self.y_valid), self.n_test), int(self.X.shape[1])

    @property
    def parts(self) -> list[tuple[Arrays, Arrays]]:
        """The arrays that train, inputs and labels."""
        return [(self.X, self.y), *([(self.X_valid, self.y_valid)] if self.joined else [])]

    @property
    def rows(self) -> tuple[Any, Arrays]:
        """All inputs and labels that train."""
        if not self.joined:
            return self.X, self.y
        X = vstack([self.X, self.X_valid]) if issparse(self.X) else np.concatenate([self.X, self.X_valid])
        return X, np.concatenate([self.y, self.y_valid])

    @property
    def eval_set(self) -> tuple[Arrays, Arrays] | None:
        """The validation set as `fit` takes it."""
        return None if self.joined else (self.X_valid, self.y_valid)

    def subset(self, n: int, seed: int) -> Data:
        """Return the data with n of the training rows; all of them when there are no more. See `nested_rows`."""
        if n >= len(self.y):
            return self
        rows = nested_rows(self.y, n, seed)
        return replace(self, X=self.X[rows], y=self.y[rows])


@dataclass(frozen=True)
class Job:
    """What one worker computes: one point of the grid, or several that differ only in C and share their work.

    points: parameter values by name; orders: their places in the grid. resource: how much each fit gets of what the
    method's strategy names; None: everything. checkpoint: a file from which a fit over blocks of rows goes on and which
    it removes when it ends well, None for none. objective: the metric that chooses, see `loss`; costs: of
    mistakes.
    """

    method: MethodConfig
    points: tuple[dict[str, Any], ...]
    orders: tuple[int, ...]
    seed: int
    n_jobs: int
    resource: int | None = None
    checkpoint: Path | None = None
    objective: str = DEFAULT
    costs: Costs | None = None

    @property
    def alone(self) -> Job:
        """The same on one thread of this process."""
        executor = self.method.executor
        method = self.method.model_copy(update={"executor": executor and executor.serial})
        return replace(self, method=method, n_jobs=1)

    @property
    def limits(self) -> dict[str, int]:
        """The resource by its name, such as {"n_samples": 500}; empty when each fit gets everything."""
        strategy = self.method.strategy
        if self.resource is None or strategy is None or strategy.resource is None:
            return {}
        return {strategy.resource: self.resource}

    def key(self, order: int, place: str = "") -> str:
        """Return the digest of everything that decides the trial of one point, that at `order` of the grid.

        place: names the data and their labelling. The number of threads is not part of it, nor is where in the grid the
        point lies, nor whether the file fixes a value, searches it, or gives it to a rung as its resource; our own code
        and the versions of the packages that decide are, see `sources.code`.

        Examples
        --------
        >>> searched = Job(MethodConfig(estimator="linear_svm"), ({"C": 1.0},), (3,), 0, 1)
        >>> fixed = Job(MethodConfig(estimator="linear_svm", params={"C": 1.0}), ({},), (0,), 0, 2)
        >>> searched.key(3) == fixed.key(0), searched.key(3) == searched.key(3, "other data")
        (True, False)
        """
        method, point = self.method, dict(zip(self.orders, self.points, strict=True))[order]
        facts = [LAYOUT, code(), method.estimator, {**method.params, **point, **self.limits}, self.seed, place]
        if method.executor is not None:  # sums over blocks end in other digits; where the workers are does not matter
            facts.append(method.executor.model_dump(exclude={"address"}))
        if version := lookup(method.estimator).version():
            facts.append(version)
        if self.objective != DEFAULT:
            facts += [
                self.objective,
                *map(source_digest, paths([self.objective])),
                *([self.costs] if self.costs else []),
            ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=plain).encode()).hexdigest()


@dataclass(frozen=True)
class Trial:
    """One point of the grid after its fit: a row of the search table, also when it failed.

    valid_error: fraction, None if failed. n_basis: see the registry. train_s: seconds of the fit, seconds: of the
    whole trial; an equal share of the job's for points that were fitted together. history: one dict per training
    iteration, empty for one-shot methods. failure: None if it succeeded. notes: warnings of the fit. resource: how much
    it got of what the method's strategy names; None: everything, as whatever is chosen must have had. peak_mib: memory
    that the fit, or all that were fitted together, took at its peak, in MiB; None where nothing tells. loss: what the
    search minimises, None where that is valid_error.
    """

    params: dict[str, Any]
    order: int
    valid_error: float | None = None
    n_basis: int | None = None
    train_s: float = 0.0
    seconds: float = 0.0
    stop_reason: str | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    failure: Failure | None = None
    notes: list[str] = field(default_factory=list)
    resource: int | None = None
    peak_mib: float | None = None
    loss: float | None = None


@dataclass(frozen=True)
class Fit:
    """A fitted estimator with the seconds its training took and the warnings it gave.

    peak_mib: memory that the training took at its peak, see `memory_limit.watch`.
    """

    model: Any
    seconds: float
    notes: list[str]
    peak_mib: float | None


def fit_job(job: Job, prepared: Prepared, labels: str, on_step: OnStep | None = None) -> list[Trial]:
    """Fit every point of a job; for another process."""
    return run_job(job, training_data(prepared, labels, job.method.labels), on_step)


def training_data(prepared: Prepared, labels: str, learnt: str | None = None) -> Data:
    """Return the training and validation arrays of one problem. The test set is not among them on purpose.

    labels: in which errors are counted. learnt: those of the arrays, None for the same.
    """
    train, validation = (prepared.arrays(part, learnt or labels) for part in ("train", "validation"))
    return Data(*train, *validation, n_test=prepared.sizes["test"], reading=labels)


def run_job(job: Job, data: Data, on_step: OnStep | None = None) -> list[Trial]:
    """Fit every point of a job and return one trial for each; a failure becomes a row with its reason.

    on_step: called with the facts of each training iteration where the method has iterations, to show progress.
    """
    start = time.perf_counter()
    try:
        fits = _fits(*_limited(job, data), on_step)
        trials = [_trial(job, i, fit, data) for i, fit in enumerate(fits)]
        share = (time.perf_counter() - start) / len(trials)
        return [replace(trial, seconds=share) for trial in trials]
    except Exception as error:
        failure, share = failure_of(error), (time.perf_counter() - start) / len(job.points)
        points = zip(job.points, job.orders, strict=True)
        return [Trial(dict(p), order, seconds=share, failure=failure) for p, order in points]


def _fits(job: Job, data: Data, on_step: OnStep | None) -> list[Fit]:
    if len(job.points) > 1:
        return _fit_path(job, data, on_step)
    return [fit_point(job, job.points[0], data, on_step)]


def _limited(job: Job, data: Data) -> tuple[Job, Data]:
    """Return the job with its resource as a parameter of each point, or the data with so many training rows."""
    limits = job.limits
    if ROWS in limits:
        return job, data.subset(limits[ROWS], job.seed)
    return replace(job, points=tuple({**point, **limits} for point in job.points)), data


def fit_point(job: Job, point: dict[str, Any], data: Data, on_step: OnStep | None = None) -> Fit:
    """Fit one point on the training set; the validation set is passed only to methods that stop by it."""
    _check_memory(job, point, data)
    estimator = job.method.make(point, seed=job.seed, n_jobs=job.n_jobs)
    rows, extra = _arguments(job, data, on_step)
    begun = job.checkpoint is not None and job.checkpoint.exists()
    peak, start = memory_limit.watch(), time.perf_counter()
    # Not every library knows n_jobs, and threads that wait for a processor cost more than they bring.
    with threadpool_limits(job.n_jobs), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(*rows, **extra)
    if job.checkpoint is not None:
        job.checkpoint.unlink(missing_ok=True)  # a fit that could go on for longer keeps it, but this trial is done
    seconds, remarks = time.perf_counter() - start, [*([RESUMED] if begun else []), *notes(caught)]
    return Fit(estimator, seconds, remarks, None if job.method.on_ray else peak())


def _arguments(job: Job, data: Data, on_step: OnStep | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what `fit` is called with: arrays, or blocks of rows and who works on them."""
    if not lookup(job.method.estimator).iterative:
        return data.rows, {}
    executor = job.method.executor
    if executor is None:
        return data.rows, {"eval_set": data.eval_set, "callback": on_step}
    tell = on_step or (lambda news: None)
    if job.checkpoint is not None:
        job.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    blocks = tuple(block for part in data.parts for block in executor.blocks(*part).blocks)
    return (RowBlocks(blocks),), {
        "eval_set": None if data.eval_set is None else executor.blocks(*data.eval_set),
        "callback": on_step,
        "executor": executor.make(lambda text: tell({"doing": text})),
        "checkpoint": job.checkpoint,
    }


def fit_again(job: Job, first: Fit, data: Data, on_step: OnStep | None = None) -> Fit:
    """Fit a job's single point once more, to training and validation rows together.

    Nothing stops this fit, so one of iterations does as many as gave the model of the first.
    """
    point, method = job.points[0], lookup(job.method.estimator)
    if method.iterative:
        values = job.method.make(point, seed=job.seed, n_jobs=job.n_jobs).get_params()
        names = {name.rpartition("__")[2]: name for name in values}  # of a step of a pipeline, or of the estimator
        last = {"max_iter": max(1, first.model.best_iter_), "early_stopping": False}
        if values[names["n_basis"]] == "auto":
            last["n_basis"] = method.count(first.model)
        if values[names["mu_max"]] == "auto":
            last["mu_max"] = MU_LIMIT  # which it is with validation rows
        point = {**point, **{names[name]: value for name, value in last.items()}}
    return fit_point(job, point, replace(data, joined=True), on_step)


def _fit_path(job: Job, data: Data, on_step: OnStep | None) -> list[Fit]:
    from ldsvm.path import fit_path

    _check_memory(job, job.points[0], data)  # C, in which they differ, has no say in it
    estimator = job.method.make(job.points[0], seed=job.seed, n_jobs=job.n_jobs)
    values = [point["C"] for point in job.points]
    peak, start = memory_limit.watch(), time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = None if on_step is None else lambda C, info: on_step({"C": C, **info})
        models = fit_path(estimator, data.X, data.y, values, eval_set=data.eval_set, callback=report)
    seconds, peak_mib = (time.perf_counter() - start) / len(models), peak()
    return [Fit(model, seconds, notes(caught), peak_mib) for model in models]


def _check_memory(job: Job, point: dict[str, Any], data: Data) -> None:
    params, free = {**job.method.params, **point}, memory_limit.available()
    n, m, d = data.shape
    if job.method.executor is not None:  # of more rows it keeps only what there is room for
        n, m = (min(rows, job.method.executor.rows) for rows in (n, m))
    check_memory(job.method.estimator, params, n, m, d, available=free)


def _trial(job: Job, i: int, fit: Fit, data: Data) -> Trial:
    return Trial(
        params=dict(job.points[i]),
        order=job.orders[i],
        valid_error=data.valid_error(fit.model),
        n_basis=lookup(job.method.estimator).count(fit.model),
        train_s=fit.seconds,
        stop_reason=reason(fit.model),
        history=[dict(row) for row in getattr(fit.model, "history_", [])],
        notes=fit.notes,
        peak_mib=fit.peak_mib,
        loss=loss(job.objective, job.costs, fit.model, data.X_valid, data.y_valid, data.reading),
    )


def reason(model: Any) -> str | None:
    """Return why an iterative training stopped, None for one-shot methods."""
    found = getattr(model, "stop_reason_", None)
    return None if found is None else str(getattr(found, "value", found))


def notes(caught: list[warnings.WarningMessage]) -> list[str]:
    """Return each different warning once, as one line."""
    return list(dict.fromkeys(f"{w.category.__name__}: {str(w.message).strip().splitlines()[0]}" for w in caught))
