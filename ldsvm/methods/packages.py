"""Packages of others that a method may need and that need not be there."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingPackage(ImportError):
    """A method's package is not installed; the message is one sentence."""


def package(name: str, brings: str = "'ldsvm[rivals]'") -> Any:
    """Return a package; raise MissingPackage where it is absent. brings: what pip would have to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackage(f"not run: {name} is not installed; install it with: pip install {brings}") from error
