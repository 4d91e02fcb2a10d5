"""One method on one split, computed or found again, and kept in a folder of its own before anybody else hears of it.

The folder is named by a digest of what the result depends on: whoever would compute the same again finds it instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ldsvm.datasets.stored_arrays import plain
from ldsvm.datasets.words import slug
from ldsvm.experiment.compare import results
from ldsvm.experiment.compare.contest import Judged, compete
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.failure import Failure
from ldsvm.experiment.search.search import Executor, OnTrials
from ldsvm.experiment.search.trial import OnStep
from ldsvm.experiment.search.worker import Runner
from ldsvm.experiment.sources import check_code, code

LATENT, MODEL = "latent.npy", "model.skops"
LAYOUT = 2  # raise it when what a result's folder holds changes


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
        split, config.judge.model_dump(), config.limits.model_dump(), config.n_jobs,
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
    """Let one method compete on one split and write the result to its folder, whole or not at all."""
    result, judged = compete(config, prepared, problem, name, runner, on_trials, on_step, executor)
    check_code()
    results.write(result, place(config, prepared, problem, name), partial(_keep, judged, result.split == 0))


def give_up(
    config: Config, splits: Sequence[Prepared], problem: ProblemConfig, name: str, failure: Failure, since: float
) -> None:
    """Write why a method has no result on the splits that it did not come to. since: when the run began."""
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
    """Keep where the training set lies in the latent space (N, L), for the figure, and our model of the first split."""
    if judged is None or not first:
        return
    if judged.latent is not None:
        np.save(folder / LATENT, judged.latent)
    if judged.model is not None:
        from ldsvm.experiment.storing import dumps

        (folder / MODEL).write_bytes(dumps(judged.model))
