"""Whether new rows of a table are as the schema says: as people have edited it, or as the training saw it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from ldsvm.datasets import DataError
from ldsvm.datasets.column import INPUTS
from ldsvm.datasets.read_tables import reader_of, schema_of
from ldsvm.datasets.table_schema import Allowed, Check
from ldsvm.experiment import schema_file
from ldsvm.experiment.config.schema import Config


def allowed(config: Config, model: Any) -> tuple[Allowed, ...]:
    """Return what rows may hold; nothing where nothing is checked. Raises DataError for a file that means nothing."""
    seen = schema_of(model)
    if not seen or config.production is None or config.production.schema == "ignore":
        return ()
    roles = {one.name: one.role for one in seen if one.role in INPUTS}
    found = schema_file.edited(config.results / schema_file.SCHEMA, roles)
    return seen if found is None else found


def check_rows(config: Config, model: Any, parts: Iterable[tuple[Any, NDArray[Any]]]) -> list[str]:
    """Return sentences on cells of a table that are not allowed; raise DataError where they are refused.

    parts: of the table, as it came, each with the numbers (n,) of its rows in the data.
    """
    check, reader = Check(allowed(config, model)), reader_of(model)
    if not check.allowed or config.production is None:
        return []
    for rows, numbers in parts:
        check.look(reader.transform(rows) if reader else rows, str(config.dataset.path or config.dataset.name), numbers)
    refuse(check, config.production.schema)
    return check.summary


def refuse(check: Check, rule: str) -> None:
    """Raise DataError with what was found, if anything, where the rule is to refuse it."""
    if check.sentences and rule == "refuse":
        raise DataError(
            f"{' '.join(check.summary)} Such rows are refused, as production.schema says; "
            "edit schema.yaml beside the results to allow more."
        )
