"""A loaded version: from rows of a request to answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError
from ldsvm.datasets.read_tables import reader_of, schema_of
from ldsvm.datasets.table_schema import limit
from ldsvm.datasets.words import listing, row_list, shown
from ldsvm.experiment.storing import loads
from ldsvm.production.answers import Answers
from ldsvm.serving.folder import Settings
from ldsvm.tracking.served import Served, optional, schema_rule

LARGEST = np.finfo(np.float64).max
NUMBERS = {int, float}  # types of cells that need no second look


class Champion:
    """A fitted model that answers rows as JSON gives them, or a table.

    version: its number. Rows of a model of numbers take a short way, without a table of pandas: what is finite and in
    the range that the schema allows needs no sentence. Everything else goes through `Served`, which has them all.
    """

    def __init__(self, fitted: Any, version: int, schema: str = "ignore", schema_file: str | None = None) -> None:
        self.version = version
        self.served = Served(fitted, *schema_rule(schema_of(fitted), schema, schema_file), "production.schema")
        self.classes = np.asarray(fitted.classes_).tolist()
        names = getattr(fitted, "feature_names_in_", None)
        self.width = int(getattr(fitted, "n_features_in_", 0)) if names is None else len(names)
        self.named = names is not None
        self.columns = list(map(str, range(self.width) if names is None else names))
        self.texts = not self.width
        self.mixed = reader_of(fitted) is not None
        self._pick = itemgetter(*self.columns) if len(self.columns) > 1 else lambda row: (row[self.columns[0]],)
        self._low, self._high = self._limits()
        last = fitted[-1] if hasattr(fitted, "steps") else fitted
        inner = getattr(last, "estimator", last)
        if getattr(inner, "n_jobs", None) is not None:
            inner.n_jobs = None  # the process has one thread in any case, and asking for it takes time

    @classmethod
    def load(cls, file: Path, version: int, settings: Settings) -> Champion:
        """Return the model of a file; raise what the file's reader raises, or DataError, if it is not a classifier."""
        fitted = loads(file.read_bytes())
        last = fitted[-1] if hasattr(fitted, "steps") else fitted
        if absent := [name for name in ("classes_", "decision_function", "transform") if not hasattr(last, name)]:
            raise DataError(f"version {version} has no {absent[0]}; allowed: a fitted classifier of this package.")
        return cls(fitted, version, settings.schema, settings.schema_file)

    def answer(self, rows: Any, probabilities: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
        """Return an answer for each row, and sentences on cells that the schema does not allow.

        rows: a list of dicts by column, of lists of cells, or of texts; or a table. probabilities: whether those of all
        classes are wanted. Raises DataError, in one sentence, for what the model does not take.
        """
        model, X, remarks, checked = self._inputs(rows)
        if hasattr(model, "steps"):
            X, model, checked = model[:-1].transform(X), model[-1], False
        found = Answers(model, X, checked=checked)
        return _as_answers(found, self.classes, probabilities), remarks

    def inputs(self) -> list[dict[str, Any]]:
        """Return what the model takes: name, role and whether it may be absent of each column; nothing for texts."""
        may, known = optional(self.served.fitted), {one.name: one for one in self.served.allowed}
        found = []
        for name in self.columns if self.named else ():
            one = known.get(name)
            limits = {"least": one.least, "largest": one.largest, "values": one.values} if one else {}
            more = {key: value for key, value in limits.items() if value is not None}
            found.append({"name": name, "role": one.role if one else "number", "optional": name in may, **more})
        return found

    def _inputs(self, rows: Any) -> tuple[Any, Any, list[str], bool]:
        """Return the steps that answer, their inputs, sentences on odd cells, and whether the inputs are checked."""
        if self.texts:
            return self.served.fitted, self._as_texts(rows), [], False
        if not self.mixed and (X := self._numbers(rows)) is not None:
            return self.served.fitted, X, [], True
        model, X, remarks = self.served.inputs(self._table(rows))
        remarks = [*remarks, *self._misspelt(rows)]
        return (model, X, remarks, False) if self.mixed else (model, np.asarray(X, np.float64), remarks, True)

    def _numbers(self, rows: Any) -> NDArray[np.float64] | None:
        """Return rows of numbers (n, D); None where something is odd, or no number, and needs a second look."""
        if not isinstance(rows, list):
            return None
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            cells = [self._pick(row) if type(row) is dict else row for row in rows]
            if all(len(row) == self.width and set(map(type, row)) <= NUMBERS for row in cells):
                X = np.array(cells, np.float64)
                if ((self._low <= X) & (self._high >= X)).all():  # so they are finite, too
                    return X
        return None

    def _limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest number (D,) that the schema allows in each column."""
        known = {} if self.served.rule == "ignore" else {one.name: one for one in self.served.allowed}
        low, high = np.full(self.width, -LARGEST), np.full(self.width, LARGEST)
        for place, name in enumerate(self.columns if not self.mixed else ()):
            if (one := known.get(name)) is not None and one.role == "number":
                least, largest = limit("number", one.least), limit("number", one.largest)
                low[place], high[place] = -LARGEST if least is None else least, LARGEST if largest is None else largest
            elif one is not None:
                low[place] = np.inf  # of another role: it is always looked at
        return low, high

    def _table(self, rows: Any) -> Any:
        """Return rows as a table with the model's columns."""
        import pandas

        if not isinstance(rows, list):  # of CSV, whose columns may be more
            absent = [name for name in self._needed() if name not in rows.columns]
            if absent:
                raise DataError(f"The request has no {listing('column', absent)}; {self._rule()}.")
            return rows[[name for name in self.columns if name in rows.columns]]
        cells = [self._cells(row, place) for place, row in enumerate(rows)]
        return pandas.DataFrame(cells, columns=self.columns, dtype=object)

    def _cells(self, row: Any, place: int) -> list[Any]:
        """Return the cells of a row in the order of the columns."""
        where = row_list([place]).capitalize()
        if isinstance(row, dict) and self.named:
            if absent := [name for name in self._needed() if name not in row]:
                raise DataError(f"{where}, has no {listing('column', absent)}; {self._rule()}.")
            found = [row.get(name) for name in self.columns]
        elif isinstance(row, list) and len(row) == self.width:
            found = row
        else:
            what = f"has {len(row)} cells" if isinstance(row, list) else f"is {shown(row)}"
            raise DataError(f"{where}, {what}; {self._rule()}.")
        for name, cell in zip(self.columns, found, strict=True):
            if isinstance(cell, list | dict):
                raise DataError(f"{where}, has {shown(cell)} in column {name!r}; allowed: a number, a text or null.")
            if isinstance(cell, int) and abs(cell) > 2**63:
                raise DataError(f"{where}, has a number too large in column {name!r}; allowed: up to 2**63.")
        return found

    def _misspelt(self, rows: Any) -> list[str]:
        """Return a sentence if an optional column is absent while a column is there that the model does not know."""
        if self.served.rule == "ignore":
            return []
        of_rows = isinstance(rows, list)
        for given in [row for row in rows if isinstance(row, dict)] if of_rows else [rows.columns.tolist()]:
            absent = [name for name in self.columns if name not in given]
            if absent and (unknown := [name for name in given if name not in self.columns]):
                gap, other = listing("column", absent), listing("column", unknown)
                return [f"The request lacks {gap}, which counts as missing, but has the unknown {other}."]
        return []

    def _needed(self) -> list[str]:
        may = optional(self.served.fitted)
        return [name for name in self.columns if name not in may]

    def _rule(self) -> str:
        if self.named:
            return f"the model needs {listing('column', self.columns)}, by name or in this order"
        return f"the model needs a list of {self.width} numbers"

    def _as_texts(self, rows: Any) -> NDArray[Any]:
        rows = rows.iloc[:, 0].tolist() if not isinstance(rows, list) and rows.shape[1] == 1 else rows
        rows = rows if isinstance(rows, list) else rows.to_numpy().tolist()
        for place, row in enumerate(rows):
            if not isinstance(row, str):
                raise DataError(f"{row_list([place]).capitalize()}, is {shown(row)}; the model needs texts.")
        return np.array(rows, dtype=object)


def _as_answers(found: Answers, classes: Sequence[Any], every: bool) -> list[dict[str, Any]]:
    labels, margins, latent = found.labels.tolist(), found.margins().tolist(), found.Z.tolist()
    answers = [
        {"class": label, "margin": margin, "latent": place}
        for label, margin, place in zip(labels, margins, latent, strict=True)
    ]
    if (P := found.probabilities()) is None:
        if every:
            raise DataError(
                "The model has no probabilities; leave probabilities out, or train it with calibration='auto'."
            )
        return answers
    places = {label: place for place, label in enumerate(classes)}
    for one, row in zip(answers, P.tolist(), strict=True):
        one["probability"] = row[places[one["class"]]]
        if every:
            one["probabilities"] = dict(zip(map(str, classes), row, strict=True))
    return answers


def as_json(answers: Any) -> bytes:
    """Return an answer as JSON; raise ValueError for what JSON cannot say, such as NaN."""
    return json.dumps(answers, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
