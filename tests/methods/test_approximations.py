"""Explicit features: the centres of our own classifier, Nyström's formula, least squares by the normal equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldsvm import LDSVMClassifier
from ldsvm.methods import lookup, shared
from ldsvm.methods.approximations import KMeansGaussians, KMeansNystroem

Floats = NDArray[np.float64]


@pytest.mark.slow
@parametrize_with_checks([KMeansGaussians(20), KMeansNystroem(20)])  # type: ignore[untyped-decorator]
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", ["scale", 0.05])
def test_centres_are_bit_for_bit_those_of_our_classifier(dtype: Any, gamma: Any, digits: tuple[Any, Any]) -> None:
    X, y = digits[0].astype(dtype), digits[1]
    ours = LDSVMClassifier(n_basis=30, gamma=gamma, max_iter=1, random_state=5, n_jobs=1)
    held = (X[300:], y[300:] % 2)
    with pytest.warns(match="max_iter=1"):
        ours.fit(X[:300], y[:300] % 2, eval_set=held)
    for name in ("rbf_network", "nystroem_kmeans_svm"):
        model = shared(lookup(name).make(), seed=5, n_jobs=1).set_params(reduce__n_components=30, reduce__gamma=gamma)
        reduce = model.fit(X[:300], y[:300])[0]
        assert reduce.centers_.tobytes() == ours.centers_.tobytes() and reduce.centers_.dtype == ours.centers_.dtype
        assert reduce.gamma_ == ours.gamma_
    assert not np.array_equal(KMeansGaussians(30, random_state=6).fit(X[:300]).centers_, ours.centers_)


def test_features_are_gaussians_of_the_distance(digits: tuple[Any, Any]) -> None:
    model = KMeansGaussians(25, gamma=0.07, random_state=0).fit(digits[0][:200])
    expected = rbf_kernel(digits[0], model.centers_.astype(float), gamma=0.07)
    np.testing.assert_allclose(model.transform(digits[0]), expected, rtol=1e-9)
    assert model.transform(digits[0].astype(np.float32)).dtype == np.float64


def test_products_are_the_nystroem_approximation(digits: tuple[Any, Any]) -> None:
    model = KMeansNystroem(25, gamma=0.1, random_state=0).fit(digits[0][:200])
    C, new = model.centers_.astype(float), digits[0][200:]
    K, cross = rbf_kernel(C, gamma=0.1), rbf_kernel(new, C, gamma=0.1)
    Z = model.transform(new)
    np.testing.assert_allclose(Z @ Z.T, cross @ np.linalg.solve(K, cross.T), rtol=1e-8)
    at_landmarks = model.transform(C)
    np.testing.assert_allclose(at_landmarks @ at_landmarks.T, K, rtol=1e-8)


def test_as_many_landmarks_as_rows_give_the_kernel_itself(digits: tuple[Any, Any]) -> None:
    X = digits[0][:40].astype(np.float32)
    model = KMeansNystroem(500, gamma=0.1).fit(np.vstack([X, X]))
    assert len(model.centers_) == 40  # distinct rows
    Z = model.transform(X)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X.astype(float), gamma=0.1), rtol=1e-7)


def test_kmeans_landmarks_approximate_better_than_random_ones(digits: tuple[Any, Any]) -> None:
    # the reason for having them (Zhang, Tsang and Kwok 2008)
    X = digits[0]
    K = rbf_kernel(X, gamma=0.03)

    def error(name: str, seed: int) -> float:
        params = {"reduce__n_components": 40, "reduce__gamma": 0.03}
        Z = shared(lookup(name).make(), seed=seed, n_jobs=1).set_params(**params)[0].fit(X).transform(X)
        return float(np.linalg.norm(K - Z @ Z.T))

    random, chosen = ([error(name, seed) for seed in range(3)] for name in ("nystroem_svm", "nystroem_kmeans_svm"))
    assert max(chosen) < min(random)


def test_network_solves_the_normal_equations(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:200], digits[1][:200]
    params = {"reduce__n_components": 20, "reduce__gamma": 0.1, "classify__alpha": 0.05}
    model = shared(lookup("rbf_network").make(), seed=0, n_jobs=1).set_params(**params).fit(X.astype(np.float32), y)
    Phi = rbf_kernel(X, model[0].centers_.astype(float), gamma=0.1)
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    centred = Phi - Phi.mean(axis=0)  # the bias is not penalised
    W = np.linalg.solve(centred.T @ centred + 0.05 * np.eye(20), centred.T @ (Y - Y.mean(axis=0)))
    np.testing.assert_allclose(model[1].coef_, W.T, rtol=1e-3, atol=1e-4)  # the inputs were in float32
    scores = centred @ W + Y.mean(axis=0)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-4)


def test_fourier_features_approximate_the_kernel(digits: tuple[Any, Any]) -> None:
    X = digits[0][:60]
    reduce = shared(lookup("fourier_svm").make(), seed=0, n_jobs=1)[0].set_params(n_components=4000, gamma=0.1)
    Z = reduce.fit(X).transform(X)
    # entries are means of 4,000 cosines of standard deviation below 1
    assert np.abs(Z @ Z.T - rbf_kernel(X, gamma=0.1)).max() < 6 / np.sqrt(4000)


@pytest.mark.parametrize("wrong", [{"n_components": 0}, {"gamma": -1.0}, {"gamma": "auto"}, {"random_state": "x"}])
def test_parameters_outside_their_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
        KMeansGaussians(**wrong).fit(np.eye(3))
