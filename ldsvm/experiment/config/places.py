"""Folders, files and addresses that an experiment names: whether a run can use them, and whether a deployed one may.

A deployed run is one of `make up`, whose worker has LDSVM_RUNS: whoever can start one can name any path.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ldsvm.datasets import DataError
from ldsvm.datasets.files import FileSpec
from ldsvm.datasets.files.databases import is_address
from ldsvm.datasets.files.find import find
from ldsvm.datasets.transformers import LIST, listed
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.config.yaml_merge import ConfigError, found

SPACE_MIB = 50  # two empty stores take 15


def check_runs(runs: Path) -> None:
    """Make the folder of results when it is absent; raise ConfigError when it cannot hold them."""
    if marks := {"?", "#", "%"} & set(str(runs)):
        raise ConfigError(
            f"paths.runs is {runs}; allowed: a path without {marks.pop()}, which the address of a database cannot have."
        )
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"paths.runs is {runs}, which cannot be created ({error.strerror}).") from None
    if not os.access(runs, os.W_OK):
        raise ConfigError(f"paths.runs is {runs}, which is not writable.")
    if (left := shutil.disk_usage(runs).free >> 20) < SPACE_MIB:
        raise ConfigError(f"paths.runs is {runs}, where {left} MiB are free; allowed: at least {SPACE_MIB} MiB.")


def is_full(runs: Path) -> bool:
    """Return whether the disk with the results is full, which then explains an error."""
    return runs.exists() and shutil.disk_usage(runs).free < 2**20


def is_deployed() -> bool:
    """Return whether this is a run of `make up`."""
    return bool(os.environ.get("LDSVM_RUNS"))


def check_deployed(config: Config, root: Path) -> None:
    """In a deployed run, raise ConfigError for paths and addresses that it may not use. root: the project's folder.

    Called when the file is read, and again right before files are opened, since paths may have become links meanwhile.
    """
    if not is_deployed():
        return
    dataset, score = config.dataset, config.production.score if config.production else None
    data: dict[str, str | None] = {"dataset.path": dataset.path, "dataset.test_path": dataset.test_path}
    places: dict[str, str | Path | None] = {"paths.cache": config.paths.cache}
    specs = {"dataset.path": dataset.files}
    if score is not None:
        given = found(score.input, root) or score.input
        given = given if is_address(given) else str(root / Path(given).expanduser())
        data["production.score.input"] = given
        places["production.score.output"] = Path.cwd() / Path(score.output).expanduser()
        specs["production.score.input"] = FileSpec(given, format=score.format or dataset.format)
    databases = {key: given for key, given in data.items() if given is not None and is_address(given)}
    _check_databases(databases, root)
    confine(places | {key: given for key, given in data.items() if key not in databases}, root)
    for key, spec in specs.items():
        # Also through links and globs, and labels that a name puts elsewhere. What cannot be found, reading says.
        with suppress(DataError):
            files = [file for one in find(spec) if one is not None for file in one.files] if spec else []
            for file in files:
                confine({f"{key}, which reads {file},": file}, root)
    _check_addresses(config)
    imported = {"features": config.transformers, "methods": config.classifiers, "metrics": config.metric_paths}
    for key, path in ((key, path) for key, those in imported.items() for path in those):
        if path not in listed():
            names = ", ".join(listed()) or "none"
            raise ConfigError(f"{key} has {path}; allowed in a deployed run: {names}, as listed in {LIST}.")


def confine(places: Mapping[str, str | Path | None], root: Path, more: Sequence[Path] = ()) -> None:
    """Raise ConfigError for a place outside the folders of the project's data, of the operator, and `more`."""
    own = (os.environ.get(name, "") for name in ("LDSVM_RUNS", "LDSVM_DATA_HOME"))
    given = [*own, *os.environ.get("LDSVM_DATA", "").split(os.pathsep)]
    roots = [root / "data", *more, *(Path(folder) for folder in given if folder)]
    for key, place in places.items():
        if place is not None and not any(Path(place).expanduser().resolve().is_relative_to(r.resolve()) for r in roots):
            allowed = ", ".join(map(str, roots))
            raise ConfigError(
                f"{key} is {place}; allowed in a deployed run: a path below {allowed} (or make up DATA=FOLDER)."
            )


def _check_databases(given: Mapping[str, str], root: Path) -> None:
    """Raise ConfigError for a database that the operator has not named in LDSVM_DATABASES."""
    allowed = os.environ.get("LDSVM_DATABASES", "").split()
    for key, address in given.items():
        if address not in [found(one, root) for one in allowed]:
            names = ", ".join(allowed) or "none"
            raise ConfigError(f"{key} is {address}; allowed in a deployed run: {names}, as listed in LDSVM_DATABASES.")


def _check_addresses(config: Config) -> None:
    """Raise ConfigError for a Ray that the operator has not named in LDSVM_RAY_ADDRESSES: it would get our data."""
    allowed = os.environ.get("LDSVM_RAY_ADDRESSES", "").replace(",", " ").split()
    given = {f"methods.{name}.executor.address": m.executor.address for name, m in config.methods.items() if m.executor}
    for key, address in {**given, "search.ray_address": config.search.ray_address}.items():
        if address is not None and address not in allowed:
            names = ", ".join(allowed) or "none"
            raise ConfigError(
                f"{key} is {address}; allowed in a deployed run: {names}, as listed in LDSVM_RAY_ADDRESSES."
            )
