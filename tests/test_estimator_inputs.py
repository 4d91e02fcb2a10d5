"""What the estimator refuses, each with one sentence that names the thing, the value and what is allowed."""

from __future__ import annotations

import warnings
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from ldsvm import LDSVMClassifier, RowBlocks, fit_path
from ldsvm.blocks import Serial
from ldsvm.checks import check_labels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.arange(60) % 3
X[:, 0] += Y


def small(**changes: Any) -> LDSVMClassifier:
    return LDSVMClassifier(**({"n_basis": 10, "random_state": 0, "tol": 0.1} | changes))


WRONG = {
    "n_components": [0, -1, 1.5, "all", None],
    "map": ["poly", None, object(), 3],
    "n_basis": [0, -3, 2.5, "all"],
    "centers": ["median", None, 3],
    "center_steps": [0, -5, 2.5, None],
    "z_follows": ["yes", None],
    "gamma": [0.0, -1.0, "narrow", None, np.nan, np.inf],
    "C": [0.0, -1.0, "1", None, np.nan, np.inf],
    "alpha": [-1e-9, "1", None, np.nan, np.inf],
    "class_weight": ["uniform", 3.0],
    "multi_class": ["crammer", None],
    "init": ["zeros", None, 3],
    "mu": [0.0, -2.0, None, np.nan, np.inf],
    "mu_factor": [1.0, 0.5, None, np.nan, np.inf],
    "mu_max": [0.0, None, np.nan, np.inf],
    "tol": [-1e-3, None, np.nan, np.inf],
    "max_iter": [0, 2.5, None],
    "early_stopping": ["yes", None],
    "validation_fraction": [0.0, 1.0, None, np.nan],
    "n_iter_no_change": [0, 1.5, None],
    "time_limit": [0.0, -1.0, "1s", np.nan, np.inf],
    "z_solver": ["nonesuch", None, 3],
    "g_solver": ["sgd", None],
    "calibration": ["platt", True],
    "warm_start": ["yes", None],
    "n_jobs": [1.5, "x"],
    "random_state": ["seed", -1, 1.5],
    "verbose": ["loud", -1],
}


def test_every_parameter_has_a_wrong_value() -> None:
    assert set(WRONG) == set(LDSVMClassifier().get_params())


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_parameters_are_named_with_their_value(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name) as error:
        small(**{name: value}).fit(X, Y)
    text = str(error.value)
    assert ("must be" in text or "allowed:" in text) and repr(value).strip("'")[:12] in text and "\n" not in text


# (what, arguments of fit, parameters, exception, a part of the sentence)
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], type[Exception], str]] = [
    ("no rows", {"X": np.zeros((0, 4)), "y": []}, {}, ValueError, "0 sample"),
    ("no columns", {"X": np.zeros((60, 0))}, {}, ValueError, r"0 feature\(s\)"),
    ("one dimension", {"X": X[:, 0]}, {}, ValueError, "Expected 2D array"),
    ("three dimensions", {"X": X[:, :, None]}, {}, ValueError, "dim 3"),
    ("text", {"X": np.full((60, 2), "a", object)}, {}, ValueError, "could not convert string to float"),
    ("complex", {"X": X + 1j}, {}, ValueError, "Complex data not supported"),
    ("fewer labels", {"y": Y[:5]}, {}, ValueError, r"inconsistent numbers of samples: \[60, 5\]"),
    ("no labels", {"y": None}, {}, ValueError, "y should be a 1d array"),
    ("two columns of labels", {"y": np.c_[Y, Y]}, {}, ValueError, "y should be a 1d array"),
    ("continuous labels", {"y": X[:, 0]}, {}, ValueError, "Unknown label type"),
    ("labels with NaN", {"y": np.where(Y == 0, np.nan, Y)}, {}, ValueError, "y has a missing label in row 0;"),
    ("mixed labels", {"y": ["a", 1, 2] * 20}, {}, ValueError, "y has the label 1 in row 1, that of row 0 is 'a'"),
    ("dates as labels", {"y": [date(2026, 1, 1)] * 60}, {}, ValueError, "y has the label datetime.* in row 0; labels"),
    ("eval label missing", {"eval_set": (X, [0, None] * 30)}, {}, ValueError, "the y of eval_set has a missing label"),
    ("one class", {"y": np.full(60, 7)}, {}, ValueError, "y contains one class only, .*7.*, in 60 rows"),
    ("one class with weight", {"sample_weight": Y == 1}, {}, ValueError, "one class only, .*1.*, in 20 rows"),
    ("sparse for rbf", {"X": sp.csr_array(X)}, {}, TypeError, "map='rbf' needs dense data: use X.toarray"),
    ("sparse eval for rbf", {"eval_set": (sp.csr_array(X), Y)}, {}, TypeError, "map='rbf' needs dense data"),
    ("short weights", {"sample_weight": np.ones(5)}, {}, ValueError, "sample_weight has 5 values but X has 60 rows"),
    ("negative weight", {"sample_weight": [1] * 59 + [-2]}, {}, ValueError, r"sample_weight\[59\] is -2.0"),
    ("infinite weight", {"sample_weight": [np.inf] + [1] * 59}, {}, ValueError, r"sample_weight\[0\] is inf"),
    ("zero weights", {"sample_weight": np.zeros(60)}, {}, ValueError, "sample_weight is zero for every row"),
    ("infinite sum of weights", {"sample_weight": np.full(60, 1e308)}, {}, ValueError, "whose sum is infinite; lower"),
    ("weights of text", {"sample_weight": ["a"] * 60}, {}, ValueError, "sample_weight"),
    ("weights 2D", {"sample_weight": np.ones((60, 1))}, {}, ValueError, "sample_weight.* must be 1D"),
    ("empty eval set", {"eval_set": ()}, {}, ValueError, r"eval_set must be a pair \(X_valid, y_valid\), got tuple"),
    ("eval set of pairs", {"eval_set": [(X, Y)]}, {}, ValueError, "eval_set must be a pair"),
    ("eval set of no rows", {"eval_set": (X[:0], Y[:0])}, {}, ValueError, "0 sample"),
    ("eval set of other width", {"eval_set": (X[:, :2], Y)}, {}, ValueError, "X has 2 features"),
    ("eval set of other length", {"eval_set": (X, Y[:2])}, {}, ValueError, r"\[60, 2\]"),
    ("eval label unknown", {"eval_set": (X, Y + 5)}, {}, ValueError, "eval_set has the label .*5"),
    ("eval set with NaN", {"eval_set": (X * [1, np.nan, 1, 1], Y)}, {}, ValueError, "NaN in column 1"),
    ("init of other width", {}, {"init": np.zeros((60, 3)), "n_components": 2}, ValueError, r"\(60, 2\).*\(60, 3\)"),
    ("init of other length", {}, {"init": np.zeros((5, 2))}, ValueError, r"init must be .*\(60, 2\)"),
    ("init with NaN", {}, {"init": np.full((60, 2), np.nan)}, ValueError, "init must be a finite array"),
    ("init of no columns", {}, {"init": np.zeros((60, 0))}, ValueError, "init"),
    ("init a number", {}, {"init": np.array(3.0)}, ValueError, "init"),
    ("init of text", {}, {"init": [["a", "b"]] * 60}, ValueError, "init"),
    ("init ragged", {}, {"init": [[1, 2], [1]]}, ValueError, "init"),
    ("negative class weight", {}, {"class_weight": {0: -1.0, 1: 1.0, 2: 1.0}}, ValueError, "class_weight"),
    ("NaN class weight", {}, {"class_weight": {0: np.nan, 1: 1.0, 2: 1.0}}, ValueError, "class_weight"),
    ("infinite class weight", {}, {"class_weight": {0: np.inf, 1: 1.0, 2: 1.0}}, ValueError, "class_weight"),
    ("no class weight at all", {}, {"class_weight": {0: 0, 1: 0, 2: 0}}, ValueError, "is zero for every class"),
    ("one class weight", {}, {"class_weight": {0: 0, 1: 2, 2: 0}}, ValueError, "is zero for all classes but one"),
    ("unknown class weight", {}, {"class_weight": {9: 1.0}}, ValueError, "class_weight"),
    ("class weight of text", {}, {"class_weight": {0: "a"}}, ValueError, "class_weight"),
    ("mu above mu_max", {}, {"mu": 10.0, "mu_max": 1.0}, ValueError, "mu_max"),
    ("no threads", {}, {"n_jobs": 0}, ValueError, "n_jobs"),
    ("a class as map", {}, {"map": Ridge}, TypeError, "instance of scikit-learn estimator instead of a class"),
    ("too few to hold out", {"X": X[:4], "y": Y[:4]}, {"early_stopping": True}, ValueError, "early_stopping=True"),
    ("all held out", {}, {"early_stopping": True, "validation_fraction": 0.99}, ValueError, "validation_fraction=0.99"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "changes", "kind", "part"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_refusals_are_one_clear_sentence(
    arguments: dict[str, Any], changes: dict[str, Any], kind: type[Exception], part: str
) -> None:
    # never another exception, a warning of NumPy, or a model of NaN
    with pytest.raises(kind, match=part):
        small(**changes).fit(**({"X": X, "y": Y} | arguments))


NAMES = ["a", "b", None]


@pytest.mark.parametrize(
    "y",
    [
        *(pd.Series(NAMES, dtype=dtype) for dtype in ("str", "string", "category", "object")),
        *(pd.Series([0, 1, None], dtype=dtype) for dtype in ("Int64", "boolean", "float64", "object", "category")),
        np.array(NAMES, dtype=object),
        np.array(NAMES, dtype=np.dtypes.StringDType(na_object=None)),
        np.array(NAMES, dtype=object)[:, None],
        np.array(["2026-01-01", "2026-01-02", "NaT"], dtype="datetime64[D]"),
        pa.array(NAMES),
        NAMES,
        ["a", "b", np.nan],  # NumPy would write it as the text "nan"
        ["a", "b", pd.NA],
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)
def test_a_missing_label_is_told_with_its_row(y: Any) -> None:
    with pytest.raises(ValueError, match=r"^y has a missing label in row 2; every row needs one\.$"):
        small().fit(X[:3], y)
    if np.ndim(y) == 1:
        with pytest.raises(ValueError, match=r"^block 0: y has a missing label in row 2; every row needs one\.$"):
            RowBlocks.arrays([(X[:3], y)])


@pytest.mark.parametrize(
    ("y", "plain"),
    [
        (np.array([3, 1, 2], dtype=object), np.array([3, 1, 2])),
        (np.array([True, False], dtype=object), np.array([True, False])),
        (pd.Series([3, 1, 2], dtype="Int64"), np.array([3, 1, 2])),
        (pd.Series([3, 1, 2], dtype="category"), np.array([3, 1, 2])),
        (np.array(["b", "a"], dtype=np.dtypes.StringDType()), np.array(["b", "a"], dtype=object)),
        (pd.Series(["b", "a"], dtype="string"), np.array(["b", "a"], dtype=object)),
        (["b", "a"], np.array(["b", "a"])),
    ],
    ids=str,
)
def test_labels_are_the_same_in_whatever_type_they_are_kept(y: Any, plain: Any) -> None:
    found = check_labels(y)
    assert found.dtype == plain.dtype and found.tolist() == plain.tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_the_column_of_a_bad_value_is_named(kind: str, value: float) -> None:
    # by number, and by name where there is one; when fitting and when predicting
    bad = X.copy()
    bad[7, 2] = value
    what = "NaN" if np.isnan(value) else "infinity"
    as_given = {
        "array": lambda a: a,
        "frame": lambda a: pd.DataFrame(a, columns=["north", "east", "south", "west"]),
        "sparse": sp.csr_array,
    }[kind]
    name = r"2 \('south'\)" if kind == "frame" else "2;"
    model = small(map="linear") if kind == "sparse" else small()
    with pytest.raises(ValueError, match=f"{what}.* in column {name}"):
        model.fit(as_given(bad), Y)
    with pytest.raises(ValueError, match=f"{what}.* in column {name}"):
        model.fit(as_given(X), Y).predict(as_given(bad))


def test_other_parameters_after_fit_do_not_change_the_fitted_model() -> None:
    # with three classes both schemes have three SVMs, so a changed parameter must not reinterpret them
    model = small(C=0.05).fit(X, Y)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(multi_class="ovo").predict(X), before)


def test_prediction_checks_its_input() -> None:
    model = small()
    for method in (model.predict, model.transform, model.decision_function):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            method(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model.fit(frame, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["a", "b"]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("dcba")])
    model.fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 features, but LDSVMClassifier is expecting 4"):
        model.predict(X[:, :2])
    with pytest.raises(TypeError, match="map='rbf' needs dense data"):
        model.predict(sp.csr_array(X))


@pytest.mark.parametrize(("values", "part"), [([], "C_values is empty"), ([1.0, -1.0], "'C'.*-1"), (["a"], "'C'.*'a'")])
def test_wrong_paths(values: list[Any], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        fit_path(small(), X, Y, values)


def test_weights_need_a_regressor_that_takes_them() -> None:
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(ValueError, match="sample_weight cannot be used with map=KNeighborsRegressor"):
        small(map=KNeighborsRegressor()).fit(X, Y, sample_weight=np.arange(60.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(map=Ridge()).fit(X, Y, sample_weight=np.arange(60.0), callback=lambda info: True)


@pytest.mark.parametrize(
    "how", [{"executor": Serial()}, {"checkpoint": "never written"}], ids=lambda how: next(iter(how))
)
def test_blocks_of_rows_do_not_choose_their_number_of_basis_functions(how: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"^n_basis='auto' needs all rows in one array; allowed .*: 'scale' and whole n"
    ):
        small(n_basis="auto").fit(X, Y, eval_set=(X, Y), **how)
