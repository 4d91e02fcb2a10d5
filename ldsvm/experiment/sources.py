"""The digest of our own code that decides results: names of packages say what does, and words do not count."""

from __future__ import annotations

import ast
import gc
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
        raise CodeChanged("the code of ldsvm was changed while it ran, so the result is not stored; run again.")


def digest_of(files: Iterable[Path]) -> str:
    """Return a digest of these files of Python that does not change with their comments and docstrings."""
    found = hashlib.sha256()
    with _uncollected():
        for file in sorted(files):
            found.update(f"{file.relative_to(HOME).as_posix()}\0{_meaning(file.read_bytes())}\0".encode())
    return found.hexdigest()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from looking for garbage among the many nodes of syntax trees, which takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _digest() -> str:
    """Return the digest of our sources as they lie there now; those of the same size and time are not read again."""
    home, found = str(HOME), []
    for folder, below, names in os.walk(home):
        below[:] = [name for name in below if name != "__pycache__"]
        for name in names:
            path = f"{folder}/{name}"
            if name.endswith(".py") and not path.removeprefix(f"{home}/").startswith(SHOWING):
                stat = os.stat(path)
                found.append((path, stat.st_size, stat.st_mtime_ns))
    return _digest_at(tuple(found))


@cache
def _digest_at(found: tuple[tuple[str, int, int], ...]) -> str:
    return digest_of(Path(path) for path, _, _ in found)


@cache
def _meaning(source: bytes) -> str:
    """Return a digest of the syntax tree without docstrings; one that cannot be parsed is taken as it is."""
    words: list[str] = []
    try:
        _read(ast.parse(source), words)
    except (SyntaxError, ValueError):
        words = [repr(source)]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def _read(node: object, words: list[str]) -> None:
    """Add to `words` what `ast.dump` writes but for docstrings, in a third of its time."""
    if isinstance(node, list):
        words.append(f"[{len(node)}")
        for one in node:
            _read(one, words)
    elif isinstance(node, ast.AST):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            del node.body[: ast.get_docstring(node, clean=False) is not None]
        words.append(type(node).__name__)
        for name in node._fields:
            _read(getattr(node, name, None), words)
    else:
        words.append(repr(node))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
