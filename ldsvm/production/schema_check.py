"""Whether new rows of a table are as the schema says: as people have edited it, or as the training saw it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ldsvm.datasets import DataError
from ldsvm.datasets.column import INPUTS
from ldsvm.datasets.read_tables import reader_of, schema_of
from ldsvm.datasets.table_schema import Allowed, Check
from ldsvm.experiment import schema_file
from ldsvm.experiment.config.schema import Config


def allowed(config: Config, model: Any) -> tuple[tuple[Allowed, ...], bool]:
    """Return what rows may hold, and whether people have edited it; nothing where nothing is checked.

    Raises DataError for an invalid file.
    """
    seen = schema_of(model)
    if not seen or config.production is None or config.production.schema == "ignore":
        return (), False
    roles = {one.name: one.role for one in seen if one.role in INPUTS}
    found = schema_file.edited(file_of(config), roles)
    return (seen, False) if found is None else (found, True)


def file_of(config: Config) -> Path:
    """Return the schema that people may edit."""
    return config.results / schema_file.SCHEMA


def check_rows(config: Config, model: Any, parts: Iterable[tuple[str, Any, NDArray[Any]]]) -> list[str]:
    """Return sentences on cells of new rows that are not allowed; raise DataError where they are refused.

    parts: of the table, as it came, each with its file (empty: the only one), and the numbers (n,) of its rows there.
    """
    check, reader = Check(*allowed(config, model)), reader_of(model)
    if not check.allowed or config.production is None:
        return []
    whole = str(config.dataset.path or config.dataset.name)
    for file, rows, numbers in parts:
        check.look(reader.transform(rows) if reader else rows, file or whole, numbers)
    refuse(check, config.production.schema, "trained", str(file_of(config)))
    return remarks(check, "used")


def remarks(check: Check, what: str) -> list[str]:
    """Return what was found, if anything, and that such rows are used, or scored, all the same."""
    after = f"Such rows are {what} anyway; production.schema=refuse would refuse them."
    return [*check.summary, after] if check.sentences else []


def refuse(check: Check, rule: str, what: str, file: str) -> None:
    """Raise DataError with what was found, if anything, where the rule is to refuse it.

    what: which is not done then, such as "scored". file: the schema that people may edit.
    """
    if check.sentences and rule == "refuse":
        after = f"So nothing was {what} (production.schema is refuse); to allow more, edit {file}."
        raise DataError("\n".join([*check.summary, after]))
