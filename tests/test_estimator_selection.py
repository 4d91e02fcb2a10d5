"""scikit-learn's selectors of inputs around the estimator: coef_ where it is one weight per input, else importances."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance

from ldsvm import LDSVMClassifier, load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))


def small(**changes: Any) -> LDSVMClassifier:
    return LDSVMClassifier(**({"n_basis": 15, "random_state": 0, "tol": 0.1, "n_jobs": 1} | changes))


def labels(classes: int) -> Any:
    """Classes that input 3 alone decides."""
    return np.digitize(X[:, 3], [0.0] if classes == 2 else [-0.4, 0.4])


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("changes", [{}, {"map": "adaptive_rbf", "center_steps": 20}], ids=["rbf", "adaptive"])
def test_selectors_read_the_importances_of_a_nonlinear_map(changes: dict[str, Any], classes: int) -> None:
    # SVMs weigh latent dimensions: read as weights of inputs they chose a wrong column without a word
    model, y = small(**changes), labels(classes)
    assert np.flatnonzero(RFE(model, n_features_to_select=1).fit(X, y).support_).tolist() == [3]
    assert np.flatnonzero(SelectFromModel(model, max_features=1).fit(X, y).get_support()).tolist() == [3]
    with pytest.raises(AttributeError, match=r"coef_ only when fitted with map='linear'; .*feature_importances_"):
        _ = model.fit(X, y).coef_
    found = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert np.argmax(found.importances_mean) == 3


def test_importances_are_mean_squared_slopes_of_the_scores() -> None:
    model = small().fit(X * [1, 1, 1, 10, 1], labels(3))
    centers, step, slopes = model.centers_.astype(float), 1e-4, np.zeros(5)
    for d, move in enumerate(step * np.eye(5)):
        ahead, behind = model.decision_function(centers + move), model.decision_function(centers - move)
        slopes[d] = np.sum(((ahead - behind) / (2 * step)) ** 2) * centers[:, d].var()
    np.testing.assert_allclose(model.feature_importances_, slopes / slopes.sum(), rtol=1e-4)
    with pytest.raises(AttributeError, match=r"feature_importances_ only when fitted with map='rbf'"):
        _ = small(map="linear").fit(X, labels(2)).feature_importances_


@pytest.mark.parametrize(("classes", "scheme", "svms"), [(2, "ovr", 1), (3, "ovr", 3), (3, "ovo", 3)])
def test_weights_of_a_linear_map_are_those_of_the_inputs(classes: int, scheme: str, svms: int) -> None:
    # g(F(x)) = V W' x + b is a linear classifier of the inputs
    model, y = small(map="linear", multi_class=scheme), labels(classes)
    model.fit(X, y).set_params(map="rbf")  # says nothing of the model that is there
    assert model.coef_.shape == (svms, 5) and model.latent_coef_.shape == (svms, classes - 1)
    values = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(values, model.transform(X) @ model.latent_coef_.T + model.intercept_, atol=1e-9)
    if scheme == "ovr":
        np.testing.assert_allclose(np.squeeze(values), model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_selectors_read_a_linear_map(classes: int) -> None:
    chosen = RFE(small(map="linear"), n_features_to_select=1).fit(X, labels(classes))
    assert np.flatnonzero(chosen.support_).tolist() == [3]
    kept = SelectFromModel(small(map="linear"), max_features=1).fit(X, labels(classes)).get_support()
    assert np.flatnonzero(kept).tolist() == [3]


def test_models_of_earlier_versions_are_read() -> None:
    # they kept the SVMs as coef_
    model = small().fit(X, labels(3))
    state = dict(model.__getstate__())
    state["coef_"] = state.pop("latent_coef_")
    earlier = LDSVMClassifier.__new__(LDSVMClassifier)
    earlier.__setstate__(state)
    np.testing.assert_array_equal(earlier.decision_function(X), model.decision_function(X))
    assert not hasattr(pickle.loads(pickle.dumps(earlier)), "coef_")


def test_a_model_from_before_probabilities_is_read(tmp_path: Path) -> None:
    state = dict(small(alpha=0.1).fit(X, labels(3)).__getstate__())
    for name in ("calibration", "calibrator_", "alpha_"):
        del state[name]
    earlier = LDSVMClassifier.__new__(LDSVMClassifier)
    earlier.__setstate__(state)
    assert not hasattr(earlier, "predict_proba") and earlier.alpha_ == 0.1
    again = load(save(earlier, tmp_path / "m"))
    np.testing.assert_array_equal(again.decision_function(X), earlier.decision_function(X))
    assert clone(earlier).fit(X, labels(3)).predict_proba(X).shape == (len(X), 3)
