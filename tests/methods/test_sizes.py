"""Sizes against independent counts, and arrays from which predictions can be computed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from ldsvm.methods import lookup, shared

X, y = make_classification(
    n_samples=160, n_features=6, n_informative=5, n_redundant=0, n_classes=4, n_clusters_per_class=1, random_state=0
)
NEW = X[:50] + 0.1


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on busy cores take minutes for what is done in a second."""
    with threadpool_limits(1):
        yield


def fitted(name: str, X: Any = X, y: Any = y, **params: Any) -> Any:
    return shared(lookup(name).make(), seed=0, n_jobs=1).set_params(**params).fit(X, y)


def arrays(name: str, model: Any) -> list[NDArray[Any]]:
    return lookup(name).arrays(model)


def test_one_vs_one_sums_the_vectors_of_every_pair() -> None:
    model = fitted("gaussian_svm", gamma=0.2, C=1.0)
    svms = {
        pair: np.flatnonzero(rows)[SVC(gamma=0.2, C=1.0).fit(X[rows], y[rows]).support_]
        for pair in combinations(range(4), 2)
        if (rows := np.isin(y, pair)).any()
    }
    assert lookup("gaussian_svm").total(model) == sum(len(rows) for rows in svms.values())
    assert lookup("gaussian_svm").count(model) == len(set().union(*(set(rows) for rows in svms.values())))
    assert lookup("gaussian_svm").total(model) > lookup("gaussian_svm").count(model)  # type: ignore[operator]


def test_one_vs_rest_sums_the_vectors_of_every_class() -> None:
    model = fitted("gaussian_svm_ovr", estimator__gamma=0.2)
    svms = [SVC(gamma=0.2).fit(X, y == k).support_ for k in range(4)]
    assert lookup("gaussian_svm_ovr").total(model) == sum(len(rows) for rows in svms)
    assert lookup("gaussian_svm_ovr").count(model) == len(set().union(*(set(rows) for rows in svms)))
    # each SVM: its vectors of 6 numbers, their coefficients, a bias
    numbers = sum(array.size for array in arrays("gaussian_svm_ovr", model))
    assert numbers == sum(len(rows) * (6 + 1) + 1 for rows in svms)


def test_two_classes_have_one_svm_whichever_way() -> None:
    models = [fitted(name, y=y % 2) for name in ("gaussian_svm", "gaussian_svm_ovr")]
    counts = {size(model) for model in models for size in (lookup("gaussian_svm").count, lookup("gaussian_svm").total)}
    assert counts == {len(SVC().fit(X, y % 2).support_)}


@pytest.mark.parametrize("name", ["nearest_neighbour", "pca_nn", "kpca_nn", "lda_nn", "klda_nn", "lmnn_nn", "nca_nn"])
def test_nearest_neighbours_hold_every_training_point_once(name: str) -> None:
    model = fitted(name)
    assert lookup(name).count(model) == lookup(name).total(model) == 160


@pytest.mark.parametrize("name", ["nystroem_svm", "nystroem_kmeans_svm", "fourier_svm", "rbf_network"])
def test_features_are_counted(name: str) -> None:
    model = fitted(name, reduce__n_components=37)
    assert lookup(name).count(model) == lookup(name).total(model) == 37


def test_a_reduction_adds_no_basis_functions_to_those_behind_it() -> None:
    model = fitted("pca_gaussian_svm", reduce__n_components=3)
    svms = [SVC().fit(model[0].transform(X), y == k).support_ for k in range(4)]
    assert lookup("pca_gaussian_svm").total(model) == sum(len(rows) for rows in svms)
    assert lookup("pca_gaussian_svm").count(model) == len(set().union(*(set(rows) for rows in svms)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hidden_units_and_leaves() -> None:
    network = fitted("mlp", hidden_layer_sizes=(5, 4), max_iter=3)
    assert lookup("mlp").count(network) == 9
    assert sum(a.size for a in arrays("mlp", network)) == (6 + 1) * 5 + (5 + 1) * 4 + (4 + 1) * 4
    trees = fitted("hist_gradient_boosting", max_iter=5, max_leaf_nodes=3, min_samples_leaf=2)
    assert lookup("hist_gradient_boosting").count(trees) == 5 * 4 * 3  # rounds, classes, leaves
    nodes = sum(len(a) for a in arrays("hist_gradient_boosting", trees)[1:])
    assert nodes == 5 * 4 * (3 + 2)  # a binary tree has one inner node less than leaves


def test_ours_counts_centres_map_and_svms_and_a_linear_map_counts_none() -> None:
    model = fitted("ldsvm", n_basis=20, n_components=2)
    assert lookup("ldsvm").count(model) == lookup("ldsvm").total(model) == 20
    assert sum(a.size for a in arrays("ldsvm", model)) == 20 * 6 + 20 * 2 + 4 * 2 + 4
    linear = fitted("ldsvm", map="linear", n_components=2)
    assert lookup("ldsvm").count(linear) is None and lookup("ldsvm").total(linear) is None
    assert sum(a.size for a in arrays("ldsvm", linear)) == 6 * 2 + 4 * 2 + 4


@pytest.mark.parametrize("name", ["nearest_neighbour", "linear_svm", "gaussian_svm", "gaussian_svm_ovr"])
def test_sparse_inputs_count_as_dense_ones(name: str) -> None:
    zeros = np.where(np.abs(X) < 0.5, 0.0, X)
    dense, sparse = fitted(name, zeros), fitted(name, csr_array(zeros))
    assert lookup(name).count(dense) == lookup(name).count(sparse)
    assert lookup(name).total(dense) == lookup(name).total(sparse)
    assert all(isinstance(array, np.ndarray) for array in arrays(name, sparse))


# The arrays are enough: predictions from them alone.


def test_arrays_predict_principal_components_and_the_neighbour() -> None:
    model = fitted("pca_nn", reduce__n_components=3)
    mean, axes, Z, labels = arrays("pca_nn", model)
    assert np.array_equal(labels[cdist((NEW - mean) @ axes.T, Z).argmin(axis=1)], model.predict(NEW))


def test_arrays_predict_random_fourier_features() -> None:
    model = fitted("fourier_svm", reduce__n_components=50)
    W, offset, V, b = arrays("fourier_svm", model)
    scores = np.sqrt(2 / 50) * np.cos(NEW @ W + offset) @ V.T + b
    assert np.array_equal(scores.argmax(axis=1), model.predict(NEW))


def test_arrays_predict_a_network_of_gaussians() -> None:
    model = fitted("rbf_network", reduce__n_components=15, reduce__gamma=0.1)
    centers, V, b = arrays("rbf_network", model)
    scores = np.exp(-0.1 * cdist(NEW, centers, "sqeuclidean")) @ V.T + b
    assert np.array_equal(scores.argmax(axis=1), model.predict(NEW))


def test_arrays_predict_kernel_discriminants() -> None:
    model = fitted("klda_nn", reduce__gamma=0.1)
    rows, A, shift, Z, labels = arrays("klda_nn", model)
    projected = np.exp(-0.1 * cdist(NEW - model[0].mean_, rows, "sqeuclidean")) @ A + shift
    off = projected - model[0].transform(NEW)
    assert np.allclose(off, off[0])  # the kernel less 1 differs by a constant, which the sums of A cancel
    assert np.array_equal(labels[cdist(projected, Z).argmin(axis=1)], model.predict(NEW))
