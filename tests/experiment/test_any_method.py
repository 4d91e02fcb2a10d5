"""Classifiers by import path and of other packages: judged like ours, kept where the user trusts what they hold."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from flows import _cli
from ldsvm.datasets import transformers
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.judge import Judged
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.search.worker import Here
from ldsvm.experiment.storing import UntrustedModel, loads
from ldsvm.methods import METHODS, MissingPackage, lookup, shared
from ldsvm.methods.coded_labels import CodedLabels

ROOT = Path(__file__).resolve().parents[2]
OWN = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

class Nearest(ClassifierMixin, BaseEstimator):
    def __init__(self, power=2.0, random_state=None):
        self.power, self.random_state = power, random_state
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self
    def predict(self, X):
        far = (abs(X[:, None] - self.means_) ** self.power).sum(axis=2)
        return self.classes_[far.argmin(axis=1)]

class Closed(Nearest):
    def fit(self, X, y):
        self.answer_ = lambda: 0
        return super().fit(X, y)

class Line(RegressorMixin, BaseEstimator):
    def fit(self, X, y): return self
    def predict(self, X): return X[:, 0]

class Needs(Nearest):
    def __init__(self, power): self.power = power

class Breaks(Nearest):
    def __init__(self): raise SystemExit("no")

def function(X): return X
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the irises, their names as labels, and a module of the user's on the path of Python."""
    X, y = load_iris(return_X_y=True)
    named = pd.DataFrame(X, columns=list("abcd")).assign(label=np.array(["setosa", "versicolor", "virginica"])[y])
    named.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "user_methods.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "user_methods", raising=False)
    monkeypatch.setenv(transformers.LIST, "")
    return tmp_path


def config(place: Path, methods: str) -> Config:
    given = [
        "dataset.name=t", f"dataset.path={place / 't.csv'}", "dataset.label=label", f"paths.cache={place / 'cache'}",
        f"paths.runs={place / 'runs'}", "split={kind: stratified, train: 80, validation: 30, test: 40}",
        "judge.repeats=1", f"methods={methods}",
    ]  # fmt: skip
    return load_config("conf/digits.yaml", given, root=ROOT)


def competed(wanted: Config) -> tuple[Result, Judged | None]:
    (data,) = preparation.prepare(wanted)
    found = record.compete(wanted, data, wanted.problems[0], "mine", Here(), lambda done, total: None, lambda row: None)
    record.settle(
        wanted, data, wanted.problems[0], "mine", on_trials=lambda done, total: None, on_step=lambda row: None,
        runner=Here(),
    )  # fmt: skip
    return found


def test_a_class_of_the_users_is_searched_judged_and_kept(place: Path) -> None:
    wanted = config(place, "{mine: {estimator: user_methods.Nearest, search: {power: [0.5, 2.0]}}}")
    result, judged = competed(wanted)
    assert result.score is not None and judged is not None and judged.stored is not None and judged.notes == []
    assert len(result.trials) == 2 and result.score.n_basis is None
    (data,) = preparation.prepare(wanted)
    X, y = data.arrays("test", "original")
    model = loads(judged.stored, ())
    assert model.random_state == wanted.seed  # as all methods have it
    assert result.score.error == pytest.approx(np.mean(model.predict(X) != y))
    kept = record.place(wanted, data, wanted.problems[0], "mine") / record.OTHER_MODEL
    assert np.array_equal(loads(kept.read_bytes(), ()).predict(X), model.predict(X))


def test_a_changed_class_is_another_result(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = config(place, "{mine: {estimator: user_methods.Nearest}}")
    (data,) = preparation.prepare(wanted)
    before = record.place(wanted, data, wanted.problems[0], "mine")
    assert record.place(wanted, data, wanted.problems[0], "mine") == before
    (place / "user_methods.py").write_text(OWN.replace("argmin", "argmax"))
    monkeypatch.delitem(sys.modules, "user_methods")
    assert record.place(wanted, data, wanted.problems[0], "mine") != before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("methods", "holds"),
    [
        ("lightgbm.LGBMClassifier, params: {n_estimators: 3}", "collections.OrderedDict, lightgbm.basic"),
        ("xgboost.XGBClassifier, params: {n_estimators: 3}", "xgboost.core.Booster"),
    ],
)
def test_what_is_not_trusted_is_named_and_what_is_trusted_is_kept(place: Path, methods: str, holds: str) -> None:
    result, judged = competed(config(place, f"{{mine: {{estimator: {methods}}}}}"))
    assert judged is not None and judged.stored is None and result.score is not None
    assert result.score.n_basis and result.score.error < 0.2 and result.score.classes[0] == "setosa"
    [note] = [note for note in judged.notes if "not kept" in note]
    assert f"The model is not kept: it holds {holds}" in note and result.notes == judged.notes
    trusted = note.partition("trusted: ")[2]
    wanted = config(place, f"{{mine: {{estimator: {methods}, trusted: {trusted}}}}}")
    _, judged = competed(wanted)
    assert judged is not None and judged.stored is not None and judged.notes == []
    X, y = preparation.prepare(wanted)[0].arrays("test", "original")
    more = wanted.methods["mine"].trusted
    assert np.mean(loads(judged.stored, more).predict(X) != y) == result.score.error
    with pytest.raises(UntrustedModel, match="holds"):
        loads(judged.stored)  # what is not ours is refused where it is not expected


def test_what_skops_cannot_hold_leaves_the_result(place: Path) -> None:
    result, judged = competed(config(place, "{mine: {estimator: user_methods.Closed}}"))
    assert judged is not None and judged.stored is None and result.score is not None
    [note] = judged.notes
    assert note.startswith("The model is not kept: ") and "\n" not in note


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("estimator: nowhere.Classifier", r"methods.mine: estimator nowhere.Classifier: nowhere cannot be imported \("),
        ("estimator: user_methods.Nearer", "estimator user_methods.Nearer is 'None'; allowed: a class with fit"),
        ("estimator: user_methods.function", "estimator user_methods.function is .*; allowed: a class with fit"),
        ("estimator: user_methods.Line", "user_methods.Line is not a classifier; allowed: a class with scikit-learn's"),
        ("estimator: user_methods.Needs", "Needs cannot be made without parameters .*; allowed: a class whose param"),
        ("estimator: user_methods.Breaks", r"user_methods.Breaks cannot be made \(SystemExit: no\)\.$"),
        ("estimator: user_methods.Nearest()", r"user_methods.Nearest\(\) is not an import path; allowed: names"),
        (
            "estimator: user_methods..Nearest",
            "user_methods..Nearest is not an import path; allowed: names joined by dots",
        ),
        ("estimator: user_methods.Nearest, params: {powr: 1}", r"methods.mine.params.powr .*did you mean \"power\""),
        ("estimator: xgboost.XGBClassifier, search: {depth: [1]}", "methods.mine.search.depth is unknown"),
        (
            "estimator: user_methods.Nearest, search: default",
            "search must list values by parameter, since an import path has no",
        ),
        ("estimator: ldsvm, trusted: [a.b]", "allowed: trusted with an import path only"),
        ("estimator: lightgb", 'did you mean "lightgbm"'),
    ],
)
def test_mistakes_are_one_sentence_before_anything_is_trained(place: Path, method: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        config(place, f"{{mine: {{{method}}}}}")
    assert "\n" not in str(caught.value)


def test_a_deployed_run_uses_what_the_operator_lists_and_imports_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "user_methods.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.setenv("LDSVM_RUNS", str(place / "runs"))
    given = ["methods={mine: {estimator: user_methods.Nearest}}"]
    with pytest.raises(
        ConfigError, match=r"user_methods\.Nearest is not allowed here; allowed: the import paths in LDSV"
    ):
        _cli.experiment("conf/digits.yaml", given)
    assert "user_methods" not in sys.modules and transformers.listed() == []
    (place / "user_methods.py").write_text(OWN)
    monkeypatch.setenv(transformers.LIST, "user_methods.Nearest")
    assert _cli.experiment("conf/digits.yaml", given).classifiers == ["user_methods.Nearest"]


def test_a_package_that_is_absent_is_a_row(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # Python's way to say that there is none
    with pytest.raises(MissingPackage):
        lookup("lightgbm").make()
    result, judged = competed(config(place, "{mine: {estimator: lightgbm, search: default}}"))
    assert judged is None and str(result.failure) == (
        "not run: lightgbm is not installed; install it with: pip install 'ldsvm[rivals]'"
    )


def test_a_package_that_is_in_no_extra_is_named_by_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xrfm", None)
    result, judged = competed(config(place, "{mine: {estimator: xrfm, search: default}}"))
    assert judged is None
    assert str(result.failure).endswith("not run: xrfm is not installed; install it with: pip install xrfm")


class Machine:
    """In place of xRFM: remembers what it is given, and finds the class whose mean is nearest."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def fit(self, X: Any, y: Any, X_valid: Any, y_valid: Any) -> None:
        self.sizes, self.kinds = (len(X), len(X_valid)), (X.dtype, y.dtype)
        self.means = np.stack([X[y == k].mean(axis=0) for k in range(y.max() + 1)])

    def predict_proba(self, X: Any) -> Any:
        away = ((X[:, None] - self.means) ** 2).sum(axis=2)
        return (np.exp(-away) + 1e-6).astype(np.float32)


def test_xrfm_gets_codes_and_rows_that_choose_and_its_answers_are_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xrfm", SimpleNamespace(xRFM=Machine))
    X, y = load_iris(return_X_y=True)
    words = np.array(["z", "m", "a"])[y]
    model = shared(lookup("xrfm").make(), seed=0, n_jobs=2).fit(X, words)
    assert model.model_.sizes == (120, 30) and model.model_.kinds == (np.float32, np.int64)
    assert model.model_.given["n_threads"] == 2 and model.model_.given["device"] == "cpu"
    assert model.classes_.tolist() == ["a", "m", "z"] and model.score(X, words) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    model.fit(X[:101], words[:101])  # one row of a class
    assert model.model_.sizes == (80, 21)


def test_coded_labels_answer_as_the_classifier_without_them() -> None:
    X, y = load_iris(return_X_y=True)
    words = np.array(["z", "m", "a"])[y]  # sorted otherwise than they are numbered
    model = clone(CodedLabels(KNeighborsClassifier(3))).fit(X, words)
    plain = KNeighborsClassifier(3).fit(X, words)
    assert np.array_equal(model.predict(X), plain.predict(X)) and np.array_equal(model.classes_, plain.classes_)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X)) and model.score(X, words) > 0.9


def test_rivals_have_a_space_of_parameters_that_they_know() -> None:
    for name in ("lightgbm", "xgboost", "xrfm"):
        assert set(METHODS[name].space) <= set(lookup(name).make().get_params())
