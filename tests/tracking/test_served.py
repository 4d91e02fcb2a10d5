"""Logged models as MLflow's own tools take them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.pipeline import make_pipeline

from ldsvm import LDSVMClassifier
from ldsvm.datasets import DataError
from ldsvm.datasets.raw_table import RawTable
from ldsvm.datasets.table_schema import Allowed
from ldsvm.datasets.table_step import TableFeatures
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
    """Status and text that `mlflow models serve` answers a request with, without the server. body: a str is CSV."""
    from mlflow.exceptions import MlflowException
    from mlflow.pyfunc import scoring_server

    kind = "text/csv" if isinstance(body, str) else "application/json"
    text = body if isinstance(body, str) else json.dumps(body)
    try:
        found = scoring_server.invocations(text.encode(), kind, loaded, loaded.metadata.get_input_schema())
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
        assert (
            status == 400
            and f"Row 2, counted from 1 without a header, has {said} in column 'age'; the model needs" in text
        )
        assert "trace" not in text and ".py" not in text
    for wrong in ({"columns": ["height"], "data": [[1.0]]}, {"columns": columns, "data": [["x", 1.0]]}, {}):
        status, text = answer(loaded, {"dataframe_split": wrong})
        assert status == 400 and "trace" not in text and ".py" not in text


def test_csv_of_numbers_is_answered(logged: tuple[str, Any, Any]) -> None:
    import mlflow

    source, table, right = logged
    loaded = mlflow.pyfunc.load_model(source)
    status, text = answer(loaded, table[["age", "height"]][:9].to_csv(index=False))
    assert status == 200 and json.loads(text) == {"predictions": right[:9].tolist()}
    for body, said in {
        "height,age\n1,2\n3,\n": "Row 2, counted from 1 without a header, has '' in column 'age'",
        "height,age\n1,2\n3,4,5,6\n": "The request is not valid CSV: ",
    }.items():
        status, text = answer(loaded, body)
        assert status == 400 and said in text and "trace" not in text and ".py" not in text


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


def test_a_request_may_ask_for_probabilities(logged: tuple[str, Any, Any]) -> None:
    import mlflow

    source, table, right = logged
    loaded = mlflow.pyfunc.load_model(source)
    found = loaded.predict(table, params={"probabilities": True})
    assert found.idxmax(axis=1).tolist() == right.tolist() and found.columns.tolist() == ["old", "tall"]
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    body = {"dataframe_split": table[:2].to_dict("split"), "params": {"probabilities": True}}
    status, text = answer(loaded, body)
    assert status == 200 and json.loads(text)["predictions"][0] == pytest.approx(found.iloc[0].to_dict())
    margins = LDSVMClassifier(n_basis=5, calibration=None, random_state=0).fit(table.astype(float), right)
    with pytest.raises(Exception, match="The model has no probabilities; leave the parameter out"):
        Served(margins).predict(table.astype(float), {"probabilities": True})


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
        with pytest.raises(
            MlflowException, match=rf"Row 3, counted from 1 without a header, has {said} in column 'age'"
        ):
            loaded.predict(given)
    words = table.astype(object)
    words.loc[3, "height"] = "tall"
    with pytest.raises(
        MlflowException,
        match=r"Row 4, counted from 1 without a header, has 'tall' in column 'height'; the model needs",
    ):
        loaded.predict(words)


@pytest.fixture(scope="module")
def shop(tracker: Tracker) -> tuple[str, pandas.DataFrame]:
    """The address of a model of a mixed table, and rows of it: ages from 20 to 69, two towns or none."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"age": 20.0 + np.arange(100) % 50, "town": rng.choice(["Bonn", "Ulm", None], 100)})
    roles = {"age": "number", "town": "category"}
    schema = [Allowed("age", "number", least=20, largest=69, gaps=0.0), Allowed("town", "category", gaps=0.3)]
    steps = RawTable(roles, schema=[asdict(one) for one in schema]), TableFeatures(roles)
    labels = np.where(table["age"] < 40, "young", "old")
    model = make_pipeline(*steps, LDSVMClassifier(n_basis=5, random_state=0)).fit(table, labels)
    with tracker.run("shop", kind="method") as run:
        return run.model(model, table[:5], "shop"), table


def test_a_request_may_leave_out_columns_with_gaps_in_training(shop: tuple[str, Any]) -> None:
    import mlflow

    loaded = mlflow.pyfunc.load_model(shop[0])
    assert [(one.name, one.required) for one in loaded.metadata.get_input_schema()] == [("age", True), ("town", False)]
    status, text = answer(loaded, {"dataframe_records": [{"age": 25, "more": 1}, {"age": 61.5}]})
    right = loaded.predict(pandas.DataFrame({"town": [None, None], "age": [25.0, 61.5]}))
    assert status == 200 and json.loads(text) == {"predictions": right.tolist()}
    assert answer(loaded, "age,more\n25,x\n61.5,\n") == (200, json.dumps({"predictions": right.tolist()}))
    both = loaded.predict(pandas.DataFrame({"town": ["Ulm", None], "age": [25.0, 61.5]})).tolist()
    assert answer(loaded, "age,town\n25,Ulm\n61.5,\n") == (200, json.dumps({"predictions": both}))
    status, text = answer(loaded, {"dataframe_records": [{"town": "Ulm"}]})
    assert status == 400 and "age" in text and "trace" not in text


@pytest.mark.parametrize("rule", ["warn", "refuse", "ignore"])
def test_requests_are_checked_against_the_schema(
    rule: str, shop: tuple[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    import mlflow

    odd = {"dataframe_records": [{"age": 25, "town": "Ulm"}, {"age": 131, "town": "Ulm"}]}
    monkeypatch.setenv("LDSVM_SCHEMA", rule)
    status, text = answer(mlflow.pyfunc.load_model(shop[0]), odd)
    said = "The request: row 2, counted from 1 without a header, column 'age' is 131; training saw 20 to 69."
    assert status == (400 if rule == "refuse" else 200)
    assert (f"{said} The request is refused" in text) == (rule == "refuse")
    assert (f"{said} The request is answered anyway." in caplog.text) == (rule == "warn")
    (tmp_path / "schema.yaml").write_text("age: {least: 0, largest: 150}\n")
    monkeypatch.setenv("LDSVM_SCHEMA_FILE", str(tmp_path / "schema.yaml"))
    assert answer(mlflow.pyfunc.load_model(shop[0]), odd)[0] == 200


def test_environment_variables_that_mean_nothing(shop: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    monkeypatch.setenv("LDSVM_SCHEMA_FILE", "nowhere.yaml")
    with pytest.raises(DataError, match=r"^LDSVM_SCHEMA_FILE='nowhere.yaml' is not a file; allowed:"):
        mlflow.pyfunc.load_model(shop[0])
    monkeypatch.setenv("LDSVM_SCHEMA", "refuze")
    with pytest.raises(DataError, match=r"^LDSVM_SCHEMA='refuze' is unknown .did you mean .refuse"):
        mlflow.pyfunc.load_model(shop[0])
