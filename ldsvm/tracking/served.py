"""Our logged models as MLflow's `pyfunc` and `mlflow models serve` load them: the files' MLmodel names this module.

They are MLflow's scikit-learn models but for two things. A file that holds what no model of ours holds is refused
before anything of it is built (`storing.loads`). And what cannot be predicted is answered in one sentence, with row and
column of a cell that is empty: MLflow's own loader would send the stack trace along, which has paths of the server.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.experiment.storing import loads

LOG = logging.getLogger(__name__)
MODEL = "model.skops"  # what MLflow calls the file of a scikit-learn model in this format


def save_model(path: str, mlflow_model: Any, **arguments: Any) -> None:
    """Write a model as `mlflow.sklearn.save_model` does, to be loaded by this module. MLflow calls it."""
    import mlflow

    mlflow.sklearn.save_model(path=path, mlflow_model=mlflow_model, **arguments)
    mlflow_model.flavors["python_function"]["loader_module"] = __name__
    mlflow_model.save(str(Path(path) / "MLmodel"))


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
            return self.fitted.predict(data)
        except (TypeError, ValueError) as error:
            said = bad_cell(data) or str(error)
        except Exception as error:
            LOG.exception("A prediction failed.")
            said = f"The model failed with {type(error).__name__}; the log of the server has the reason."
        raise MlflowException.invalid_parameter_value(said)


def bad_cell(data: Any) -> str | None:
    """Return a sentence on the first cell without a finite number, None where there is none, or no column of numbers.

    Examples
    --------
    >>> import pandas
    >>> bad_cell(pandas.DataFrame({"height": [1.5, 2.0], "age": [30.0, None]}))
    "Row 1 (of 0 to 1) has no value in column 'age'; the model needs a finite number in every cell."
    """
    values = np.asarray(data)
    if values.ndim != 2 or values.dtype.kind != "f" or np.isfinite(values).all():
        return None
    row, column = np.argwhere(~np.isfinite(values))[0].tolist()
    name = data.columns[column] if hasattr(data, "columns") else column
    found = "no value" if np.isnan(values[row, column]) else f"{values[row, column]}"
    return (
        f"Row {row} (of 0 to {len(values) - 1}) has {found} in column {name!r}; the model needs a finite number in "
        "every cell."
    )
