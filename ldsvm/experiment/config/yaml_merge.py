"""Merge files and command lines into one tree of keys and values, before it is checked as an experiment."""

from __future__ import annotations

import glob
import os
import re
import reprlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import yaml

from ldsvm.datasets.files.databases import SQLITE, is_address


class ConfigError(ValueError):
    """A mistake in a file or on the command line; the message is one sentence for the user."""


MOST_REPEATED = 100_000  # characters and entries that the aliases of one YAML text may repeat


class _Loader(yaml.SafeLoader):
    """YAML where 1e-3 is a number (PyYAML wants 1.0e-3); refused are keys given twice and aliases that repeat much."""

    def get_single_node(self) -> yaml.Node | None:
        """Return the root, after a look at how much its aliases would repeat: a few lines can mean billions."""
        root = super().get_single_node()
        if root is not None:
            sizes: dict[int, int] = {}
            own: list[int] = []
            if _size(root, sizes, own) - sum(own) > MOST_REPEATED:
                raise yaml.YAMLError(f"its aliases repeat more than {MOST_REPEATED:,} characters")
        return root

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return what a node says; a lone ?, to YAML a mapping of nothing to nothing, is text, as in [NA, ?]."""
        parts = node.value[0] if isinstance(node, yaml.MappingNode) and len(node.value) == 1 else ()
        if parts and all(part.tag == "tag:yaml.org,2002:null" and part.value == "" for part in parts):
            return "?"
        return super().construct_object(node, deep)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        merge = "tag:yaml.org,2002:merge"  # <<: *anchor, whose keys this mapping may replace
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != merge]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(
                    problem=f'key "{_cut(str(key))}" is given twice', problem_mark=node.start_mark
                )
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, sizes: dict[int, int], own: list[int]) -> int:
    """Return the characters and entries of a node with all its aliases written out; `own` gets each node's own."""
    if id(node) in sizes:
        if (known := sizes[id(node)]) == 0:
            raise yaml.YAMLError("an alias stands inside what it repeats")
        return known
    sizes[id(node)] = 0  # until it is known
    scalar = isinstance(node, yaml.ScalarNode)
    entries = [] if scalar else node.value
    parts = [part for entry in entries for part in (entry if isinstance(entry, tuple) else (entry,))]
    own.append(1 + len(node.value) if scalar else 1)
    sizes[id(node)] = total = own[-1] + sum(_size(part, sizes, own) for part in parts)
    return total


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


PASSWORD = re.compile(r"(://[^\s/:@'\"]*:|passw\w*=)[^\s'\"]*")  # in the address of a database, and what follows


def short(value: Any) -> str:
    """Return a value for a message; of a long one its beginning, and no more than that is looked at."""
    return _cut(without_password(_repr.repr(value)))


def without_password(text: str) -> str:
    """Return a text without what may be a password in the address of a database.

    Examples
    --------
    >>> without_password("read postgresql://me:12345@host/clinic")
    'read postgresql://me:***'
    """
    return PASSWORD.sub(r"\1***", text)


def _cut(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


class _Repr(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to write a number of thousands of digits; YAML can give one as 0xfff."""
        return repr(x) if x.bit_length() < 256 else f"a number of {x.bit_length():,} bits"


_repr = _Repr()
_repr.maxlevel = 3
_repr.maxstring = _repr.maxother = 100
_repr.maxlist = _repr.maxtuple = _repr.maxdict = _repr.maxset = 20


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
        raise ConfigError(f'config: "{str(path)[:80]}" is not a valid path ({error}).') from None
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
    if is_address(path):
        file = found(path.removeprefix(SQLITE), root) if path.startswith(SQLITE) else None
        return path if file is None else f"{SQLITE}{file}"
    places = [str(base / Path(path).expanduser()) for base in (Path.cwd(), root)]
    return next((place for place in places if os.path.exists(place) or glob.glob(place, recursive=True)), path)


def read(file: Path) -> dict[str, Any]:
    """Return what a YAML file says; raise ConfigError when it is none."""
    try:
        tree = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read as text ({error}).") from None
    except NOT_YAML as error:
        raise ConfigError(f"{file}: not valid YAML ({_cut(' '.join(str(error).split()), 300)}).") from None
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
        raise ConfigError(
            f'command line: "{_cut(without_password(text))}" is not an override; allowed: key=value, such as seed=1.'
        )
    *parents, last = key.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise ConfigError(f'command line: "{_cut(key)}" is below "{_cut(parent)}", which is a single value.')
    try:
        # A glob such as *.csv is meant as it stands; YAML would look for an anchor of that name. So is a decimal comma.
        tree[last] = value if value.startswith("*") or value == "," else yaml.load(value, Loader=_Loader)
    except NOT_YAML as error:
        value = without_password(value)
        short = len(value) < 40 and not {"'", '"', "\n"} & set(value)
        why = f""", or text in quotes: "{_cut(key)}='{value}'\"""" if short else ""
        why = f"; {error}" if type(error) is yaml.YAMLError else why
        raise ConfigError(f'command line: {_cut(key)} has value "{_cut(value)}"; allowed: a YAML value{why}.') from None
