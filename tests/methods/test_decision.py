"""Thresholds by cost: the theory's of probabilities, the best on validation rows of other scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from ldsvm import LDSVMClassifier
from ldsvm.experiment.storing import dumps, loads
from ldsvm.methods.decision import AtThreshold, decided
from ldsvm.methods.sizes import count
from ldsvm.metrics import Answers, Costs, answers_of, metric

COSTS = Costs(missed=5.0, false_alarm=1.0)


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + y[:, None], np.array(["no", "yes"])[y]


def test_the_metric_by_hand() -> None:
    answers = Answers(np.array([0, 1]), np.array([1, 1, 0, 0]), np.array([0, 1, 1, 0]), costs=COSTS)
    assert metric("cost").value(answers) == (5 + 1) / 4 and metric("cost").less
    assert metric("cost").value(answers.take(np.array([1, 1, 2, 3]))) == 1 / 4


def test_with_true_probabilities_no_threshold_costs_less_than_the_theorys() -> None:
    # rows of one probability each: missing costs 5 p, a false alarm 1 - p, whichever is less
    p = np.linspace(0.005, 0.995, 100)
    cost = {t: np.where(p >= t, (1 - p) * COSTS.false_alarm, p * COSTS.missed).mean() for t in np.linspace(0, 1, 201)}
    best = np.where(p >= COSTS.threshold, 1 - p, 5 * p).mean()
    assert best == pytest.approx(min(cost.values())) and COSTS.threshold == pytest.approx(1 / 6)


@pytest.mark.parametrize(("costs", "said"), [(Costs(1, 1), "same"), (Costs(0, 1), "no"), (Costs(1, 0), "yes")])
def test_equal_costs_change_nothing_and_what_costs_nothing_is_never_avoided(costs: Costs, said: str) -> None:
    X, y = rows(200, 0)
    fitted = LogisticRegression().fit(X, y)
    found = decided(fitted, costs, X, y).predict(X)
    np.testing.assert_array_equal(found, fitted.predict(X) if said == "same" else np.full(200, said))


def test_without_probabilities_validation_rows_choose_the_best_threshold_there_is() -> None:
    (X, y), (X_valid, y_valid) = rows(300, 0), rows(150, 1)
    fitted = LinearSVC().fit(X, y)
    found = decided(fitted, COSTS, X_valid, y_valid)
    assert found.response_method == "decision_function"
    scores, true = fitted.decision_function(X_valid), y_valid == "yes"
    every = [COSTS.mean(true, scores >= t) for t in [*scores, np.inf]]
    assert metric("cost").value(answers_of(found, X_valid, y_valid, COSTS)) == pytest.approx(min(every))
    assert found.threshold < 0  # it looks for more than the plain one
    assert decided(NearestCentroid().fit(X, y), None, X, y) is not None
    assert not isinstance(decided(fitted, None, X_valid, y_valid), AtThreshold)


def test_the_model_that_has_not_seen_the_validation_rows_chooses() -> None:
    (X, y), (X_valid, y_valid) = rows(100, 0), rows(100, 1)
    first, again = LinearSVC().fit(X, y), LinearSVC().fit(np.r_[X, X_valid], np.r_[y, y_valid])
    assert decided(again, COSTS, X_valid, y_valid, first).threshold == decided(first, COSTS, X_valid, y_valid).threshold
    constant = LinearSVC(C=1e-9).fit(X, y)
    constant.coef_[:] = 0
    assert set(decided(constant, COSTS, X_valid, y_valid).predict(X)) == {"yes"}


def test_ours_keeps_its_other_answers_its_size_and_its_bytes() -> None:
    X, y = rows(200, 0)
    plain = LDSVMClassifier(n_basis=20, random_state=0).fit(X, y)
    model: Any = decided(plain, COSTS, X, y)
    np.testing.assert_array_equal(model.predict(X) == "yes", plain.predict_proba(X)[:, 1] >= 1 / 6)
    assert (model.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()
    again = loads(dumps(model))
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))
    np.testing.assert_array_equal(again.transform(X), plain.transform(X))
    assert (count(again), again.n_features_in_, again.classes_.tolist()) == (20, 2, ["no", "yes"])


def test_the_last_step_of_a_pipeline_can_be_one() -> None:
    # a pipeline asks its last step whether it is fitted, before it answers
    X, y = rows(100, 0)
    scaler = StandardScaler().fit(X)
    model = AtThreshold(LDSVMClassifier(n_basis=10, random_state=0), threshold=0.2, response_method="predict_proba")
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    model.estimator.fit(scaler.transform(X), y)
    whole = Pipeline([("scale", scaler), ("model", model)])
    np.testing.assert_array_equal(whole.predict(X) == "yes", whole.predict_proba(X)[:, 1] >= 0.2)
    assert whole.transform(X).shape == (100, 1)


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC()])
def test_it_answers_behind_feature_steps(estimator: Any) -> None:
    X, y = rows(200, 0)
    scale = StandardScaler().fit(X)
    model = decided(estimator.fit(scale.transform(X), y), COSTS, scale.transform(X), y)
    whole = Pipeline([("scale", scale), ("model", model)])
    np.testing.assert_array_equal(whole.predict(X), model.predict(scale.transform(X)))
    assert whole.classes_.tolist() == ["no", "yes"]
