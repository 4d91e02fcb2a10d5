"""The catalogue: which data sets exist, where they come from, and the checksums that prove it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.entry import Entry, File

# The wheel carries a copy beside this module; in a checkout the one authoritative file is data/catalog.yaml.
PLACES = (Path(__file__).with_name("catalog.yaml"), Path(__file__).parents[2] / "data" / "catalog.yaml")


def optional(module: str, extra: str = "pipeline") -> ModuleType:
    """Import a module of an extra, or raise `DataError` with the command that installs it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(
            f"Reading data sets needs {module}, which is not installed: pip install 'ldsvm[{extra}]'."
        ) from error


@cache
def catalogue() -> Mapping[str, Entry]:
    """Return every entry by name.

    Examples
    --------
    >>> sorted(catalogue())
    ['digits', 'fashion-mnist', 'mnist', 'newsgroups', 'spirals']
    """
    yaml = optional("yaml")
    path = next((place for place in PLACES if place.is_file()), None)
    if path is None:
        raise DataError(f"The catalogue is missing: expected one of {', '.join(map(str, PLACES))}.")
    return {name: _entry(name, fields) for name, fields in yaml.safe_load(path.read_text("utf-8")).items()}


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    files = tuple(File(**{**file, "shape": tuple(file["shape"])}) for file in fields.get("files", ()))
    return Entry(**{**fields, "name": name, "files": files})
