"""Whether a fitted model reads mixed tables, and what their columns had. Loads scikit-learn only when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldsvm.datasets.table_schema import Allowed

if TYPE_CHECKING:
    from ldsvm.datasets.raw_table import RawTable


def schema_of(model: Any) -> tuple[Allowed, ...]:
    """Return what the columns of a table had when a model was trained on it; nothing for other inputs."""
    reader = reader_of(model)
    schema = getattr(model, "schema_", None) or (reader.schema if reader else None)
    return tuple(Allowed(**one) for one in schema or ())


def reader_of(model: Any) -> RawTable | None:
    """Return the first step of a fitted model where it reads mixed tables; None for other models."""
    from ldsvm.datasets.raw_table import RawTable

    first = getattr(model, "steps", [("", None)])[0][1]
    return first if isinstance(first, RawTable) else None
