"""`schema.yaml` beside the results: what the columns had in training, for people to read and to edit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from ldsvm.atomic import replacing
from ldsvm.datasets import DataError
from ldsvm.datasets.table_schema import Allowed, limit
from ldsvm.datasets.words import one_of, shown

SCHEMA = "schema.yaml"
DIGEST = "# of what was written: "  # another content was edited
ABOUT = """\
# What the training rows contain, by column. The flows retrain and score check new rows against it, and do what
# production.schema says (refuse, warn or ignore) about a number below least or above largest, a value that is not
# listed, and a missing value (gap) where gaps is 0. Edit these keys to allow more or less, or remove them to allow
# everything: an edited file is kept and used; others are replaced with the model in use. To change a role, set
# dataset.columns and retrain.
"""


def save(schema: Sequence[Mapping[str, Any]] | None, folder: Path) -> None:
    """Write what the columns had in training into a folder; nothing without names. schema: see `Prepared`."""
    if schema is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write([Allowed(**one) for one in schema], folder / SCHEMA)


def write(columns: Sequence[Allowed], file: Path) -> None:
    """Write what was seen in training, unless people have edited the file that is there."""
    if file.exists() and _is_edited(file.read_text(encoding="utf-8")):
        return
    tree = {one.name: {k: v for k, v in asdict(one).items() if k != "name" and v not in ("", None)} for one in columns}
    for one in columns:
        tree[one.name] |= {"gaps": one.gaps or 0} | ({} if one.values is None else {"values": [*one.values]})
        if one.reason:
            del tree[one.name]["gaps"]  # nothing is checked
    body = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    with replacing(file) as new:
        new.write_text(f"{ABOUT}{DIGEST}{_digest(body)}\n{body}", encoding="utf-8")


def edited(file: Path, roles: dict[str, str]) -> tuple[Allowed, ...] | None:
    """Return what a file says that people have edited; None for others.

    roles: of the model's columns. Raises `DataError`, one sentence, for what cannot be meant.
    """
    if not file.exists() or not _is_edited(text := file.read_text(encoding="utf-8")):
        return None
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(f"{file} is not valid YAML ({' '.join(str(error).split())}).") from None
    if not isinstance(tree, dict):
        raise DataError(f"{file}: holds {shown(tree)}; allowed: keys of each column, such as age: {{least: 0}}.")
    return tuple(_column(str(name), said, roles, file) for name, said in tree.items())


def _is_edited(text: str) -> bool:
    _, _, rest = text.partition(DIGEST)
    digest, _, body = rest.partition("\n")
    return digest != _digest(body)


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _column(name: str, said: Any, roles: dict[str, str], file: Path) -> Allowed:
    keys = [key for key in Allowed.__dataclass_fields__ if key != "name"]
    what = f"{file}: {name}"
    if not isinstance(said, dict):
        raise DataError(f"{what} is {shown(said)}; allowed: the keys {', '.join(keys)}.")
    if wrong := [key for key in said if key not in keys]:
        raise DataError(f"{what} has the key {shown(wrong[0])}; {one_of(str(wrong[0]), keys)}")
    if name not in roles:
        return Allowed(name, str(said.get("role", "ignore")))
    if (role := said.get("role", roles[name])) != roles[name]:
        raise DataError(
            f"{what} has the role {shown(role)}, but the model was trained with {roles[name]}; name roles in "
            "dataset.columns, and retrain."
        )
    gaps, values = said.get("gaps", 1.0), said.get("values")
    if isinstance(gaps, bool) or not isinstance(gaps, int | float) or not 0 <= gaps <= 1:
        raise DataError(f"{what} has gaps: {shown(gaps)}; allowed: a share from 0 to 1.")
    if values is not None and not (isinstance(values, list) and all(type(v) in (str, int, float) for v in values)):
        raise DataError(
            f"{what} has values: {shown(values)}; allowed: a list of texts, in quotes where they are yes or no."
        )
    least, largest = (_limit(role, said.get(key), f"{what} has {key}") for key in ("least", "largest"))
    return Allowed(name, role, "", least, largest, None if values is None else tuple(map(str, values)), float(gaps))


def _limit(role: str, value: Any, what: str) -> float | str | None:
    value = str(value) if isinstance(value, date) else value  # which YAML makes of 2024-12-31
    try:
        if isinstance(value, bool):
            raise ValueError("a truth value")
        limit(role, value)
    except (TypeError, ValueError):
        kind = "a date such as 2024-12-31" if role == "date" else "a number"
        raise DataError(f"{what}: {shown(value)}; allowed: {kind}.") from None
    found: float | str | None = value
    return found
