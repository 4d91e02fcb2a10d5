"""Odd and extreme data and parameters: a finite model or a clear refusal, never anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.blocks import Serial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.arange(60) % 3
X[:, 0] += Y


def small(**changes: Any) -> LDSVMClassifier:
    return LDSVMClassifier(**({"n_basis": 10, "random_state": 0, "tol": 0.1} | changes))


# Beyond what float32 or float64 can square or sum: a finite model or a refusal, either is fine
EXTREME: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("beyond float32", {"X": X * 1e300}, {}),
    ("squares beyond float32", {"X": (X * 1e25).astype(np.float32)}, {}),
    ("products beyond float64", {"X": X * 1e300}, {"map": "linear"}),
    ("sums beyond float64", {"X": np.sign(X) * 1.7e308}, {"n_basis": 2}),
    ("too close together", {"X": X * 1e-20}, {}),
    ("gamma beyond float64", {}, {"gamma": 1.7e308}),
    ("C beyond float64", {}, {"C": 1e300}),
    ("C too small", {}, {"C": 1e-300}),
    ("a denormal weight", {"sample_weight": np.where(np.arange(60) == 0, 5e-324, 1.0)}, {}),
    ("weights beyond float32", {"sample_weight": np.full(60, 1e300)}, {}),
    ("weights that sum to nothing", {"sample_weight": np.full(60, 1e-300)}, {}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # non-convergence may be said
@pytest.mark.parametrize(("arguments", "changes"), [e[1:] for e in EXTREME], ids=[e[0] for e in EXTREME])
def test_extremes_are_fitted_or_refused(arguments: dict[str, Any], changes: dict[str, Any]) -> None:
    # never a warning of NumPy, a LinAlgError from inside (a subclass of ValueError), or a model of NaN
    given = {"X": X, "y": Y} | arguments
    refusal: type[Exception] | None = None
    try:
        model = small(**({"max_iter": 400, "time_limit": 0.3} | changes)).fit(**given)
    except ValueError as error:
        refusal = type(error)
    if refusal is None:
        assert np.isfinite(model.decision_function(given["X"])).all() and np.isfinite(model.map_.W).all()
    assert refusal in (None, ValueError)


# Odd but legitimate: a finite model, and no warning but non-convergence (the hardest margins)
ACCEPTED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("constant X", {"X": np.ones((60, 3))}, {"n_basis": 1}),
    ("zero X", {"X": np.zeros((60, 3))}, {"n_basis": 1}),
    ("zero X, linear, no ridge", {"X": np.zeros((60, 3))}, {"map": "linear", "alpha": 0.0}),
    ("constant X, pca", {"X": np.ones((60, 3))}, {"n_basis": 1, "init": "pca"}),
    ("zero X sparse", {"X": sp.csr_array((60, 3))}, {"map": "linear"}),
    ("one sparse column, pca", {"X": sp.csr_array(X[:, :1])}, {"map": "linear", "init": "pca"}),
    ("one row per class", {"X": X[:3], "y": Y[:3]}, {"n_basis": 3}),
    ("denormals", {"X": X * 1e-310}, {"map": "linear"}),
    ("large X", {"X": X * 1e12}, {}),
    ("large X, linear", {"X": X * 1e12}, {"map": "linear"}),
    ("beyond float32, linear", {"X": X * 1e100}, {"map": "linear"}),
    ("beyond float32, linear, blocks", {"X": X * 1e100, "executor": Serial()}, {"map": "linear"}),
    ("integers", {"X": (X * 10).astype(np.int8)}, {}),
    ("booleans", {"X": X > 0}, {"n_basis": 2}),
    ("half precision", {"X": X.astype(np.float16)}, {}),
    ("numbers as objects", {"X": X.astype(object)}, {}),
    ("nullable frame", {"X": pd.DataFrame({"a": pd.array(list(range(60)), dtype="Int64"), "b": X[:, 0]})}, {}),
    ("categorical labels", {"y": pd.Categorical(Y.astype(str))}, {}),
    ("nullable labels", {"y": pd.array(Y, dtype="Int64")}, {}),
    ("more dimensions than rows", {"X": X[:12], "y": Y[:12]}, {"n_components": 20}),
    ("one dimension", {}, {"n_components": 1}),
    ("tiny gamma", {}, {"gamma": 1e-300}),
    ("huge gamma", {}, {"gamma": 1e300}),
    ("no ridge", {}, {"alpha": 0.0, "n_basis": None}),
    ("huge ridge", {}, {"alpha": 1e300}),
    ("huge C", {}, {"C": 1e12}),
    ("huge C, one-vs-one", {}, {"C": 1e16, "multi_class": "ovo"}),
    ("class of weight zero", {}, {"class_weight": {0: 0.0, 1: 1.0, 2: 1.0}}),
    ("weights of unequal size", {"sample_weight": 10.0 ** RNG.uniform(-6, 6, 60)}, {}),
    ("tiny weights", {"sample_weight": np.full(60, 1e-30)}, {}),
    ("weight as a number", {"sample_weight": 2.0}, {}),
    ("an outlier", {"X": np.where(np.arange(60)[:, None] == 3, 1e9, X)}, {}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("arguments", "changes"), [a[1:] for a in ACCEPTED], ids=[a[0] for a in ACCEPTED])
def test_odd_data_gives_a_finite_model(arguments: dict[str, Any], changes: dict[str, Any]) -> None:
    given = {"X": X, "y": Y} | arguments
    model = small(**({"max_iter": 400, "time_limit": 0.3} | changes)).fit(**given)
    scores = model.decision_function(given["X"])
    assert np.isfinite(scores).all() and np.isfinite(model.latent_coef_).all() and np.isfinite(model.map_.W).all()


@pytest.mark.parametrize("factor", [1e30, 1e140])
@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_predictions_far_away_are_finite_and_silent(kind: str, factor: float) -> None:
    # far from every centre only the bias is left; finite inputs are never an error
    far = small(map=kind).fit(X, Y).decision_function(X * factor)
    assert np.isfinite(far).all()


@pytest.mark.parametrize("kind", ["rbf", "adaptive_rbf"])
@pytest.mark.parametrize("executor", [None, Serial()], ids=["in memory", "in blocks"])
def test_inputs_too_close_for_float32_are_told_to_be_scaled(kind: str, executor: Any) -> None:
    # float32 has no number between 0 and 1e-45, the least squared distance: all centres would be one
    with pytest.raises(ValueError, match=r"vary by .*e-25; allowed .*: at least 1e-18\. Scale them first"):
        small(map=kind).fit(X * 1e-25, Y, executor=executor)
    close = small().fit(X * 1e-17, Y, executor=executor, callback=lambda info: True)
    assert len(np.unique(close.centers_, axis=0)) == 10
    scaled = make_pipeline(StandardScaler(), small())
    scaled.fit(X * 1e-25, Y, ldsvmclassifier__callback=lambda info: True)
    assert len(np.unique(scaled[-1].centers_, axis=0)) == 10
