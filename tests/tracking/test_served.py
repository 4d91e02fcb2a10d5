"""Logged models as MLflow's own tools take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from ldsvm import LDSVMClassifier
from ldsvm.experiment.storing import UntrustedModel
from ldsvm.tracking.client import Tracker, download
from ldsvm.tracking.served import Served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
    pytest.mark.filterwarnings("ignore:Operation with range is deprecated"),  # of pandas, in MLflow
]


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Tracker:
    return Tracker(tmp_path_factory.mktemp("store"), "tests")


@pytest.fixture(scope="module")
def logged(tracker: Tracker) -> tuple[str, pandas.DataFrame, Any]:
    """The address of a model of two columns, whole numbers as its input, and the answers to them."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.integers(2, 100, size=(60, 2)), columns=["height", "age"])
    labels = np.where(table["height"] > table["age"], "tall", "old")
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(table.astype("float32"), labels)
    with tracker.run("table", kind="method") as run:
        return run.model(model, table[:5], "table"), table, model.predict(table.astype("float32"))


def answer(loaded: Any, body: Any) -> tuple[int, str]:
    """Status and text that `mlflow models serve` answers a request with, without the server."""
    from mlflow.exceptions import MlflowException
    from mlflow.pyfunc import scoring_server

    try:
        found = scoring_server.invocations(
            json.dumps(body).encode(), "application/json", loaded, loaded.metadata.get_input_schema()
        )
    except MlflowException as error:
        return error.get_http_status_code(), error.serialize_as_json()
    return found.status, found.response


def test_wrong_requests_are_answered_in_a_sentence_without_a_trace(logged: tuple[str, Any, Any]) -> None:
    import mlflow

    # a stack trace has the paths of the server
    source, table, right = logged
    loaded = mlflow.pyfunc.load_model(source)
    columns, good = ["height", "age"], table[:3].to_numpy().tolist()
    status, text = answer(loaded, {"dataframe_split": {"columns": columns, "data": good}})
    assert status == 200 and json.loads(text) == {"predictions": right[:3].tolist()}
    for cell, said in {None: "no value", float("inf"): "inf"}.items():
        status, text = answer(loaded, {"dataframe_split": {"columns": columns, "data": [good[0], [5.0, cell]]}})
        assert status == 400 and f"Row 1 (of 0 to 1) has {said} in column 'age'; the model needs" in text
        assert "trace" not in text and ".py" not in text
    for wrong in ({"columns": ["height"], "data": [[1.0]]}, {"columns": columns, "data": [["x", 1.0]]}, {}):
        status, text = answer(loaded, {"dataframe_split": wrong})
        assert status == 400 and "trace" not in text and ".py" not in text


def test_a_fault_of_the_model_is_told_to_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    from mlflow.exceptions import MlflowException

    with pytest.raises(MlflowException, match=r"^The model failed with AttributeError; the log of the server has"):
        Served(None).predict(np.zeros((1, 2)))
    assert "no attribute 'predict'" in caplog.text


def test_a_file_with_more_than_our_models_is_refused_by_pyfunc(logged: tuple[str, Any, Any], tmp_path: Path) -> None:
    import mlflow
    from sklearn.preprocessing import FunctionTransformer
    from skops.io import dump

    folder = download(logged[0], str(tmp_path))
    dump(FunctionTransformer(np.sqrt), folder / "model.skops")
    with pytest.raises(UntrustedModel):
        mlflow.pyfunc.load_model(str(folder))


def test_predict_of_mlflow_models(logged: tuple[str, Any, Any], tmp_path: Path) -> None:
    import mlflow

    # it writes whole numbers as JSON, which are read by the signature
    source, table, right = logged
    mlflow.models.predict(source, table, env_manager="local", output_path=str(tmp_path / "answers.json"))
    assert json.loads((tmp_path / "answers.json").read_text()) == {"predictions": right.tolist()}


@pytest.mark.filterwarnings("ignore")  # of MLflow's own use of pandas and matplotlib
def test_evaluate_of_mlflow_models(logged: tuple[str, Any, Any], tracker: Tracker) -> None:
    import mlflow

    source, table, right = logged
    with tracker.run("evaluate", kind="method") as run, mlflow.start_run(run_id=run.id):
        found = mlflow.models.evaluate(
            source, table.astype(float).assign(answer=right), targets="answer", model_type="classifier",
            evaluator_config={"log_explainer": False, "log_model_explainability": False},
        )  # fmt: skip
    assert found.metrics["accuracy_score"] == 1.0


@pytest.mark.parametrize("kind", ["int64", "Int64", "Float64", "uint8", "float32", "float64", "object", "string"])
def test_numbers_of_any_type_of_pandas(kind: str, logged: tuple[str, Any, Any]) -> None:
    import mlflow

    # what read_csv and convert_dtypes give; texts of numbers as well
    source, table, right = logged
    loaded = mlflow.pyfunc.load_model(source)
    given = table.astype(kind).set_index(table.index + 7)  # by position, whatever the index
    assert np.array_equal(loaded.predict(given[["age", "height"]].assign(more="x")), right)


def test_missing_values_and_words_are_named(logged: tuple[str, Any, Any]) -> None:
    import mlflow
    from mlflow.exceptions import MlflowException

    source, table, _ = logged
    loaded, given = mlflow.pyfunc.load_model(source), table.astype("Int64")
    for cell, said in {pandas.NA: "no value", None: "no value"}.items():
        given.loc[2, "age"] = cell
        with pytest.raises(MlflowException, match=rf"Row 2 .of 0 to 59. has {said} in column 'age'"):
            loaded.predict(given)
    words = table.astype(object)
    words.loc[3, "height"] = "tall"
    with pytest.raises(MlflowException, match=r"Row 3 .of 0 to 59. has 'tall' in column 'height'; the model needs"):
        loaded.predict(words)
