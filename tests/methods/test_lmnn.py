"""LMNN against slow loops over all triplets, known optima, invariances, and the cases that break implementations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldsvm.methods import lmnn_loss
from ldsvm.methods.lmnn import LargeMarginNN
from ldsvm.methods.lmnn_loss import Loss
from ldsvm.typing import Array

pytestmark = pytest.mark.slow
WEIGHT = 0.3  # far from 0.5: exchanging weight and 1 - weight shows


def uneven(seed: int = 0, sizes: tuple[int, ...] = (14, 9, 2, 1), D: int = 4) -> tuple[Array, Array]:
    """Overlapping classes of different sizes; the third is too small for three targets, the last has none."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), D)) + rng.normal(size=(len(sizes), D))[y], y


def slow_targets(X: Array, y: Array, k: int) -> list[list[int]]:
    """For each row its k nearest others of the same class, or as many as there are."""
    answer = []
    for i in range(len(X)):
        same = [j for j in range(len(X)) if y[j] == y[i] and j != i]
        answer.append(sorted(same, key=lambda j: float(((X[i] - X[j]) ** 2).sum()))[:k])
    return answer


def slow_loss(A: Array, X: Array, y: Array, k: int, weight: float) -> tuple[float, Array]:
    """Loss and gradient by the definition: a loop over all rows, targets and impostors."""
    pull, push, G = 0.0, 0.0, np.zeros_like(A)
    for i, targets in enumerate(slow_targets(X, y, k)):
        for j in targets:
            u = X[i] - X[j]
            near = float(((A @ u) ** 2).sum())
            pull += near
            G += (1 - weight) * 2 * A @ np.outer(u, u)
            for m in np.flatnonzero(y != y[i]):
                v = X[i] - X[m]
                excess = 1 + near - float(((A @ v) ** 2).sum())
                if excess > 0:
                    push += excess
                    G += weight * 2 * A @ (np.outer(u, u) - np.outer(v, v))
    return ((1 - weight) * pull + weight * push) / len(X), G / len(X)


def fit(X: Array, y: Array, **params: Any) -> LargeMarginNN:
    """A fit of which only the loss matters, hence without the warning that it may go on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LargeMarginNN(**params).fit(X, y)


def error(X: Array, y: Array, X_test: Array, y_test: Array) -> float:
    return 1.0 - float(KNeighborsClassifier(n_neighbors=1).fit(X, y).score(X_test, y_test))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the checks are not about the optimum
@parametrize_with_checks([LargeMarginNN(max_iter=3), LargeMarginNN(n_components=1, max_iter=3)])  # type: ignore[untyped-decorator]
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


# Loss and gradient.


@pytest.mark.parametrize("most", [10**6, 0])  # pairs from the list, pairs block by block
@pytest.mark.parametrize("L", [1, 2, 4])
def test_loss_and_gradient_equal_those_of_slow_loops(most: int, L: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmnn_loss, "BLOCK", 70)  # several blocks, the last one shorter
    X, y = uneven()
    loss = Loss(X, y, 3, WEIGHT, most)
    for seed in range(5):  # the list is also used where it was not found
        A = np.random.default_rng(0).normal(size=(L, 4)) + 0.02 * seed
        value, gradient = loss(A)
        expected, slow = slow_loss(A, X, y, 3, WEIGHT)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slow, rtol=1e-10, atol=1e-12)
    assert (loss._listed is None) == (most == 0)


def test_gradient_equals_finite_differences() -> None:
    X, y = uneven(1)
    loss = Loss(X, y, 3, WEIGHT, 10**6)
    a = np.random.default_rng(2).normal(size=8)  # no triplet is within 1e-5 of its kink
    off = check_grad(lambda a: loss(a.reshape(2, 4))[0], lambda a: loss(a.reshape(2, 4))[1].ravel(), a, epsilon=1e-7)
    assert off < 1e-5 * np.linalg.norm(loss(a.reshape(2, 4))[1])


@pytest.mark.parametrize("step", [1e-3, 0.03, 0.3, 3.0])
def test_no_impostor_is_missed_while_the_map_moves(step: float) -> None:
    """A list found earlier gives what a search of all rows gives, however far the map has gone."""
    X, y = uneven(3, (30, 30, 20), 3)
    listed, searched = Loss(X, y, 3, WEIGHT, 10**6), Loss(X, y, 3, WEIGHT, 0)
    rng = np.random.default_rng(4)
    A, kept = rng.normal(size=(2, 3)), 0
    for _ in range(40):
        before = listed._listed
        assert listed(A)[0] == pytest.approx(searched(A)[0], rel=1e-12)
        kept += listed._listed is before
        A = A + step * rng.normal(size=A.shape)
    assert kept > 20 if step == 1e-3 else kept < 40


# The descent.


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("params", [{"n_components": 2}, {"init": "pca"}, {"n_components": 1, "max_impostors": 30}])
def test_true_loss_never_rises(seed: int, params: dict[str, Any]) -> None:
    X, y = uneven(seed)
    model = fit(X, y, weight=WEIGHT, max_iter=80, **params)
    assert (np.diff(model.loss_history_) <= 0).all() and model.loss_ < model.loss_history_[0]
    assert len(model.loss_history_) == model.n_iter_ + 1 and model.loss_ == model.loss_history_[-1]
    assert model.loss_ == pytest.approx(slow_loss(model.components_, X, y, 3, WEIGHT)[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_one_dimension_reaches_the_known_optimum(seed: int) -> None:
    """With D = 1 the loss is convex and piecewise linear in A²: its minimum is at one of its knots."""
    X, y = uneven(seed, (8, 5), 1)
    knots = [0.0]
    for i, targets in enumerate(slow_targets(X, y, 2)):
        for gap in ((X[i, 0] - X[m, 0]) ** 2 - (X[i, 0] - X[j, 0]) ** 2 for j in targets for m in range(13)):
            knots += [1 / gap] if gap > 0 else []
    best = min(slow_loss(np.array([[np.sqrt(knot)]]), X, y, 2, WEIGHT)[0] for knot in knots)
    model = LargeMarginNN(n_neighbors=2, weight=WEIGHT, tol=0).fit(X, y)
    assert model.loss_ == pytest.approx(best, rel=1e-6)
    assert model.loss_ == pytest.approx(slow_loss(model.components_, X, y, 2, WEIGHT)[0], rel=1e-9)


@pytest.mark.parametrize("L", [1, 2])
def test_no_small_step_from_the_solution_goes_down(L: int) -> None:
    """First-order condition where the hinge has kinks: no direction of descent, random or along the gradient."""
    X, y = uneven(5, (20, 11, 9), 2)
    model = fit(X, y, n_components=L, weight=WEIGHT, tol=0, max_iter=2000)
    A, rng = model.components_, np.random.default_rng(0)
    _, G = slow_loss(A, X, y, 3, WEIGHT)
    loss = Loss(X, y, 3, WEIGHT, 0)
    steps = [-G / np.linalg.norm(G), *(U / np.linalg.norm(U) for U in rng.normal(size=(200, *A.shape)))]
    slope = min((loss(A + 1e-5 * U)[0] - model.loss_) / 1e-5 for U in steps)
    start = np.linalg.norm(loss(fit(X, y, n_components=L, weight=WEIGHT, max_iter=1).components_)[1])
    assert slope > -1e-3 * start


def test_gradient_vanishes_at_a_solution_without_kinks() -> None:
    """Classes that coincide in pairs: all triplets are active around the best map, which is zero."""
    X = np.repeat(np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.5]]), 4, axis=0) * np.tile([1.0, -1.0], 4)[:, None]
    y, start = np.repeat([0, 1, 2, 3], 2), 0.1 * np.eye(3)
    model = fit(X, y, n_neighbors=1, weight=WEIGHT, init=start, tol=0)
    at_start, at_end = (np.linalg.norm(slow_loss(A, X, y, 1, WEIGHT)[1]) for A in (start, model.components_))
    assert at_end < 1e-6 * at_start


def test_stopping_early_always_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        assert LargeMarginNN(max_iter=3).fit(*uneven()).n_iter_ == 3


def test_list_of_impostors_costs_no_accuracy() -> None:
    X, y = uneven(6, (30, 30, 20))
    losses = [fit(X, y, n_components=2, max_impostors=most).loss_history_[:15] for most in (0, 200, 10**6)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-6)


# Invariances.


def test_translation_rotation_scale_order_and_names_change_nothing() -> None:
    X, y = uneven(7)
    rng = np.random.default_rng(8)
    Q, order = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.permutation(len(X))
    variants = [(X + np.array([5, -3, 100, 0]), y), (X @ Q, y), (X[order], y[order]), (X, np.array(list("zbxa"))[y])]
    for init in ("pca", "lda"):
        base = fit(X, y, init=init, n_components=2, max_iter=6)
        for moved, labels in [*variants, (1e6 * X, y), (1e-6 * X, y), (1e150 * X, y), (1e-150 * X, y)]:
            model = fit(moved, labels, init=init, n_components=2, max_iter=6)
            np.testing.assert_allclose(model.loss_history_, base.loss_history_, rtol=1e-6)


def test_same_bits_twice() -> None:
    X, y = uneven(9)
    a, b = fit(X, y, n_components=2), fit(X, y, n_components=2)
    assert np.array_equal(a.components_, b.components_) and np.array_equal(a.loss_history_, b.loss_history_)


# What it is for.


def test_noisy_dimensions_no_longer_decide() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 20)) * np.r_[0.3, 0.3, np.full(18, 2.0)]
    X[:, 0] += y
    X, X_test, y, y_test = X[:200], X[200:], y[:200], y[200:]
    model = fit(X, y, n_components=2)
    before = error(X, y, X_test, y_test)
    assert before > 0.25
    assert error(model.transform(X), y, model.transform(X_test), y_test) < 0.6 * before


def test_digits_beat_principal_components() -> None:
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), train_size=300, random_state=0)
    model, pca = LargeMarginNN(n_components=5, tol=2e-3).fit(X, y), PCA(5).fit(X)
    ours = error(model.transform(X), y, model.transform(X_test), y_test)
    assert ours <= error(pca.transform(X), y, pca.transform(X_test), y_test)
    assert ours < 0.09


# Degenerate cases.


def test_without_impostors_the_pull_shrinks_the_map_until_there_are_some() -> None:
    X, y = uneven(10, (10, 10), 3)
    X[:, 0] += 1000 * y
    start = 10 * np.eye(2, 3)
    first = slow_loss(start, X, y, 3, WEIGHT)
    near = [((start @ (X[i] - X[j])) ** 2).sum() for i, t in enumerate(slow_targets(X, y, 3)) for j in t]
    assert first[0] == pytest.approx((1 - WEIGHT) * sum(near) / 20)
    model = fit(X, y, init=start, weight=WEIGHT)
    assert model.loss_history_[0] == pytest.approx(first[0], rel=1e-9) and model.loss_ < 1e-3 * first[0]
    assert model.loss_ == pytest.approx(slow_loss(model.components_, X, y, 3, WEIGHT)[0], rel=1e-9)


def test_class_of_one_row_has_no_target_and_is_an_impostor() -> None:
    X = np.array([[0.0], [1.0], [0.5]])
    model = fit(X, np.array([0, 0, 1]), init=[[1.0]], weight=WEIGHT, max_iter=1)
    assert model.loss_history_[0] == pytest.approx((0.7 * 2 + 0.3 * 2 * (1 + 1 - 0.25)) / 3)


def test_classes_of_one_row_only_leave_the_start() -> None:
    X = np.random.default_rng(0).normal(size=(4, 2))
    model = LargeMarginNN(init=np.eye(2)).fit(X, np.arange(4))
    assert model.loss_ == 0.0 and model.n_iter_ == 0
    np.testing.assert_allclose(model.components_, np.eye(2), atol=1e-12)


def test_duplicates_have_a_perfect_start() -> None:
    X = np.repeat(np.array([[0.0, 1.0], [2.0, 0.0], [3.0, 4.0]]), 5, axis=0)
    model = LargeMarginNN().fit(X, np.repeat([0, 1, 2], 5))
    assert model.loss_ == pytest.approx(0.0, abs=1e-12)
    assert error(model.transform(X), np.repeat([0, 1, 2], 5), model.transform(X), np.repeat([0, 1, 2], 5)) == 0


def test_constant_columns_get_no_weight() -> None:
    X, y = uneven(11)
    X = np.insert(X, [1, 3], 7.0, axis=1)
    for L in (None, 2):
        model = fit(X, y, n_components=L, max_iter=20)
        np.testing.assert_allclose(model.components_[:, [1, 4]], 0.0, atol=1e-12)
    assert not fit(np.ones((6, 3)), np.array([0, 0, 0, 1, 1, 1])).transform(np.ones((2, 3))).any()
    assert np.isfinite(fit(np.ones((6, 3)), np.array([0, 0, 0, 1, 1, 1]), n_components=1).components_).all()


@pytest.mark.parametrize("params", [{}, {"n_components": 2}, {"init": "pca"}, {"n_components": 1, "init": "lda"}])
def test_fewer_rows_than_features(params: dict[str, Any]) -> None:
    X, y = uneven(12, (5, 4, 3), 40)  # also a singular scatter within the classes
    model = fit(X, y, **params)
    assert model.components_.shape == (params.get("n_components") or 40, 40)
    assert model.loss_ < model.loss_history_[0] and np.isfinite(model.components_).all()


def test_no_scatter_within_the_classes() -> None:
    X = np.repeat(np.eye(3), 4, axis=0)
    assert LargeMarginNN(n_components=2, init="lda").fit(X, np.repeat([0, 1, 2], 4)).loss_ == pytest.approx(0, abs=1e-9)


def test_single_precision_and_data_that_may_not_be_written() -> None:
    X, y = uneven(13)
    X.setflags(write=False)
    y.setflags(write=False)
    double, single = fit(X, y, max_iter=20), fit(X.astype(np.float32), y, max_iter=20)
    assert double.transform(X).dtype == np.float64 and single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.loss_ == pytest.approx(double.loss_, rel=1e-4)


def test_labels_may_be_text_and_two_classes_are_enough() -> None:
    X, y = uneven(14, (8, 7))
    model = fit(X, np.array(["no", "yes"])[y], n_components=1)
    assert list(model.classes_) == ["no", "yes"] and list(model.get_feature_names_out()) == ["largemarginnn0"]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_components": 5}, "n_components=5 must be at most the number of features of X, 4."),
        ({"init": "lda", "n_components": 4}, "init='lda' has at most 3 components for 4 classes, not 4."),
        ({"init": np.eye(3)}, r"init has shape \(3, 3\); it must be .* = \(at most 4, 4\)."),
        ({"init": np.eye(2, 4), "n_components": 3}, r"init has shape \(2, 4\); it must be .* = \(3, 4\)."),
        ({"init": np.ones((5, 4))}, r"init has shape \(5, 4\)"),
        ({"init": [[np.nan, 0, 0, 0]]}, "init contains NaN"),
        ({"weight": 1.0}, "'weight' parameter"),
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"init": "identity"}, "'init' parameter"),
    ],
)
def test_refusals_are_one_sentence(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        LargeMarginNN(**params).fit(*uneven())


def test_single_class_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^y contains one class only, 'a'; LargeMarginNN needs at least two\.$"):
        LargeMarginNN().fit(np.eye(3), ["a", "a", "a"])
