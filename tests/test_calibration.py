"""Probabilities: the closed form is that of refits, the curves are known optima, and scikit-learn's tools take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_score

import ldsvm
from ldsvm import LDSVMClassifier, fit_path
from ldsvm.calibration import Calibrator, Fitted, calibrated, left_out
from ldsvm.mac.scheme import Scheme
from ldsvm.maps.features import FeatureRegression
from ldsvm.maps.linear import Identity

RNG = np.random.default_rng(0)
DIGITS = load_digits(return_X_y=True)
METHODS = ["auto", "sigmoid", "temperature", "isotonic"]


def clouds(n: int, seed: int, K: int = 2) -> tuple[Any, Any]:
    """Overlapping normal classes: the labels are uncertain whatever the classifier."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    X = rng.normal(size=(n, 4))
    X[:, :2] += 1.2 * np.column_stack([np.cos(2 * np.pi * y / K), np.sin(2 * np.pi * y / K)])
    return X, y


def small(**changes: Any) -> LDSVMClassifier:
    return LDSVMClassifier(**{"n_basis": 30, "random_state": 0, "n_jobs": 1, **changes})


@pytest.mark.parametrize(("rows", "lam"), [(40, 0.3), (40, 0.0), (9, 0.3)], ids=["primal", "no ridge", "dual"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_leverages_tell_the_regression_without_the_row(rows: int, kind: Any, lam: float) -> None:
    X, Z = RNG.normal(size=(rows, 12)), RNG.normal(size=(rows, 2))
    weight = np.where(np.arange(rows) % 3 == 0, 0.5, 1.0)
    found = FeatureRegression(Identity(12), kind(X), weight, lam).left_out(Z, 2.0, np.array([3, 7]))
    for n, F, h in zip([3, 7], *found, strict=True):
        kept = np.arange(rows) != n
        A = X[kept].T * weight[kept]
        W = np.linalg.solve(A @ X[kept] + lam * np.eye(12), A @ Z[kept])
        np.testing.assert_allclose(F - h / (1 - h) * (Z[n] - F), X[n] @ W, rtol=1e-6)


def test_a_weight_of_two_loses_one_of_two_equal_rows() -> None:
    X, Z = RNG.normal(size=(20, 5)), RNG.normal(size=(20, 2))
    weight = np.ones(20)
    weight[4] = 2.0
    twice = np.append(np.arange(20), 4)
    one = FeatureRegression(Identity(5), X, weight, 0.1).left_out(Z, 2.0, np.array([4]))
    other = FeatureRegression(Identity(5), X[twice], None, 0.1).left_out(Z[twice], 2.0, np.array([4]))
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)


def test_scores_of_the_first_regression_are_those_of_refits() -> None:
    # where the model is that of the first regression, the slope is 1 and the closed form is all there is
    points, y = np.array([[1.0], [-1.0]]), np.arange(30) % 2
    X = RNG.normal(size=(30, 3)) + y[:, None]
    F, h = FeatureRegression(Identity(3), X, None, 0.5).left_out(points[y], 2.0, np.arange(30))
    V, b = np.array([[-1.0]]), np.array([0.0])  # the SVM of two points at 1 and -1, with much C
    judged = left_out(Scheme(2), Fitted(y, np.ones(30), F, V, b), points, np.full((2, 1), 1e3), F, h)
    kept = np.arange(30) != 5
    W = np.linalg.solve(X[kept].T @ X[kept] + 0.5 * np.eye(3), X[kept].T @ points[y[kept]])
    assert judged.scores[5] == pytest.approx(-(X[5] @ W).item(), abs=1e-4)


@pytest.mark.parametrize("K", [2, 3])
def test_curves_are_those_of_scikit_learn(K: int) -> None:
    X, y = clouds(300, 0, K)
    model = FrozenEstimator(small(calibration=None).fit(*clouds(200, 1, K)))
    scores = model.decision_function(X)
    for method, close in (("sigmoid", 1e-3), ("isotonic", 1e-9)):
        theirs = CalibratedClassifierCV(model, method=method).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(calibrated(method, scores, y, np.ones(300))(scores), theirs, atol=close)


@pytest.mark.parametrize("K", [2, 4])
def test_a_known_temperature_is_found(K: int) -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(10_000, K)) * 3
    y = np.argmax(logits / 2.5 + rng.gumbel(size=logits.shape), axis=1)  # drawn from the softmax of logits / 2.5
    scores = logits[:, 1] - logits[:, 0] if K == 2 else logits
    for method, size in (("temperature", 1), ("auto", K)):
        found = calibrated(method, scores, y, np.ones(len(y))).columns[0]
        np.testing.assert_allclose(found, np.full(size, 1 / 2.5), rtol=0.08)
        doubled = calibrated(method, 2 * scores, y, np.ones(len(y))).columns[0]
        np.testing.assert_allclose(doubled, found / 2, rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_counts_a_row_so_many_times(method: str) -> None:
    scores, y = RNG.normal(size=(60, 3)), np.arange(60) % 3
    weight = 1.0 + np.arange(60) % 2
    twice = np.repeat(np.arange(60), weight.astype(int))
    one = calibrated(method, scores, y, weight)(scores)
    np.testing.assert_allclose(one, calibrated(method, scores[twice], y[twice], np.ones(90))(scores), atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_less_than_the_rows_count_by_their_ratios(method: str) -> None:
    scores, y = RNG.normal(size=(60, 3)), np.arange(60) % 3
    scores[np.arange(60), y] += 2.0
    weight = 0.5 + np.arange(60) % 2  # with mean 1
    one = calibrated(method, scores, y, weight)(scores)
    for factor in (0.5, 1e-9, 1e-300):
        np.testing.assert_allclose(calibrated(method, scores, y, factor * weight)(scores), one, atol=1e-6)
    assert one.max() > 0.7


def test_rows_that_are_all_right_leave_some_doubt() -> None:
    scores, y = np.array([-3.0, -2.0, 2.0, 3.0]), np.array([0, 0, 1, 1])
    for method in ("auto", "sigmoid", "temperature"):
        P = calibrated(method, scores, y, np.ones(4))(scores)
        assert 0.5 < P[3, 1] < 0.999


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("changes", [{}, {"multi_class": "ovo"}, {"calibration": "temperature"}, {"map": "linear"}])
def test_the_most_probable_class_is_the_label(K: int, changes: dict[str, Any]) -> None:
    X, y = clouds(200, 0, K)
    model = small(**changes).fit(X, np.array(["a", "b", "c"])[y])
    P = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(P))
    assert P.shape == (200, K) and P.min() > 0


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("changes", [{}, {"early_stopping": True}, {"init": "random"}], ids=str)
def test_training_rows_calibrate_as_well_as_fresh_ones(K: int, changes: dict[str, Any]) -> None:
    # 100 narrow functions fit these 250 rows much too hard
    X, y = clouds(250, 0, K)
    model = small(n_basis=100, gamma=0.5, alpha=1e-3, **changes).fit(X, y)
    fresh, labels = clouds(4_000, 1, K)
    scores, ones = model.decision_function(fresh), np.ones(4_000)
    best = log_loss(labels, calibrated("auto", scores, labels, ones)(scores))
    trained = calibrated("auto", model.decision_function(X), y, np.ones(250))(scores)
    ours = log_loss(labels, model.predict_proba(fresh))
    assert ours < 1.06 * best and ours - best < 0.3 * (log_loss(labels, trained) - best)


@pytest.mark.slow
def test_who_has_probabilities() -> None:
    X, y = clouds(80, 0)
    assert hasattr(small(), "predict_proba") and not hasattr(small(calibration=None), "predict_log_proba")
    with pytest.raises(NotFittedError):
        small().predict_proba(X)
    for changes in ({"map": Ridge()}, {"map": "adaptive_rbf", "center_steps": 20, "gamma": 0.2}):
        without = small(**changes).fit(X, y)
        with pytest.raises(AttributeError) as caught:
            without.predict_proba(X)
        assert "fitted without probabilities; fit it again with" in str(caught.value.__cause__)
        assert small(**changes).fit(X, y, eval_set=(X, y)).predict_proba(X).shape == (80, 2)
    with pytest.raises(AttributeError) as caught:
        small(calibration=None).predict_proba(X)
    assert "with calibration=None; set it to 'auto' before the fit" in str(caught.value.__cause__)
    none = small(calibration=None).fit(X, y)
    np.testing.assert_array_equal(none.set_params(calibration="auto").predict(X), small().fit(X, y).predict(X))
    assert not hasattr(none, "predict_proba")
    with pytest.raises(ValueError, match="'calibration' parameter"):
        small(calibration="platt").fit(X, y)


def test_a_warm_start_and_given_coordinates_calibrate_too() -> None:
    X, y = clouds(150, 0)
    model = small(warm_start=True).fit(X, y)
    first = model.predict_proba(X)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X), first, atol=0.1)
    # with the largest mu that "auto" is for coordinates, a fit from the same ones is the same
    given = small(init=np.where(y == 1, 1.0, -1.0)[:, None]).fit(X, y)
    np.testing.assert_allclose(given.predict_proba(X), small(mu_max=1e6).fit(X, y).predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("method", ["temperature", "sigmoid"])
def test_small_probabilities_keep_their_digits(method: str) -> None:
    line = np.array([2.0]) if method == "temperature" else np.array([2.0, 0.0])
    two, scores = Calibrator(method, [line]), np.array([30.0, -30.0])
    np.testing.assert_allclose(two(scores), two(-scores)[:, ::-1], rtol=1e-12)
    np.testing.assert_allclose(two(scores)[0, 0], np.exp(-60.0), rtol=1e-12)


def test_sigmoids_below_the_smallest_float_still_have_a_largest() -> None:
    steep = Calibrator("sigmoid", [np.array([1.0, 0.0])] * 3)
    near = steep(np.array([[-40.0, -41.0, -42.0]]))
    np.testing.assert_allclose(steep(np.array([[-1000.0, -1001.0, -1002.0]])), near, rtol=1e-12)


def test_a_path_of_c_calibrates_each_model() -> None:
    X, y = clouds(100, 0)
    for model in fit_path(small(), X, y, [0.1, 10.0]):
        alone = small(C=model.C).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("K", [2, 3])
def test_they_are_saved(tmp_path: Path, method: str, K: int) -> None:
    X, y = clouds(90, 0, K)
    model = small(calibration=method).fit(X, y)
    again = ldsvm.load(ldsvm.save(model, tmp_path / "m"))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("method", "column"),
    [
        ("temperature", [-1.0, 1.0]),
        ("temperature", [0.0]),
        ("temperature", [np.nan]),
        ("temperature", [1.0, 1.0, 1.0]),
        ("sigmoid", [-1.0, 0.0]),
        ("sigmoid", [1.0]),
        ("isotonic", [[0.0, 1.0], [1.0, 0.0]]),
        ("isotonic", [[1.0, 0.0], [0.0, 1.0]]),
        ("isotonic", [[0.0, 1.0], [0.0, 5.0]]),
        ("isotonic", [[], []]),
        ("isotonic", [0.0, 1.0]),
    ],
)
def test_columns_that_no_fit_gives_are_not_read(method: str, column: list[Any]) -> None:
    with pytest.raises(ValueError, match=f"'{method}' has numbers that no fit gives"):
        Calibrator.from_json({"method": method, "columns": [column]}, 2)


@pytest.mark.slow
def test_tools_of_scikit_learn_take_them() -> None:
    X, y = clouds(120, 0)
    model = small().fit(X, y)
    fresh = clouds(500, 1)
    assert -0.69 < get_scorer("neg_log_loss")(model, *fresh) < 0
    assert get_scorer("roc_auc")(model, *fresh) > 0.8
    assert cross_val_score(small(), X, y, cv=2, scoring="neg_brier_score").min() > -0.25
    inner = CalibratedClassifierCV(small(), cv=2, ensemble=False).fit(X, y)
    assert log_loss(fresh[1], inner.predict_proba(fresh[0])) < 0.69
    tuned = TunedThresholdClassifierCV(small(), cv=2, response_method="predict_proba", thresholds=5).fit(X, y)
    assert 0 < tuned.best_threshold_ < 1
    drops = permutation_importance(model, *fresh, scoring="neg_log_loss", n_repeats=2, random_state=0).importances_mean
    assert drops[0] > 5 * max(drops[2], drops[3])  # the classes differ in the first column only
    digits = small(n_basis=60).fit(DIGITS[0][:300] / 16, DIGITS[1][:300])
    assert get_scorer("roc_auc_ovr")(digits, DIGITS[0][300:] / 16, DIGITS[1][300:]) > 0.98
