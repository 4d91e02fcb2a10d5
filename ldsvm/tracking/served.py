"""Our logged models as MLflow's `pyfunc` and `mlflow models serve` load them: the files' MLmodel names this module.

They differ in three ways from MLflow's scikit-learn models. A file with types that our models do not use is refused
before anything of it is built (`storing.loads`). Numbers come in any type of pandas: MLflow would refuse int64,
nullable and boolean columns for a model of float64, so the signature says "any" and they are converted here. And what
cannot be predicted is answered in one sentence, with row and column of the cell: MLflow's own loader would send the
stack trace along, which has paths of the server.

Rows of a table are checked against its schema, what the columns had in training: the environment variable
``LDSVM_SCHEMA`` says what is done about other cells (warn, by default, in the log; refuse; ignore), and
``LDSVM_SCHEMA_FILE`` names a schema.yaml that people have edited. For a mixed table, a request may leave out
columns that had missing values in training, which then count as missing.
"""

from __future__ import annotations

import csv
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.datasets import DataError
from ldsvm.datasets.column import INPUTS
from ldsvm.datasets.read_tables import reader_of, schema_of
from ldsvm.datasets.table_schema import Allowed, Check
from ldsvm.datasets.words import listing, row_list, shown, unknown
from ldsvm.experiment import schema_file
from ldsvm.experiment.storing import loads

LOG = logging.getLogger(__name__)
RULES = ("warn", "refuse", "ignore")
PROBABILITIES = "probabilities"  # the parameter of a request that asks for these instead of labels
MODEL = "model.skops"  # what MLflow calls the file of a scikit-learn model in this format


def save_model(path: str, mlflow_model: Any, **arguments: Any) -> None:
    """Write a model as `mlflow.sklearn.save_model` does, to be loaded by this module. MLflow calls it."""
    import mlflow

    mlflow.sklearn.save_model(path=path, mlflow_model=mlflow_model, **arguments)
    mlflow_model.flavors["python_function"]["loader_module"] = __name__
    mlflow_model.save(str(Path(path) / "MLmodel"))


def signature(X: Any, answers: Any, optional: Sequence[str] = ()) -> Any:
    """Return MLflow's signature for rows X, a table (n, D), an array or texts (n,), and answers (n,).

    optional: columns of a table that a request may leave out.
    """
    from mlflow.models import ModelSignature, infer_signature
    from mlflow.types.schema import AnyType, ColSpec, Schema

    params = {PROBABILITIES: False}
    if not hasattr(X, "columns"):
        return infer_signature(X, answers, params)
    found = infer_signature(model_output=answers, params=params)
    any_type: Any = AnyType()  # type: ignore[no-untyped-call]
    columns = Schema([ColSpec(any_type, str(name), required=name not in optional) for name in X.columns])
    return ModelSignature(columns, found.outputs, found.params)


def _load_pyfunc(path: str) -> Served:
    """MLflow calls it with the folder of the model's files.

    Raises UntrustedModel for a model that is not ours, and DataError for invalid environment variables.
    """
    _read_csv_as_text()
    fitted = loads((Path(path) / MODEL).read_bytes())
    rule, allowed, edited = _schema(schema_of(fitted))
    return Served(fitted, rule, allowed, edited)


def _read_csv_as_text() -> None:
    """Let the server take CSV for models whose columns may have any type, which MLflow's own reader refuses.

    The cells stay as they are written, so that 01234 keeps its zero; the model turns them into numbers and words.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.pyfunc import scoring_server
    from mlflow.types.schema import AnyType

    theirs = scoring_server.parse_csv_input
    if theirs.__module__ == __name__:
        return

    def parse_csv_input(csv_input: Any, schema: Any = None) -> Any:
        if schema is None or not all(isinstance(column.type, AnyType) for column in schema.inputs):
            return theirs(csv_input, schema)
        try:
            return csv_table(csv_input)
        except DataError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from None

    scoring_server.parse_csv_input = parse_csv_input


def csv_table(text: Any) -> Any:
    """Return the table of a CSV with names of columns, from a file; the cells stay as they are written.

    Raises DataError for a text that is not such a table, including rows with more or fewer cells than there are names,
    and a name that is there twice: pandas would move the cells, take them for missing, or rename the column.
    """
    import pandas

    try:
        found = pandas.read_csv(text, dtype=str, keep_default_na=False, header=None)
    except ValueError as error:
        said = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(f"The request is not valid CSV: {said}.") from None
    names = found.iloc[0].tolist()
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise DataError(f"The request has {listing('column', twice[:1])} more than once; allowed: once.")
    if (found == "").any(axis=None):  # an empty cell, or none
        text.seek(0)
        short = (place for place, row in enumerate(filter(None, csv.reader(text))) if len(row) < len(names))
        if place := next(short, 0):
            where = row_list([place - 1]).capitalize()
            raise DataError(f"{where}, has fewer cells than there are columns; allowed: {len(names)} cells.")
    return found[1:].set_axis(names, axis=1).reset_index(drop=True)


def _schema(seen: tuple[Allowed, ...]) -> tuple[str, tuple[Allowed, ...], bool]:
    """Return what the environment variables say, see `schema_rule`."""
    rule, file = os.environ.get("LDSVM_SCHEMA", RULES[0]), os.environ.get("LDSVM_SCHEMA_FILE")
    if rule not in RULES:
        raise DataError(unknown(f"LDSVM_SCHEMA={rule!r}", rule, RULES))
    if file is not None and not Path(file).is_file():
        raise DataError(f"LDSVM_SCHEMA_FILE={file!r} is not a file; allowed: a schema.yaml, as written by a training.")
    return schema_rule(seen, rule, file)


def schema_rule(seen: tuple[Allowed, ...], rule: str, file: str | None) -> tuple[str, tuple[Allowed, ...], bool]:
    """Return what is done about cells that the schema does not allow, the schema, and whether people have edited it.

    seen: what the training had. file: a schema.yaml, which may be absent.
    """
    roles = {one.name: one.role for one in seen if one.role in INPUTS}
    found = None if file is None else schema_file.edited(Path(file), roles)
    return rule, found or seen, bool(found)


class Served:
    """A fitted classifier whose `predict` raises MLflow's exception, with one sentence, whatever happens.

    rule, allowed, edited: what is done about cells of a table that the schema does not allow, the schema, and whether
    people have edited it. setting: what says the rule, for the sentence of a refusal.
    """

    def __init__(
        self,
        fitted: Any,
        rule: str = "ignore",
        allowed: tuple[Allowed, ...] = (),
        edited: bool = False,
        setting: str = "LDSVM_SCHEMA",
    ) -> None:
        self.fitted, self.rule, self.allowed, self.edited, self.setting = fitted, rule, allowed, edited, setting

    def predict(self, data: Any, params: Any = None) -> Any:
        """Return labels (n,), or a table (n, K) of probabilities by class.

        data: as MLflow's check of the signature leaves it. params: with a true ``probabilities`` for these.
        """
        from mlflow.exceptions import MlflowException

        wanted = bool((params or {}).get(PROBABILITIES))
        try:
            model, X, remarks = self.inputs(data)
            if remarks:
                LOG.warning(" ".join([*remarks, "The request is answered anyway."]))
            return _answers(model, X, wanted)
        except (TypeError, ValueError) as error:
            said = str(error)
        except Exception as error:
            LOG.exception("A prediction failed.")
            said = f"The model failed with {type(error).__name__}; the log of the server has the reason."
        raise MlflowException.invalid_parameter_value(said)

    def inputs(self, data: Any) -> tuple[Any, Any, list[str]]:
        """Return the steps that answer, the inputs that they take, and sentences on cells that the schema lacks.

        data: a table with the model's columns, an array or texts. Raises DataError, in one sentence, for what is none
        of these and for cells that are refused.
        """
        reader = reader_of(self.fitted)
        if reader is not None and hasattr(data, "columns"):
            table = reader.transform(data.assign(**dict.fromkeys(set(optional(self.fitted)) - {*data.columns})))
            return self.fitted[1:], table, self._remarks(table)
        if hasattr(data, "columns") and not _texts(data):
            found = numbers(data)
            if (said := bad_cell(data, found)) is not None:
                raise DataError(said)
            return self.fitted, found, self._remarks(found)
        return self.fitted, data, []

    def _remarks(self, table: Any) -> list[str]:
        """Return sentences on cells that the schema does not allow; raise DataError where they are refused."""
        check = Check(() if self.rule == "ignore" else self.allowed, self.edited)
        check.look(table, "The request", np.arange(len(table)))
        if check.sentences and self.rule == "refuse":
            raise DataError(" ".join([*check.summary, f"The request is refused ({self.setting} is refuse)."]))
        return check.summary


def _answers(fitted: Any, X: Any, probabilities: bool) -> Any:
    if not probabilities:
        return fitted.predict(X)
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(
            "The model has no probabilities; leave the parameter out, or train it with calibration='auto'."
        )
    import pandas

    return pandas.DataFrame(fitted.predict_proba(X), columns=[str(label) for label in fitted.classes_.tolist()])


def optional(model: Any) -> list[str]:
    """Return the columns of a mixed table that had gaps in training, so that a request may leave them out."""
    reader = reader_of(model)
    return [one.name for one in schema_of(model) if one.gaps > 0 and one.name in reader.roles] if reader else []


def _texts(data: Any) -> bool:
    """Return whether a table is one column of texts, the input of a model of texts."""
    return data.shape[1] == 1 and all(isinstance(cell, str) for cell in data.iloc[:, 0])


def numbers(data: Any) -> Any:
    """Return a table (n, D) in float64; cells that are not numbers become NaN.

    Examples
    --------
    >>> import pandas
    >>> numbers(pandas.DataFrame({"age": [30, None, "x"], "member": [True, False, True]})).values.tolist()
    [[30.0, 1.0], [nan, 0.0], [nan, 1.0]]
    """
    import pandas

    if all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in data.dtypes):
        return data.astype(np.float64)  # column by column a row of 64 takes 25 ms
    return data.apply(lambda column: pandas.to_numeric(column, errors="coerce").astype("float64"))


def bad_cell(data: Any, found: Any) -> str | None:
    """Return a sentence on the first cell of a table without a finite number, None where there is none.

    found: its `numbers`.

    Examples
    --------
    >>> import pandas
    >>> data = pandas.DataFrame({"height": [1.5, 2.0], "age": [30, None]})
    >>> bad_cell(data, numbers(data))
    "Row 2, counted from 1 without a header, has no value in column 'age'; the model needs a finite number in every \
cell."
    """
    import pandas

    values = found.to_numpy()
    if np.isfinite(values).all():
        return None
    row, column = np.argwhere(~np.isfinite(values))[0].tolist()
    found = data.iloc[row, column]
    what = "no value" if pandas.isna(found) else shown(found)
    return (
        f"{row_list([row]).capitalize()}, has {what} in column {data.columns[column]!r}; the model needs a "
        "finite number in every cell."
    )
