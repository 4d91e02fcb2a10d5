"""Our logged models as MLflow's `pyfunc` and `mlflow models serve` load them: the files' MLmodel names this module.

They are MLflow's scikit-learn models but for three things. A file that holds what no model of ours holds is refused
before anything of it is built (`storing.loads`). Numbers come in any type of pandas: MLflow would refuse int64,
nullable and boolean columns for a model of float64, so the signature says "any" and they are converted here. And what
cannot be predicted is answered in one sentence, with row and column of the cell: MLflow's own loader would send the
stack trace along, which has paths of the server.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.datasets.raw_table import reader_of
from ldsvm.datasets.words import shown
from ldsvm.experiment.storing import loads

LOG = logging.getLogger(__name__)
MODEL = "model.skops"  # what MLflow calls the file of a scikit-learn model in this format


def save_model(path: str, mlflow_model: Any, **arguments: Any) -> None:
    """Write a model as `mlflow.sklearn.save_model` does, to be loaded by this module. MLflow calls it."""
    import mlflow

    mlflow.sklearn.save_model(path=path, mlflow_model=mlflow_model, **arguments)
    mlflow_model.flavors["python_function"]["loader_module"] = __name__
    mlflow_model.save(str(Path(path) / "MLmodel"))


def signature(X: Any, answers: Any) -> Any:
    """Return MLflow's signature for rows X, a table of numbers (n, D), an array or texts (n,), and answers (n,)."""
    from mlflow.models import ModelSignature, infer_signature
    from mlflow.types.schema import AnyType, ColSpec, Schema

    if not hasattr(X, "columns"):
        return infer_signature(X, answers)
    found = infer_signature(model_output=answers)
    any_type: Any = AnyType()  # type: ignore[no-untyped-call]
    return ModelSignature(Schema([ColSpec(any_type, str(name)) for name in X.columns]), found.outputs)


def _load_pyfunc(path: str) -> Served:
    """MLflow calls it with the folder of the model's files. Raises UntrustedModel for what is no model of ours."""
    return Served(loads((Path(path) / MODEL).read_bytes()))


class Served:
    """A fitted classifier whose `predict` raises MLflow's exception, with one sentence, whatever happens."""

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted

    def predict(self, data: Any, params: Any = None) -> Any:
        """Return labels (n,). data: as MLflow's check of the signature leaves it. params: none are used."""
        from mlflow.exceptions import MlflowException

        try:
            if hasattr(data, "columns") and not (reader_of(self.fitted) or _texts(data)):
                if (said := bad_cell(data)) is not None:
                    raise MlflowException.invalid_parameter_value(said)
                data = numbers(data)
            return self.fitted.predict(data)
        except MlflowException:
            raise
        except (TypeError, ValueError) as error:
            said = str(error)
        except Exception as error:
            LOG.exception("A prediction failed.")
            said = f"The model failed with {type(error).__name__}; the log of the server has the reason."
        raise MlflowException.invalid_parameter_value(said)


def _texts(data: Any) -> bool:
    """Return whether a table is one column of texts, the input of a model of texts."""
    return data.shape[1] == 1 and all(isinstance(cell, str) for cell in data.iloc[:, 0])


def numbers(data: Any) -> Any:
    """Return a table (n, D) in float64; what is no number is NaN.

    Examples
    --------
    >>> import pandas
    >>> numbers(pandas.DataFrame({"age": [30, None, "x"], "member": [True, False, True]})).values.tolist()
    [[30.0, 1.0], [nan, 0.0], [nan, 1.0]]
    """
    import pandas

    return data.apply(lambda column: pandas.to_numeric(column, errors="coerce").astype("float64"))


def bad_cell(data: Any) -> str | None:
    """Return a sentence on the first cell of a table without a finite number, None where there is none.

    Examples
    --------
    >>> import pandas
    >>> bad_cell(pandas.DataFrame({"height": [1.5, 2.0], "age": [30, None]}))
    "Row 1 (of 0 to 1) has no value in column 'age'; the model needs a finite number in every cell."
    """
    import pandas

    values = numbers(data).to_numpy()
    if np.isfinite(values).all():
        return None
    row, column = np.argwhere(~np.isfinite(values))[0].tolist()
    found = data.iloc[row, column]
    what = "no value" if pandas.isna(found) else shown(found)
    return (
        f"Row {row} (of 0 to {len(values) - 1}) has {what} in column {data.columns[column]!r}; the model needs a "
        "finite number in every cell."
    )
