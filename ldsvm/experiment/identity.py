"""What a result depends on, as one digest: whoever would compute the same again finds it instead."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import ldsvm
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.results import plain, slug

LAYOUT = 1  # raise it when what a result's folder holds changes
# The files of this package that have a say in what is fitted and how it is judged; all others only carry it around.
DECIDING = ("*.py", "mac/*.py", "maps/*.py", "solvers/*.py", "baselines/*.py")
CHOOSING = [f"experiment/{name}.py" for name in ("contest", "halving", "judge", "search", "spaces", "trial")]
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@cache
def code() -> list[str]:
    """Return the digest of our own sources that decide results, and the versions of the packages that do.

    Examples
    --------
    >>> code() == code(), len(code())
    (True, 5)
    """
    home = Path(ldsvm.__file__).parent
    files = sorted(file for pattern in (*DECIDING, *CHOOSING) for file in home.glob(pattern))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(home).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return [digest.hexdigest(), *(f"{name} {_version(name)}" for name in PACKAGES)]


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
