"""The digest of our own code that decides results: names of packages say what does, and words do not count."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
# What only shows results, keeps them, or uses the models: all else has a say in what is fitted and how it is judged.
SHOWING = ("production/", "report/", "tracking/")
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
    return [_digest(), *(f"{name} {_version(name)}" for name in PACKAGES)]


def check_code() -> None:
    """Raise CodeChanged when the sources are no longer those that this process began with.

    Processes that fit start later, and would be filed under the name of a code that they did not run.
    """
    if _digest() != code()[0]:
        raise CodeChanged("our own code was changed while it ran, so this result belongs to none; start again.")


def digest_of(files: Iterable[Path]) -> str:
    """Return a digest of these files of Python that does not change with their comments and docstrings."""
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(f"{file.relative_to(HOME).as_posix()}\0{_meaning(file.read_bytes())}\0".encode())
    return found.hexdigest()


def _digest() -> str:
    return digest_of(file for file in HOME.rglob("*.py") if not file.relative_to(HOME).as_posix().startswith(SHOWING))


@cache
def _meaning(source: bytes) -> str:
    """Return a digest of the syntax tree without docstrings; one that cannot be parsed is taken as it is."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return hashlib.sha256(source).hexdigest()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            del node.body[: ast.get_docstring(node, clean=False) is not None]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
