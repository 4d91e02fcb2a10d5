"""Transformers by import path: of scikit-learn and of the user, on a table's columns or on features, and who may."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from flows import _cli
from ldsvm import LDSVMClassifier
from ldsvm.datasets import DataError, transformers
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.storing import UntrustedModel, dumps, loads

ROOT = Path(__file__).resolve().parents[2]
OWN = """
from sklearn.base import BaseEstimator, TransformerMixin

class Ratio(TransformerMixin, BaseEstimator):
    def __init__(self, factor=1.0):
        self.factor = factor
    def fit(self, X, y=None):
        return self
    def transform(self, X):
        X = X.to_numpy()
        return self.factor * X[:, :1] / X[:, 1:]

def function(X):
    return X
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and a module of the user's, on the path of Python."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"debt": rng.uniform(1, 9, 60), "income": rng.uniform(1, 9, 60), "town": ["a", "b", "c"] * 20})
    table.assign(label=np.where(table["debt"] > table["income"], "bad", "good")).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "user_steps.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "user_steps", raising=False)
    monkeypatch.setenv(transformers.LIST, "")
    return tmp_path


def one(place: Path, features: str) -> Prepared:
    given = [
        "dataset.name=t",
        f"dataset.path={place / 't.csv'}",
        f"paths.cache={place / 'cache'}",
        "dataset.label=label",
    ]
    (found,) = preparation.prepare(load_config("conf/digits.yaml", [*given, f"features={features}"], root=ROOT))
    return found


def test_a_class_of_the_users_takes_its_columns_and_is_stored_with_the_model(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = one(place, "[user_steps.Ratio: {columns: [debt, income], factor: 2}]")
    X, y = found.arrays("train", "original")
    assert X.shape[1] == 4  # three towns, one ratio; debt and income are no features of their own
    assert "1 from columns 'debt', 'income' by Ratio" in found.features[0]
    model = found.whole(LDSVMClassifier(map="linear", random_state=0).fit(X, y))
    data = dumps(model)
    rows = pd.read_csv(place / "t.csv")
    features = model[:-1].transform(rows)
    np.testing.assert_allclose(features[:, 3], 2 * rows["debt"] / rows["income"], rtol=1e-6)
    assert np.array_equal(loads(data).predict(rows), model.predict(rows))
    monkeypatch.setenv(transformers.LIST, "")  # another process, which was not told of it
    with pytest.raises(UntrustedModel, match=r"holds user_steps.Ratio .* LDSVM_TRANSFORMERS lists"):
        loads(data)


def test_a_class_of_scikit_learns_stands_after_the_table(place: Path) -> None:
    found = one(place, "[table, sklearn.preprocessing.PolynomialFeatures: {degree: 2, include_bias: false}]")
    X, y = found.arrays("train", "original")
    assert X.shape[1] == 20  # five features, their squares and products
    model = found.whole(LDSVMClassifier(map="linear", random_state=0).fit(X, y))
    rows = pd.read_csv(place / "t.csv")
    assert np.array_equal(loads(dumps(model)).predict(rows), model.predict(rows))


def test_a_changed_class_makes_the_features_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = "[user_steps.Ratio: {columns: [debt, income]}]"
    before = one(place, features)
    assert one(place, features).digest == before.digest
    (place / "user_steps.py").write_text(OWN.replace("self.factor *", "3 * self.factor *"))
    monkeypatch.delitem(sys.modules, "user_steps")
    assert one(place, features).digest != before.digest


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ("[nowhere.Ratio]", r"features.nowhere.Ratio: nowhere cannot be imported \(ModuleNotFoundError"),
        ("[user_steps.function]", "features.user_steps.function is .*; allowed: a class with fit"),
        ("[user_steps.Ratios]", "features.user_steps.Ratios is 'None'; allowed: a class with fit"),
        ("[user_steps.Ratio: {fact: 2, columns: [debt, income]}]", r"does not take {'fact': 2} \("),
        ("[user_steps.Ratio: {columns: [debt, incom]}]", r"columns: 'incom' is unknown .did you mean \"income\""),
        (
            "[scale, user_steps.Ratio: {columns: [debt]}]",
            "columns needs a table whose columns have roles; .* right after the step table",
        ),
    ],
)
def test_mistakes_are_one_sentence(place: Path, features: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        one(place, features)
    assert "\n" not in str(caught.value)


def test_a_deployed_run_uses_what_the_operator_lists_and_imports_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "user_steps.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.setenv("LDSVM_RUNS", str(place / "runs"))
    given = ["features=[user_steps.Ratio]"]
    with pytest.raises(
        ConfigError, match=r"features has user_steps\.Ratio; allowed in a deployed run: none, as listed in LDSVM_TR"
    ):
        _cli.experiment("conf/digits.yaml", given)
    assert "user_steps" not in sys.modules and transformers.listed() == []
    monkeypatch.setenv(transformers.LIST, "user_steps.Ratio")
    assert _cli.experiment("conf/digits.yaml", given).transformers == ["user_steps.Ratio"]
