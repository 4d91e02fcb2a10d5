"""Files and command lines as one tree of keys and values, before anybody asks whether it is an experiment."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import yaml


class ConfigError(ValueError):
    """A mistake in a file or on the command line; the message is one sentence for the user."""


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-3 is a number (PyYAML wants 1.0e-3) and a key given twice is refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        merge = "tag:yaml.org,2002:merge"  # <<: *anchor, whose keys this mapping may replace
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != merge]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f'key "{key}" is given twice', problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


# What PyYAML raises for impossible dates, numbers of thousands of digits and bottomless nesting is no YAMLError.
NOT_YAML = (yaml.YAMLError, ValueError, RecursionError, LookupError, AttributeError, TypeError, OverflowError)


def tree_of(
    path: str | Path, overrides: Sequence[str] = (), *, root: Path, shared: Collection[str] | None = None
) -> dict[str, Any]:
    """Return what a file says over `root/conf/base.yaml`, and what the overrides say over both.

    path: looked for from the working directory and then from `root`, the project's folder. overrides: "key=value" with
    a dotted key and a YAML value. shared: the keys to take from the base file, all by default. Raises ConfigError.
    """
    try:
        file = next((p for p in (Path(path), root / path) if p.is_file()), None)
    except (OSError, ValueError) as error:
        raise ConfigError(f'config: "{str(path)[:80]}" cannot be a file ({error}).') from None
    if file is None:
        raise ConfigError(f'config: no file "{path}"; allowed: a YAML file such as conf/digits.yaml.')
    base = read(root / "conf" / "base.yaml")
    tree = _merge({key: value for key, value in base.items() if shared is None or key in shared}, read(file))
    for text in overrides:
        override(tree, text)
    return tree


def found(path: str | None, root: Path) -> str | None:
    """Return a user's file, folder or glob, looked for from the working directory and then from `root`.

    What is in neither stays as it was given: reading it says so in the user's own words.
    """
    if path is None:
        return None
    places = [str(base / Path(path).expanduser()) for base in (Path.cwd(), root)]
    return next((place for place in places if os.path.exists(place) or glob.glob(place, recursive=True)), path)


def read(file: Path) -> dict[str, Any]:
    """Return what a YAML file says; raise ConfigError when it is none."""
    try:
        tree = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read as text ({error}).") from None
    except NOT_YAML as error:
        raise ConfigError(f"{file}: not valid YAML ({' '.join(str(error).split())}).") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{file}: holds {type(tree).__name__}; allowed: a mapping of keys to values.")
    return tree


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` on top, section by section; lists and single values are replaced."""
    both = {k: _merge(base[k], v) for k, v in over.items() if isinstance(v, dict) and isinstance(base.get(k), dict)}
    return {**base, **over, **both}


def override(tree: dict[str, Any], text: str) -> None:
    """Set one entry of a tree as "key=value" says; raise ConfigError when that says nothing."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f'command line: "{text}" is no override; allowed: key=value, such as seed=1.')
    *parents, last = key.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise ConfigError(f'command line: "{key}" goes below "{parent}", which is a single value.')
    try:
        # A glob such as *.csv is meant as it stands; YAML would look for an anchor of that name.
        tree[last] = value if value.startswith("*") else yaml.load(value, Loader=_Loader)
    except NOT_YAML:
        raise ConfigError(f'command line: {key} has value "{value}"; allowed: a YAML value.') from None
