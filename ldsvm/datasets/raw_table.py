"""The first step of a model of a mixed table: it reads the table as it came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ldsvm.datasets.files.coding import read_frame
from ldsvm.datasets.table_graph import graph_inputs


class RawTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Bring a table into the types that the next steps take, and its columns into their order.

    Parameters
    ----------
    roles : what each input column is, by name: "number", "category", "yes/no", "date" or "text"
    days : how dates are written, by name, where they are texts; "ISO8601" or a format of `strptime`
    schema : what each column had in training; only models of older versions have it here, see `read_tables.schema_of`

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"more": [1, 2], "paid": ["yes", "No"], "age": ["30", None]})
    >>> RawTable({"age": "number", "paid": "yes/no"}).fit(table).transform(table).values.tolist()
    [[30.0, 1.0], [nan, 0.0]]
    """

    def __init__(
        self,
        roles: Mapping[str, str],
        days: Mapping[str, str] | None = None,
        schema: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self.roles = roles
        self.days = days
        self.schema = schema

    def fit(self, X: Any, y: Any = None) -> RawTable:
        """Keep the names of the columns; y is not used."""
        self.feature_names_in_ = np.array([*self.roles], dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        """Return a table with the columns of ``roles``. Raises `DataError`, a ValueError, for other inputs."""
        return read_frame(X, self.roles, self.days or {})

    def graph_inputs(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return the inputs of the ONNX graph for a table X, see `ldsvm.onnx_inputs`."""
        return graph_inputs(self.transform(X), self.roles)

    def add_nodes(self, graph: Any, x: str) -> str:
        """Add nothing to an ONNX graph: its inputs are typed already."""
        return x
