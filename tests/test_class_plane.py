"""All classes in a plane: what the places say, and the order of the classes on the circle."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldsvm import ClassPlane, LDSVMClassifier
from ldsvm.class_plane import MANY, corners, places


@parametrize_with_checks([ClassPlane(LogisticRegression())])  # type: ignore[untyped-decorator]
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def scores_of(K: int, rows: int = 40, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, K))


def total(scores: Any, points: Any) -> float:
    """Distances of the corners, each weighted by how often both classes are likely: a loop over the rows."""
    found = 0.0
    for row in scores:
        shares = np.exp(3.0 * row) / np.sum(np.exp(3.0 * row))
        for a, one in enumerate(points):
            for b, other in enumerate(points):
                found += shares[a] * shares[b] * float(np.linalg.norm(one - other))
    return found


def test_a_sure_row_lies_at_its_corner_and_an_unsure_one_in_the_middle() -> None:
    points = corners(scores_of(5))
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0)
    np.testing.assert_allclose(places(1e3 * np.eye(5), points), points)
    np.testing.assert_allclose(places(np.zeros((1, 5)), points), 0.0, atol=1e-15)
    either = places([[9.0, 9.0, -9.0, -9.0, -9.0]], points)
    np.testing.assert_allclose(either[0], (points[0] + points[1]) / 2)


def test_only_differences_of_scores_count() -> None:
    scores, points = scores_of(6), corners(scores_of(6))
    np.testing.assert_allclose(places(scores + 7.0, points), places(scores, points))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_the_best_of_all(seed: int) -> None:
    scores = scores_of(5, rows=6, seed=seed)
    found = corners(scores)
    best = min(total(scores, found[list(order)]) for order in permutations(range(5)))
    np.testing.assert_allclose(total(scores, found), best)


def test_classes_that_are_confused_are_neighbours() -> None:
    pairs = [(0, 4), (1, 7), (2, 5), (3, 6)]
    scores = np.array([[4.0 * (k in pair) for k in range(8)] for pair in pairs for _ in range(20)])
    points = corners(scores)
    side = 2 * np.sin(np.pi / 8)
    for one, other in pairs:
        np.testing.assert_allclose(np.linalg.norm(points[one] - points[other]), side)


def test_two_classes_lie_on_a_line_and_many_keep_their_order() -> None:
    X, y = load_digits(n_class=2, return_X_y=True)
    plane = ClassPlane(LogisticRegression(C=1e-4)).fit(X, y)
    Z = plane.transform(X)
    np.testing.assert_array_equal(Z[:, 1], 0.0)
    np.testing.assert_array_equal(Z[:, 0] > 0, plane.classifier_.predict(X) == 1)
    angles = np.unwrap(np.arctan2(*corners(scores_of(MANY + 1)).T[::-1]))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / (MANY + 1))


def test_a_fitted_classifier_is_taken_as_it_is() -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    fitted = LogisticRegression(max_iter=1000).fit(X[:100], y[:100])
    plane = ClassPlane(FrozenEstimator(fitted)).fit(X, y)
    np.testing.assert_array_equal(plane.transform(X), places(fitted.decision_function(X), plane.corners_))
    assert list(plane.get_feature_names_out()) == ["classplane0", "classplane1"]


@pytest.mark.parametrize("sharpness", [0, -1.0, np.nan, np.inf, "2", None])
def test_a_sharpness_that_is_no_positive_number_is_named(sharpness: Any) -> None:
    with pytest.raises(ValueError, match=r"sharpness is .*; allowed: a positive number"):
        ClassPlane(LogisticRegression(), sharpness).fit([[0.0], [1.0]], [0, 1])


def test_a_classifier_needs_one_score_for_each_class() -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    with pytest.raises(ValueError, match=r"classifier is DecisionTreeClassifier\(\); allowed: .* decision_function"):
        ClassPlane(DecisionTreeClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="6 scores for 4 classes"):
        ClassPlane(SVC(decision_function_shape="ovo")).fit(X, y)
    with pytest.raises(ValueError, match="3 scores for 3 classes, not one for each"):
        ClassPlane(make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))).fit(X[y < 3], y[y < 3])


@pytest.mark.slow
def test_ten_classes_are_clearer_than_in_two_latent_dimensions() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=42)
    wrong = []
    for fitted in (ClassPlane(LDSVMClassifier(random_state=0)), LDSVMClassifier(2, random_state=0)):
        Z = fitted.fit(X_train, y_train).transform(X_train)
        wrong.append(1 - KNeighborsClassifier(1).fit(Z, y_train).score(fitted.transform(X_test), y_test))
    assert wrong[0] < 0.03 < wrong[1]
