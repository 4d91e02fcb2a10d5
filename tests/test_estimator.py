"""The estimator by theory: symmetries, equivalences, precision, what the fitted model holds."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier

ROOT = Path(__file__).resolve().parents[1]


def small(**changes: Any) -> LDSVMClassifier:
    given = {"n_basis": 25, "gamma": "scale", "alpha": 1e-3, "C": 0.3, "tol": 0.03, "random_state": 0}
    return LDSVMClassifier(**(given | changes))


def same_model(a: LDSVMClassifier, b: LDSVMClassifier) -> bool:
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in ("latent_coef_", "intercept_")) and np.array_equal(
        a.map_.W, b.map_.W
    )


def test_learns_held_out_digits(digits: Any) -> None:
    # ten classes, 300 rows, 60 basis functions: far above chance (10 %) and above its own starting point's error
    X, y = digits
    model = small(n_basis=60).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.9
    assert model.history_[-1]["train_error"] == pytest.approx(1 - model.score(X[:300], y[:300]), abs=1e-9)


def test_prediction_is_the_svm_on_the_transform(digits: Any) -> None:
    # decision = transform V' + b, and the largest wins; the fitted attributes are those of the formula
    X, y = digits
    model = small().fit(X, y)
    scores = model.transform(X) @ model.latent_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(scores, axis=1)])
    Phi = np.exp(-model.gamma_ * ((X[:, None] - model.centers_[None]) ** 2).sum(-1))
    np.testing.assert_allclose(model.transform(X), Phi @ model.map_.W, atol=1e-6)
    assert model.n_components_ == 9 and model.n_basis_ == 25 and model.latent_coef_.shape == (10, 9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ovr", "ovo"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_seed_same_bits(digits: Any, n_jobs: int, kind: str) -> None:
    X, y = digits
    model = small(n_jobs=n_jobs, multi_class=kind, tol=0.1)
    first, again = (clone(model).fit(X, y) for _ in range(2))
    assert same_model(first, again)
    assert not same_model(first, clone(model).set_params(random_state=1).fit(X, y))


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_bits() -> None:
    # no dependence on hash seeds, memory addresses or what ran before
    code = """if True:
        import hashlib
        from sklearn.datasets import load_digits
        from ldsvm import LDSVMClassifier
        X, y = load_digits(return_X_y=True)
        m = LDSVMClassifier(n_basis=20, C=0.3, tol=0.1, n_jobs=2, random_state=3).fit(X[:200] / 16, y[:200])
        print(hashlib.sha256(m.map_.W.tobytes() + m.latent_coef_.tobytes() + m.intercept_.tobytes()).hexdigest())"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    import hashlib

    X, y = load_digits(return_X_y=True)
    m = LDSVMClassifier(n_basis=20, C=0.3, tol=0.1, n_jobs=2, random_state=3).fit(X[:200] / 16, y[:200])
    assert (
        done.stdout.strip()
        == hashlib.sha256(m.map_.W.tobytes() + m.latent_coef_.tobytes() + m.intercept_.tobytes()).hexdigest()
    )


def test_permuting_rows_changes_nothing_but_rounding(digits: Any) -> None:
    # with a linear map nothing is drawn, and every step is a sum over rows
    X, y = digits[0][:150], digits[1][:150] % 3
    order = np.random.default_rng(0).permutation(150)
    model = small(map="linear", tol=0.1)
    a, b = model.fit(X, y), clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=2e-3)


def test_permuting_classes_permutes_the_answer(digits: Any) -> None:
    # renaming classes rotates the simplex and the latent space; scores move with their class
    X, y = digits[0][:150], digits[1][:150] % 3
    new = np.array([2, 0, 1])
    a, b = small(tol=0.1).fit(X, y), small(tol=0.1).fit(X, new[y])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X)[:, new], atol=2e-3)
    assert np.mean(new[a.predict(X)] == b.predict(X)) > 0.99


@pytest.mark.parametrize(
    "labels", [["u", "v", "w"], [-7, -1, 3], [0.0, 1.0, 2.0], np.array(["x", "yy", "zzz"], object)]
)
def test_any_labels(digits: Any, labels: Any) -> None:
    # labels are names: the same model, other names
    X, y = digits[0][:100], digits[1][:100] % 3
    plain, named = small(tol=0.1).fit(X, y), small(tol=0.1).fit(X, np.asarray(labels)[y])
    assert same_model(plain, named)
    np.testing.assert_array_equal(np.asarray(labels)[plain.predict(X)], named.predict(X))


@pytest.mark.parametrize("kind", ["ovr", "ovo"])
def test_boolean_labels_and_binary_scores(digits: Any, kind: str) -> None:
    # two classes are one SVM; a positive score means classes_[1]
    X, y = digits[0][:100], digits[1][:100] > 4
    model = small(tol=0.1, multi_class=kind).fit(X, y)
    assert model.predict(X).dtype == bool and model.latent_coef_.shape == (1, 1)
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X))


@pytest.mark.parametrize("order", ["read-only", "Fortran", "strided", "list"])
def test_memory_layout_changes_nothing(digits: Any, order: str) -> None:
    X, y = np.array(digits[0][:100]), digits[1][:100] % 3
    expected = small(tol=0.1).fit(X, y)
    wide = np.zeros((200, 128))
    wide[::2, ::2] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    given = {"read-only": read_only, "Fortran": np.asfortranarray(X), "strided": wide[::2, ::2], "list": X.tolist()}[
        order
    ]
    model = small(tol=0.1).fit(given, y)
    np.testing.assert_allclose(model.decision_function(given), expected.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_float32_in_float32_out_and_close(digits: Any, kind: str) -> None:
    X, y = digits[0][:150], digits[1][:150] % 3
    model = small(map=kind, tol=0.1).fit(X, y)
    single = small(map=kind, tol=0.1).fit(X.astype(np.float32), y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32 and single.transform(X).dtype == np.float64
    np.testing.assert_allclose(single.transform(X.astype(np.float32)), model.transform(X), atol=5e-3)
    np.testing.assert_allclose(model.transform(X.astype(np.float32)), model.transform(X), atol=1e-4)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_equals_dense_with_the_linear_map(digits: Any, container: Any) -> None:
    X, y = digits[0][:150], digits[1][:150] % 3
    dense, sparse = small(map="linear", tol=0.1).fit(X, y), small(map="linear", tol=0.1).fit(container(X), y)
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(container(X)), atol=1e-3)
    np.testing.assert_allclose(sparse.transform(container(X)), sparse.transform(X), atol=1e-10)


def test_a_constant_feature_changes_nothing(digits: Any) -> None:
    # distances do not see it; with gamma given, the same basis and model
    X, y = digits[0][:100], digits[1][:100] % 3
    with_constant = np.hstack([X, np.full((100, 1), 7.0)])
    a, b = (small(tol=0.1, gamma=0.05, centers="random").fit(data, y) for data in (X, with_constant))
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(with_constant), atol=1e-3)


def test_fewer_distinct_rows_than_basis_functions(digits: Any) -> None:
    # every distinct row becomes a centre, with a warning that names both numbers
    X, y = np.repeat(digits[0][:20], 3, axis=0), np.repeat(digits[1][:20] % 2, 3)
    with pytest.warns(
        UserWarning, match="n_basis=25 is more than the 20 distinct training rows; n_basis is reduced to 20"
    ):
        model = small().fit(X, y)
    assert model.n_basis_ == 20 and model.score(X, y) == 1.0


@pytest.mark.parametrize("C", [1e-8, 1e8])
@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_extreme_penalties_give_a_finite_model(digits: Any, kind: str, C: float) -> None:
    # C -> 0 leaves the zero SVM, C -> infinity the hard margin
    X, y = digits[0][:100], digits[1][:100] % 3
    model = small(map=kind, C=C, max_iter=15)
    if C < 1:
        model.fit(X, y)
        assert np.abs(model.latent_coef_).max() < 1e-4
    else:
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        assert model.score(X, y) > 0.6
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")  # the network need not converge to be a map
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "regressor",
    [
        KernelRidge(kernel="rbf", gamma=0.02, alpha=0.1),
        Ridge(),
        MLPRegressor(hidden_layer_sizes=(20,), solver="lbfgs", max_iter=50),
    ],
)
def test_any_regressor_as_the_map(digits: Any, regressor: Any, classes: int) -> None:
    # generic over F: one or more latent dimensions, randomness from the estimator's seed
    X, y = digits[0][:150], digits[1][:150] % classes
    model = small(map=regressor).fit(X, y, callback=lambda info: info["iteration"] >= 2)
    assert model.score(X, y) > 0.6 and model.transform(X).shape == (150, classes - 1)
    assert not hasattr(regressor, "n_features_in_") and not hasattr(model, "centers_")


def test_pickle_size_follows_the_basis_not_the_rows() -> None:
    # a model holds its centres and weights, and none of the training data
    X, y = load_digits(return_X_y=True)
    sizes = {}
    for N, M in [(200, 20), (1500, 20), (200, 80)]:
        model = small(n_basis=M, tol=0.1, C=0.1).fit(X[:N] / 16, y[:N])
        model.history_ = []
        sizes[N, M] = len(pickle.dumps(model))
    assert sizes[1500, 20] < 1.02 * sizes[200, 20]
    assert sizes[200, 80] > 2.0 * sizes[200, 20]


def test_copies_predict_the_same_bits(digits: Any) -> None:
    X, y = digits[0][:100], digits[1][:100]
    model = small(tol=0.1).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    assert not hasattr(clone(model), "latent_coef_") and clone(model).get_params() == model.get_params()


def test_pandas_output_and_names(digits: Any) -> None:
    X, y = pd.DataFrame(digits[0][:100]).add_prefix("pixel"), digits[1][:100] % 3
    model = small(tol=0.1).set_output(transform="pandas").fit(X, y)
    out = model.transform(X)
    assert out.columns.tolist() == model.get_feature_names_out().tolist() == ["ldsvmclassifier0", "ldsvmclassifier1"]
    assert out.index.equals(X.index) and model.feature_names_in_[3] == "pixel3"


def test_inside_pipeline_and_grid_search(digits: Any) -> None:
    # used as scikit-learn uses it: nested parameter names, cross-validation, the best refitted
    X, y = digits[0][:120], digits[1][:120] % 3
    pipe = make_pipeline(StandardScaler(), small(tol=0.1))
    search = GridSearchCV(pipe, {"ldsvmclassifier__C": [1e-8, 0.3]}, cv=2).fit(X, y)
    assert search.best_params_ == {"ldsvmclassifier__C": 0.3}
    assert search.predict(X).shape == (120,)
