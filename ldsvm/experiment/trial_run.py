"""Find problems in an experiment before it runs: its data, its features, and one small fit of each method."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from ldsvm import memory
from ldsvm.datasets import DataError
from ldsvm.datasets.folds import FEW_TEST
from ldsvm.datasets.leaks import leaks
from ldsvm.datasets.summary import sentences
from ldsvm.experiment.compare.judge import is_cold, warm, wilson
from ldsvm.experiment.config.schema import Config, MethodConfig
from ldsvm.experiment.config.spaces import Point
from ldsvm.experiment.config.split import CrossValidationConfig, SplitConfig
from ldsvm.experiment.feature_arrays import PARTS
from ldsvm.experiment.prepared import Prepared, divided, draw_split, load_source
from ldsvm.experiment.search.failure import Kind, KnownFailure
from ldsvm.experiment.search.search import plan
from ldsvm.experiment.search.trial import Data, Job, Trial, run_job, training_data
from ldsvm.experiment.search.worker import Runner, Tell
from ldsvm.methods import MissingPackage, check_memory, lookup
from ldsvm.methods.memory import NotRun
from ldsvm.methods.memory_limit import MemoryLimit

ROWS = 500  # that a method is tried on
WARM_SECONDS = 600.0
AGAIN_SECONDS = 3.0  # a fit that is quicker is done twice
FIT_SECONDS = 15.0  # of one such fit
LOOKED_AT = 1_000  # points of a search whose memory is estimated


@dataclass(frozen=True)
class Remark:
    """One sentence. kind: "fact", "odd" (worth a look) or "wrong" (to be changed first). about: "data" or a method."""

    kind: str
    about: str
    text: str


def look_over(config: Config, runner: Runner, on_step: Callable[[str], None] = lambda text: None) -> Iterator[Remark]:
    """Yield remarks on an experiment; stop at the first that makes the rest impossible.

    The prepared data stay in the cache, where the flow finds them. runner: a process that fits and can be stopped.
    on_step: called with what is being done.
    """
    try:
        on_step("read the data")
        source = load_source(config)
        split = draw_split(config, source, config.seed)
        on_step("fit the feature steps")
        prepared = divided(config, source, split, config.seed)
    except DataError as error:
        yield from (Remark("wrong", "data", line) for line in str(error).splitlines())
        return
    rows = source.data.train
    yield from (Remark("fact", "data", text) for text in sentences(prepared.summary))
    sizes = ", ".join(f"{prepared.sizes[part]:,} {part} rows" for part in PARTS)
    kind = config.split.kind + (f", the first of {config.split.count} splits" if config.split.count > 1 else "")
    yield Remark("fact", "split", f"{sizes} ({kind}).".replace("train ", "training "))
    yield from _few_test_rows(config.split, prepared.sizes["test"])
    yield from (Remark("fact", "features", f"{text}.") for text in prepared.features)
    roles = ("Columns:", "Left out:")
    notes = [text.removeprefix("data: ") for text in prepared.notes]
    yield from (Remark("fact" if text.startswith(roles) else "odd", "data", sentence(text)) for text in notes)
    yield from (Remark("odd", "data", sentence(found.text)) for found in leaks(rows))
    if any(lookup(method.estimator).iterative for method in config.methods.values()):
        on_step("compile the kernels (about a minute, once per machine)" if is_cold() else "load ldsvm")
        with suppress(KnownFailure):  # then the fit says what is wrong
            runner.call(warm, limit_s=WARM_SECONDS)
    for problem in config.problems:
        for name, method in config.methods.items():
            on_step(f"try {name}")
            about = name if len(config.problems) == 1 else f"{name}, {problem.name}"
            yield from _tried(config, about, method, prepared, problem.labels, runner)


def _few_test_rows(split: SplitConfig | CrossValidationConfig, n: int) -> Iterator[Remark]:
    if isinstance(split, CrossValidationConfig) or split.kind == "time" or split.test == "official" or n >= FEW_TEST:
        return
    wrong = max(1, n // 10)
    low, high = (100 * end for end in wilson(wrong, n))
    text = f"Few test rows: with {wrong} of {n} wrong, the 95 % interval of the error is {low:.0f} to {high:.0f} %"
    yield Remark("odd", "split", f"{text}; to test on all rows, set split.kind to cross_validation (no production).")


def _tried(
    config: Config, name: str, method: MethodConfig, prepared: Prepared, labels: str, runner: Runner
) -> Iterator[Remark]:
    """Yield remarks from one fit on at most ROWS rows: how long a search takes, what memory it lacks, why it fails."""
    try:
        lookup(method.estimator).make()
    except MissingPackage as error:
        yield Remark("odd", name, f"{sentence(str(error))}.")
        return
    data = training_data(prepared, labels, method.labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        points, halving = plan(method, seed=config.seed, rows=len(data.y))
    yield from (Remark("odd", name, str(warning.message)) for warning in caught)
    lacking = list(_memory(config, name, method, points, data))
    yield from lacking
    if any(remark.kind == "wrong" for remark in lacking):
        return
    method = method.model_copy(update={"executor": None})  # all rows in memory, and no Ray
    job = Job(method, (points[len(points) // 2],), (0,), config.seed, config.trial_jobs)
    n = few(data)
    limit = MemoryLimit(config.limits.fit_mib, config.trial_jobs)
    try:
        [trial] = runner.call(try_job, job, prepared, labels, limit_s=FIT_SECONDS, memory=limit)
    except KnownFailure as error:  # it had to be stopped
        trial = Trial({}, 0, failure=error.failure)
    if trial.failure is not None:
        slow = trial.failure.kind == Kind.TIME_LIMIT
        text = f"takes more than {FIT_SECONDS:g} s" if slow else f"fails: {str(trial.failure).removesuffix('.')}"
        yield Remark("odd" if slow else "wrong", name, f"one fit on {n:,} rows {text}.")
        return
    yield from _expected(config, name, method, trial, n, len(data.y), halving.total * config.split.count)


def _memory(config: Config, name: str, method: MethodConfig, points: Sequence[Point], data: Data) -> Iterator[Remark]:
    """Yield a remark on fits that would not run for lack of memory; fits over blocks of rows keep what fits in it."""
    room = config.limits.fit_mib
    available = memory.available() if room is None else int(room * memory.MIB)
    refused = []
    for point in points[:LOOKED_AT] if method.executor is None else ():
        try:
            check_memory(method.estimator, {**method.params, **point}, *data.shape, available=available)
        except NotRun as error:
            refused.append(str(error))
    if refused:
        every = "all" if len(refused) == len(points) else f"{len(refused):,} of {len(points):,}"
        yield Remark("wrong" if every == "all" else "odd", name, f"{every} fits of the search are {refused[-1]}.")


def _expected(
    config: Config, name: str, method: MethodConfig, trial: Trial, n: int, rows: int, fits: int
) -> Iterator[Remark]:
    one = trial.train_s * (rows / n) ** growth(method)
    error = 100 * (trial.valid_error or 0.0)
    said = f"one fit on {n:,} rows takes {trial.train_s:.1f} s and has {error:.1f} % validation error"
    search = f"{fits:,} fits on {rows:,} rows" if fits > 1 else f"a fit on {rows:,} rows"
    yield Remark("fact", name, f"{said}; the search ({search}) will take roughly {span(one * fits)}.")
    yield from (Remark("odd", name, f"{note.removesuffix('.')}.") for note in trial.notes)
    for what, key, seconds in (("one fit", "fit_s", one), ("the search", "task_s", one * fits)):
        limit = getattr(config.limits, key)
        if seconds > limit:
            yield Remark("odd", name, f"{what} may take {span(seconds)}; limits.{key} stops it after {span(limit)}.")


def few(data: Data) -> int:
    """Return how many training rows a method is tried on: two of each class at least."""
    return min(len(data.y), max(ROWS, 2 * len(np.unique(data.y))))


def try_job(job: Job, prepared: Prepared, labels: str, tell: Tell) -> list[Trial]:
    """Fit one point on few rows; for another process."""
    data = training_data(prepared, labels, job.method.labels)
    small = data.subset(few(data), job.seed)
    shown = replace(small, X_valid=small.X_valid[:ROWS], y_valid=small.y_valid[:ROWS], n_test=0)
    first = run_job(job, shown)
    if first[0].failure is not None or first[0].seconds > AGAIN_SECONDS:
        return first
    return min(first, run_job(job, shown), key=lambda trials: trials[0].train_s)  # the first one loads libraries


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def growth(method: MethodConfig) -> int:
    """Return the power of the number of rows by which a fit's time grows: 2 if it needs a kernel matrix, else 1.

    Examples
    --------
    >>> [growth(MethodConfig(estimator=name)) for name in ("gaussian_svm", "ldsvm", "linear_svm")]
    [2, 1, 1]
    """
    needs = lookup(method.estimator).needs
    small, large = (needs({**method.params}, n, n, 10) for n in (1_000, 2_000))
    return 2 if small and large > 3 * small else 1


def span(seconds: float) -> str:
    """Return a time for people.

    Examples
    --------
    >>> span(0.2), span(90), span(5400), span(400_000)
    ('1 second', '90 seconds', '90 minutes', '111 hours')
    """
    for most, size, unit in ((120, 1, "second"), (7200, 60, "minute"), (math.inf, 3600, "hour")):
        if seconds <= most:
            count = max(1, round(seconds / size))
            return f"{count:,} {unit}{'s' * (count > 1)}"
    return "for ever"
