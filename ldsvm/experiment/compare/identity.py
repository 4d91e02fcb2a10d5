"""What a result depends on, as one digest: whoever would compute the same again finds it instead."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import ldsvm
from ldsvm.experiment.compare.results import plain, slug
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared

LAYOUT = 1  # raise it when what a result's folder holds changes
# What of this package only shows and carries results: all else has a say in what is fitted and how it is judged.
CARRYING = (
    "arrivals", "division", "drift", "gate", "owner", "pages", "production", "promotion", "provenance", "registry",
    "remote", "retraining", "scoring", "scoring_rows", "store", "track", "tracking",
)  # fmt: skip
SHOWING = ("report/", "studies/", *(f"experiment/{name}.py" for name in CARRYING))
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "osqp", "qpsolvers")


class CodeChanged(RuntimeError):
    """Our own files were changed while they ran; the message is one sentence."""


@cache
def code() -> list[str]:
    """Return the digest of our own sources that decide results, and the versions of the packages that do.

    Examples
    --------
    >>> code() == code(), len(code())
    (True, 7)
    """
    return [_sources(), *(f"{name} {_version(name)}" for name in PACKAGES)]


def check_code() -> None:
    """Raise CodeChanged when the sources are no longer those that this process began with.

    Processes that fit start later, and would be filed under the name of a code that they did not run.
    """
    if _sources() != code()[0]:
        raise CodeChanged("our own code was changed while it ran, so this result belongs to none; start again.")


def _sources() -> str:
    home = Path(ldsvm.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        name = file.relative_to(home).as_posix()
        if not name.startswith(SHOWING):
            digest.update(f"{name}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


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


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
