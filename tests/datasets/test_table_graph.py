"""Mixed tables as ONNX graphs: onnxruntime gives what the pipeline gives, gaps, unseen values and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier, onnx_inputs, to_onnx
from ldsvm.datasets.raw_table import RawTable
from ldsvm.datasets.table_step import TableFeatures
from ldsvm.export import NotExported
from tests.test_export import ran

ROLES = {
    "age": "number",
    "paid": "yes/no",
    "latent space": "number",
    "town": "category",
    "zip": "category",
    "day": "date",
}


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(
        {
            "age": rng.normal(40, 9, n),
            "paid": rng.choice(["yes", "No"], n),
            "latent space": rng.integers(0, 3, n),
            "town": rng.choice(["Ulm", "Bonn", "Köln", "Wien"], n, p=[0.5, 0.3, 0.19, 0.01]),
            "zip": rng.choice([f"{i:05d}" for i in range(40)], n),
            "day": pd.Timestamp("1890-01-01") + pd.to_timedelta(rng.integers(0, 3_000_000, n), unit="h"),
        }
    )
    for name in made:
        made[name] = made[name].astype(object).where(rng.random(n) > 0.1, None)
    return made


def labels(rows: pd.DataFrame) -> Any:
    """Three classes, which age and town decide."""
    return (rows["age"].fillna(40) > 40).to_numpy() + (rows["town"] == "Ulm").to_numpy().astype(int)


def fitted(rows: pd.DataFrame, **params: Any) -> Pipeline:
    y = labels(rows)
    steps = [RawTable(ROLES), TableFeatures(ROLES, **params), LDSVMClassifier(n_basis=30, random_state=0)]
    return make_pipeline(*steps).fit(rows, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "params", [{}, {"gaps": "own"}, {"numbers": "robust", "many": 5}, {"rare": 1, "many": 100}], ids=str
)
def test_onnxruntime_gives_the_same(tmp_path: Path, params: dict[str, Any]) -> None:
    # the days are 1890 to 2232: before 1970, leap years, and 1900 and 2100, which are none
    model = fitted(table(800, 0), **params)
    rows = table(300, 1)
    rows.loc[:9, "town"] = "unseen"
    rows.loc[5:19, "zip"] = "unseen"
    found = ran(to_onnx(model, tmp_path / "m.onnx"), onnx_inputs(model, rows[rows.columns[::-1]]))
    decision = model.decision_function(rows)
    np.testing.assert_allclose(found["decision"], decision, atol=1e-4 * max(1.0, np.abs(decision).max()))
    sure = np.diff(np.sort(decision, axis=1)[:, -2:]).ravel() > 1e-3
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(found["label"][sure], model.predict(rows)[sure])


@pytest.mark.slow
def test_the_calendar_is_that_of_the_step(tmp_path: Path) -> None:
    days = pd.date_range("1896-02-27", "1904-03-02").append(pd.date_range("1999-12-30", "2004-03-02"))
    rows = pd.DataFrame({"day": [*days, None]})
    step = TableFeatures({"day": "date"}).fit(rows)
    model = make_pipeline(step, LDSVMClassifier(map="linear", random_state=0)).fit(rows, np.arange(len(rows)) % 2)
    found = ran(to_onnx(model, tmp_path / "m.onnx"), onnx_inputs(model, rows))
    np.testing.assert_allclose(found["latent"], model[-1].transform(step.transform(rows)), atol=1e-5)


@pytest.mark.slow
def test_steps_after_the_table_and_an_imputer_before_the_scaler(tmp_path: Path) -> None:
    rows = table(300, 0)
    y = labels(rows)
    steps = [TableFeatures(ROLES), PCA(5), LDSVMClassifier(n_basis=20, random_state=0)]
    model = make_pipeline(RawTable(ROLES), *steps).fit(rows, y)
    found = ran(to_onnx(model, tmp_path / "m.onnx"), onnx_inputs(model, rows))
    np.testing.assert_allclose(found["decision"], model.decision_function(rows), atol=1e-4)

    X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    X[::7, 1] = np.nan
    model = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), steps[-1]).fit(X, y)
    found = ran(to_onnx(model, tmp_path / "m.onnx"), onnx_inputs(model, X))
    np.testing.assert_allclose(found["decision"], model.decision_function(X), atol=1e-4)


def test_what_is_no_graph_is_one_sentence(tmp_path: Path) -> None:
    rows, y = table(200, 0), np.arange(200) % 2
    rows["note"] = rows["town"].astype(str) + " is a town"
    rows["label"] = rows["age"]
    wrong = {
        "Column 'note' is text": {"note": "text"},
        "column 'label' has a name": {"label": "number"},
        "features.table.numbers is quantile": {"age": "number"},
    }
    for said, roles in wrong.items():
        step = TableFeatures(roles, numbers="quantile" if "quantile" in said else "standard")
        model = make_pipeline(RawTable(roles), step, LDSVMClassifier(n_basis=5, random_state=0)).fit(rows, y)
        with pytest.raises(NotExported, match=said):
            to_onnx(model, tmp_path / "m.onnx")
    assert not [*tmp_path.iterdir()]
