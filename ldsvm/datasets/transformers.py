"""Transformers, classifiers and metrics that an experiment file names by import path, such as ``my_steps.Ratio``.

To import is to run code, and models that hold such a class are refused where it is not expected. So the environment
variable ``LDSVM_TRANSFORMERS`` lists all import paths that a process may use, separated by commas. Files and command
lines of this machine add theirs to it; what a deployed run names must be on the operator's list.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.words import shown

LIST = "LDSVM_TRANSFORMERS"


def is_path(name: str) -> bool:
    """Return whether a step's name is an import path.

    Examples
    --------
    >>> is_path("scale"), is_path("sklearn.preprocessing.PowerTransformer")
    (False, True)
    """
    return "." in name


def listed() -> list[str]:
    """Return the import paths that this process may use."""
    return os.environ.get(LIST, "").replace(",", " ").split()


def permit(paths: Iterable[str]) -> None:
    """Add import paths to those that this process, and those that it starts, may use."""
    if new := [path for path in paths if path not in listed()]:
        os.environ[LIST] = ",".join([*listed(), *new])


def permitted() -> list[str]:
    """Return the classes of the import paths that this process may use, by the names that stored models have for them.

    Import paths that cannot be imported here are left out.
    """
    found = []
    for path in listed():
        try:
            made = imported(path, path)
        except DataError:
            continue
        if isinstance(made, type):
            found.append(f"{made.__module__}.{made.__qualname__}")
    return found


def imported(path: str, what: str) -> Any:
    """Return what an import path leads to, None where its module has no such name. what: for messages.

    Raises `DataError` when this process may not use it, or its module cannot be imported.
    """
    if path not in listed():
        raise DataError(f"{what} is not allowed here; allowed: the import paths in {LIST}.")
    module, _, name = path.rpartition(".")
    if not all(part.isidentifier() for part in path.split(".")):
        raise DataError(f"{what} is not an import path; allowed: names joined by dots, such as my_package.MyClass.")
    try:
        return getattr(import_module(module), name, None)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{what}: {module} cannot be imported ({type(error).__name__}: {reason}).") from error


def load_class(path: str) -> Any:
    """Return the class with an import path. Raises `DataError` where there is none, or no transformer."""
    found = imported(path, f"features.{path}")
    if not isinstance(found, type) or not all(hasattr(found, method) for method in ("fit", "transform", "get_params")):
        raise DataError(
            f"features.{path} is {shown(str(found))}; allowed: a class with fit, transform and get_params, as "
            "scikit-learn's transformers have them."
        )
    return found


def make(path: str, params: Mapping[str, Any]) -> Any:
    """Return an unfitted transformer. Raises `DataError` for parameters that it does not take."""
    try:
        return load_class(path)(**params)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"features.{path} does not take {dict(params)!r} ({error}).") from error


def source_digest(path: str) -> str:
    """Return a digest of the file that what an import path leads to is from, so that a change of it is noticed."""
    found = imported(path, f"features.{path}")
    return digest_of(found if hasattr(found, "__qualname__") else import_module(path.rpartition(".")[0]))


def digest_of(found: Any) -> str:
    """Return a digest of the file that a class, function or module is from; empty for one that is from no file."""
    module = import_module(found.__module__) if hasattr(found, "__module__") else found
    file = getattr(module, "__file__", None)
    return "" if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()
