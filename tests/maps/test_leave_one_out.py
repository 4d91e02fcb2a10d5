"""Ridge and width by leave-one-out errors: the closed form against fits without each row, and who uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import make_moons

from ldsvm import LDSVMClassifier, RowBlocks, fit_path, load, save
from ldsvm.maps.leave_one_out import ALPHAS, ROWS, WIDTHS, Sample, choose, sample_rows, values_left_out
from ldsvm.maps.rbf import Gaussians

Floats = NDArray[np.float64]
Data = tuple[Floats, NDArray[np.int64]]


def slow_values(Phi: Floats, Z: Floats, weight: Floats, alpha: float) -> Floats:
    """The same by as many regressions as rows, each without one unit of a row."""
    found = []
    for n in range(len(Phi)):
        w = weight.copy()
        w[n] -= min(w[n], 1.0)
        W = np.linalg.solve(Phi.T @ (w[:, None] * Phi) + alpha * np.eye(Phi.shape[1]), Phi.T @ (w[:, None] * Z))
        found.append(Phi[n] @ W)
    return np.array(found)


@pytest.mark.parametrize("M", [5, 40])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_closed_form_equals_fits_without_each_row(M: int, sparse: bool, weighted: bool) -> None:
    rng = np.random.default_rng(M)
    Phi, Z, alphas = rng.normal(size=(20, M)) * (rng.random((20, M)) < 0.6), rng.normal(size=(20, 2)), (1e-2, 3.0)
    weight = np.array([0.5, 1.0, 2.0, 3.0] * 5) if weighted else np.ones(20)
    values = values_left_out(sp.csr_array(Phi) if sparse else Phi, Z, weight, alphas)
    for F, alpha in zip(values, alphas, strict=True):
        np.testing.assert_allclose(F, slow_values(Phi, Z, weight, alpha), rtol=1e-8, atol=1e-10)


def sample_of(X: Floats, y: NDArray[np.int64]) -> Sample:
    return Sample(X, y, np.where(y == 1, 1.0, -1.0)[:, None], np.ones(len(y)), np.ones(len(y)))


def moons(n: int = 120, noise: float = 0.25) -> Data:
    X, y = make_moons(n, noise=noise, random_state=0)
    return X, y


def test_the_choice_has_the_fewest_errors_of_fits_without_each_row() -> None:
    X, y = moons(60)
    sample = sample_of(X, y)

    def features(gamma: float) -> Floats:
        return Gaussians(X[::3], gamma)(X, np.float64)

    gammas, alphas = [0.1, 1.0, 10.0], [1e-4, 1e-1, 1e2]
    errors = {
        (gamma, alpha): np.mean((slow_values(features(gamma), sample.Z, sample.weight, alpha)[:, 0] > 0) != (y == 1))
        for gamma in gammas
        for alpha in alphas
    }
    assert len(set(errors.values())) > 3
    assert errors[choose(sample, features, gammas, alphas)] == min(errors.values())


def test_rows_of_a_class_that_was_not_drawn_are_no_reason_to_fail() -> None:
    X, y = moons(30)
    gamma, alpha = choose(sample_of(X, y + 1), lambda gamma: Gaussians(X, gamma)(X, np.float64), [1.0])
    assert gamma == 1.0 and alpha in ALPHAS


def test_at_most_so_many_rows_are_looked_at() -> None:
    random_state = np.random.RandomState(0)
    assert np.array_equal(sample_rows(ROWS, random_state), np.arange(ROWS))
    rows = sample_rows(10 * ROWS, random_state)
    assert len(rows) == ROWS and (np.diff(rows) > 0).all()


@pytest.mark.parametrize("kind", ["rbf", "linear", "adaptive_rbf"])
def test_the_estimator_keeps_what_it_chose(kind: str, tmp_path: Path) -> None:
    X, y = moons()
    model = LDSVMClassifier(map=kind, n_basis=30, center_steps=10, max_iter=50, tol=0.1, random_state=0).fit(X, y)
    assert model.alpha_ in ALPHAS
    if kind == "rbf":
        scale = 1.0 / (2 * X.var())
        assert np.isclose(model.gamma_ / scale, WIDTHS, rtol=1e-6).any()
    read = load(save(model, tmp_path / "model.npz"))
    assert read.alpha_ == model.alpha_ and read.alpha == "auto"
    given = model.get_params() | {"alpha": model.alpha_}
    if kind == "rbf":
        given["gamma"] = float(model.gamma_)
    again = LDSVMClassifier(**given).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_more_noise_wants_more_ridge() -> None:
    X, y = moons(200, noise=0.1)
    flipped = np.where(np.random.default_rng(0).random(200) < 0.3, 1 - y, y)
    clean, noisy = (LDSVMClassifier(n_basis=60, gamma=2.0, tol=0.1, random_state=0).fit(X, t) for t in (y, flipped))
    assert clean.alpha_ < noisy.alpha_


def test_blocks_paths_and_warm_starts_choose_the_same() -> None:
    X, y = moons(300)
    model = LDSVMClassifier(n_basis=20, centers="random", max_iter=60, tol=0.1, random_state=0).fit(X, y)
    chosen = model.gamma_, model.alpha_
    blocks = LDSVMClassifier(**model.get_params()).fit(RowBlocks.arrays([(X[:90], y[:90]), (X[90:], y[90:])]))
    assert (blocks.gamma_, blocks.alpha_) == (pytest.approx(chosen[0], rel=1e-6), chosen[1])
    path = fit_path(LDSVMClassifier(**model.get_params()), X, y, [0.1, 1.0])
    assert [(one.gamma_, one.alpha_) for one in path] == [chosen, chosen]
    model.set_params(warm_start=True, C=1.0).fit(X, y)
    assert (model.gamma_, model.alpha_) == chosen


def test_weights_count_as_repeated_rows_do() -> None:
    X, y = moons(40)
    times = 1 + np.arange(40) % 3
    rows = np.repeat(np.arange(40), times)
    given: dict[str, Any] = {"map": "linear", "tol": 0.1, "random_state": 0}
    weighted = LDSVMClassifier(**given).fit(X, y, times)
    assert weighted.alpha_ == LDSVMClassifier(**given).fit(X[rows], y[rows]).alpha_


def test_sparse_texts_choose_a_ridge() -> None:
    y = np.arange(80) % 2
    X = sp.csr_array(sp.random(80, 2000, 0.02, random_state=0) + sp.csr_array(np.eye(2, 2000)[y]))
    model = LDSVMClassifier(map="linear", tol=0.1, random_state=0).fit(X, y)
    assert model.alpha_ in ALPHAS and model.score(X, y) == 1.0


@pytest.mark.parametrize("kind", ["rbf", "adaptive_rbf"])
def test_a_width_that_is_given_is_not_doubted(kind: str) -> None:
    # warnings are errors: that of gamma="scale" on columns of different scales must not be heard
    X, y = moons(60)
    X = X * [1e4, 1.0]
    X = np.column_stack([X, X[:, 1]])
    model = LDSVMClassifier(map=kind, gamma=1e-8, n_basis=10, center_steps=5, tol=0.1, random_state=0)
    model.fit(X, y)
    model.fit(RowBlocks.arrays([(X, y)]))
    with pytest.warns(UserWarning, match="the scales of the columns"):
        model.set_params(gamma="auto").fit(X, y)
