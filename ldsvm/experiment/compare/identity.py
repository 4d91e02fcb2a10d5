"""What a result depends on, as one digest: whoever would compute the same again finds it instead."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ldsvm.datasets.stored_arrays import plain
from ldsvm.datasets.words import slug
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.sources import code

LAYOUT = 2  # raise it when what a result's folder holds changes


def key(config: Config, prepared: Prepared, problem: ProblemConfig, name: str) -> str:
    """Return the digest of everything that decides what the method `name` achieves on one split of one problem.

    Also of what decides only its times, such as the number of threads: they are part of the result.
    """
    method, split = config.methods[name], prepared.seed - config.seed
    facts = [
        LAYOUT, code(), name, method.model_dump(), method.space, problem.model_dump(), prepared.digest, prepared.seed,
        split, config.judge.model_dump(), config.limits.model_dump(), config.n_jobs,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=plain).encode()).hexdigest()


def place(config: Config, prepared: Prepared, problem: ProblemConfig, name: str) -> Path:
    """Return the folder of that result; experiments that share a method, its data and its settings share the folder."""
    digest = key(config, prepared, problem, name)[:16]
    return config.paths.runs / "results" / "methods" / f"{slug(problem.name)}-{slug(name)}-{digest}"
