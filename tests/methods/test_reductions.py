"""Pipelines of a reduction and a classifier against the same computed step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from ldsvm.methods import lookup, shared

Floats = NDArray[np.float64]


def fitted(name: str, X: Any, y: Any, **params: Any) -> Any:
    return shared(lookup(name).make(), seed=0, n_jobs=1).set_params(**params).fit(X, y)


def nearest(Z: Floats, y: Any, new: Floats) -> Any:
    return y[cdist(new, Z).argmin(axis=1)]


def test_principal_components_are_those_of_the_covariance(digits: tuple[Any, Any]) -> None:
    X, y = digits
    mean, axes = X[:250].mean(axis=0), eigh(np.cov(X[:250].T))[1][:, ::-1][:, :6]
    model = fitted("pca_nn", X[:250], y[:250], reduce__n_components=6)
    expected = nearest((X[:250] - mean) @ axes, y[:250], (X[250:] - mean) @ axes)
    assert np.array_equal(model.predict(X[250:]), expected)


def test_kernel_principal_components_are_those_of_the_centred_kernel(digits: tuple[Any, Any]) -> None:
    X, y = digits
    H = np.eye(250) - 1 / 250
    K, cross = rbf_kernel(X[:250], gamma=0.05), rbf_kernel(X[250:], X[:250], gamma=0.05)
    values, vectors = eigh(H @ K @ H)  # of all 250, where the pipeline asks ARPACK for the last 7
    values, vectors = values[-7:], vectors[:, -7:]
    model = fitted("kpca_nn", X[:250], y[:250], reduce__n_components=7, reduce__gamma=0.05)
    np.testing.assert_allclose(model[0].eigenvalues_, values[::-1], rtol=1e-9)
    new = (cross - K.mean(axis=0)) @ H @ vectors / np.sqrt(values)
    assert np.array_equal(model.predict(X[250:]), nearest(vectors * np.sqrt(values), y[:250], new))


def test_discriminants_solve_the_shrunk_eigenproblem(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:250], digits[1][:250]
    means = np.array([X[y == k].mean(axis=0) for k in range(10)])
    within = np.mean([np.outer(x - means[k], x - means[k]) for x, k in zip(X, y, strict=True)], axis=0)
    total = np.cov(X.T, bias=True)
    # scikit-learn shrinks both, towards their own mean variance, and takes the difference for that between classes
    within, total = (0.9 * S + 0.1 * np.trace(S) / 64 * np.eye(64) for S in (within, total))
    A = eigh(total - within, within)[1][:, ::-1][:, :9]
    model = fitted("lda_nn", X, y, reduce__shrinkage=0.1)
    new = digits[0][250:]
    assert np.array_equal(model.predict(new), nearest(X @ A, y, new @ A))


def test_constant_inputs_do_not_stop_the_discriminants(digits: tuple[Any, Any]) -> None:
    X, y = digits
    assert (np.ptp(X[:100], axis=0) == 0).any()
    model = fitted("lda_nn", X[:100], y[:100])
    assert np.isfinite(model[0].transform(X[100:])).all() and model[0].transform(X[100:]).shape[1] == 9


@pytest.mark.parametrize("name", ["pca_gaussian_svm", "lda_gaussian_svm"])
def test_one_machine_against_the_rest_for_each_class(name: str, digits: tuple[Any, Any]) -> None:
    X, y = digits
    params = {"classify__estimator__gamma": 0.2, "classify__estimator__C": 3.0}
    model = fitted(name, X[:200], y[:200], **params)
    Z, new = model[0].transform(X[:200]), model[0].transform(X[200:])
    scores = [SVC(gamma=0.2, C=3.0).fit(Z, y[:200] == k).decision_function(new) for k in range(10)]
    assert np.array_equal(np.argmax(scores, axis=0), model.predict(X[200:]))


def test_principal_components_keep_most_of_the_variance_without_a_choice(digits: tuple[Any, Any]) -> None:
    X, y = digits
    kept = fitted("pca_nn", X, y)[0].explained_variance_ratio_
    assert kept.sum() >= 0.95 > kept[:-1].sum()


def test_large_margins_have_the_papers_three_targets() -> None:
    assert lookup("lmnn_nn").make().get_params()["reduce__n_neighbors"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kpca_nn", "lmnn_nn", "nca_nn"])
def test_two_dimensions_without_a_choice(name: str, digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:100], digits[1][:100] % 2
    assert fitted(name, X, y)[0].transform(X[:5]).shape == (5, 2)
