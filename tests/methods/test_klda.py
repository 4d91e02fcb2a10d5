"""Kernel discriminant analysis: against explicit loops, LDA, its invariances, and what breaks other implementations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldsvm.methods import klda
from ldsvm.methods.klda import KernelDiscriminant
from ldsvm.methods.neighbours import nearest

Floats = NDArray[np.float64]
SIZES = (5, 9, 16, 10)  # asymmetric, so that a wrong weight of a class shows


@pytest.mark.slow
@parametrize_with_checks([KernelDiscriminant(), KernelDiscriminant(kernel="linear")])
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def clouds(sizes: tuple[int, ...] = SIZES, D: int = 3, seed: int = 0) -> tuple[Floats, NDArray[np.intp]]:
    """One Gaussian cloud per class with its own mean and spread, rows shuffled."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(y), D)) * (0.5 + 0.3 * y)[:, None] + rng.normal(scale=1.5, size=(len(sizes), D))[y]
    order = rng.permutation(len(y))
    return X[order], y[order]


def gram(model: Any) -> Floats:
    X = model.X_fit_
    return X @ X.T if model.gamma_ is None else rbf_kernel(X, gamma=model.gamma_)


def scatter(G: Floats, y: Any) -> tuple[Floats, Floats, float]:
    """S_b and S_w in dual coefficients (N, N) and tr(S_w) in feature space, by loops over classes and samples."""
    N = len(y)
    S_b, S_w, trace = np.zeros((N, N)), np.zeros((N, N)), 0.0
    grand = np.zeros(N)
    for i in range(N):
        grand += G[:, i] / N
    for k in np.unique(y):
        rows = [i for i in range(N) if y[i] == k]
        mean = sum(G[:, i] for i in rows) / len(rows)
        S_b += len(rows) / N * np.outer(mean - grand, mean - grand)
        for i in rows:
            S_w += np.outer(G[:, i] - mean, G[:, i] - mean) / N
            trace += (G[i, i] - 2 * mean[i] + sum(mean[j] for j in rows) / len(rows)) / N
    return S_b, S_w, trace


def up_to_sign(A: Floats, B: Floats) -> Floats:
    """B with every column's sign as in A."""
    return B * np.sign((A * B).sum(axis=0))


def assert_same(A: Floats, B: Floats, rtol: float = 1e-8) -> None:
    np.testing.assert_allclose(up_to_sign(A, B), A, rtol=0, atol=rtol * np.abs(A).max())


# ------------------------------------------------------------------------------------------ the problem it solves


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_explicit_loops_and_a_dense_eigensolver_agree(alpha: float) -> None:
    X, y = clouds()
    model = KernelDiscriminant(alpha=alpha, gamma=0.4)
    Z = model.fit_transform(X, y)
    G = gram(model)
    S_b, S_w, trace = scatter(G, y)
    assert model.ridge_ == pytest.approx(alpha * trace, rel=1e-10)
    values, vectors = eigh(S_b, S_w + model.ridge_ * G)  # a' (S_w + rho G) a = 1, as ours
    values, vectors = values[::-1][:3], vectors[:, ::-1][:, :3]
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7)
    reference = G @ vectors
    assert_same(Z, reference - reference.mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 10.0])
def test_residual_of_the_generalised_eigenproblem(kernel: str, alpha: float) -> None:
    X, y = clouds(D=7, seed=1)
    model = KernelDiscriminant(alpha=alpha, kernel=kernel).fit(X, y)
    assert np.all(np.diff(model.eigenvalues_) <= 0) and np.all(model.eigenvalues_ > 0)
    G, A = gram(model), model.dual_coef_
    S_b, S_w, _ = scatter(G, y)
    right = (S_w + model.ridge_ * G) @ A * model.eigenvalues_
    assert np.linalg.norm(S_b @ A - right) < 1e-8 * np.linalg.norm(right)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 10.0])
def test_scales_of_the_projections(alpha: float) -> None:
    X, y = clouds(seed=2)
    model = KernelDiscriminant(alpha=alpha)
    Z = model.fit_transform(X, y)
    means = np.array([Z[y == k].mean(axis=0) for k in range(4)])
    share = np.array(SIZES) / len(y)
    within = (Z - means[y]).T @ (Z - means[y]) / len(y)
    A = model.dual_coef_
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9 * np.abs(Z).max())
    np.testing.assert_allclose(A.sum(axis=0), 0, atol=1e-12 * np.abs(A).max())
    np.testing.assert_allclose(within + model.ridge_ * A.T @ gram(model) @ A, np.eye(3), atol=1e-8)
    between = (means.T * share) @ means
    np.testing.assert_allclose(between, np.diag(model.eigenvalues_), atol=1e-8 * model.eigenvalues_[0])


@pytest.mark.parametrize("sizes", [(20, 31, 17), (40, 25)])
def test_linear_kernel_without_regularisation_is_lda(sizes: tuple[int, ...]) -> None:
    X, y = clouds(sizes, D=5, seed=3)
    model = KernelDiscriminant(kernel="linear", alpha=1e-10)
    Z = model.fit_transform(X, y)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    expected = lda.transform(X)
    assert_same(Z, expected - expected.mean(axis=0), rtol=1e-6)
    expected = LinearDiscriminantAnalysis(solver="svd").fit_transform(X, y)
    length = np.linalg.norm(Z, axis=0) / np.linalg.norm(expected, axis=0)
    assert_same(Z, expected * length, rtol=1e-6)
    np.testing.assert_allclose(length, length[0], rtol=1e-6)  # its divisor, N or N - K, is its own affair


def test_a_tiny_gamma_is_the_linear_kernel() -> None:
    # exp(-gamma |x - x'|^2) = 1 - gamma |x - x'|^2 + ..., which centring turns into 2 gamma x'x. Plain exp would have
    # four digits left at 1e-12, and none at 1e-100.
    X, y = clouds()
    linear = KernelDiscriminant(kernel="linear").fit(X, y)
    for gamma in (1e-12, 1e-100):
        rbf = KernelDiscriminant(gamma=gamma).fit(X, y)
        np.testing.assert_allclose(rbf.eigenvalues_, linear.eigenvalues_, rtol=1e-8)
        assert_same(linear.transform(X), rbf.transform(X))


def test_few_components_are_the_first_of_all() -> None:
    X, y = clouds()
    model = KernelDiscriminant(n_components=2)
    Z = model.fit_transform(X, y)
    full = KernelDiscriminant().fit_transform(X, y)
    np.testing.assert_array_equal(Z, full[:, :2])
    assert model.dual_coef_.shape == (40, 2) and model.intercept_.shape == model.eigenvalues_.shape == (2,)
    assert list(model.get_feature_names_out()) == ["kerneldiscriminant0", "kerneldiscriminant1"]


# ------------------------------------------------------------------------------------------ projecting


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 10.0])
def test_training_rows_project_as_in_training(kernel: str, alpha: float) -> None:
    X, y = clouds(D=60, seed=4)  # N < D
    model = KernelDiscriminant(kernel=kernel, alpha=alpha)
    Z = model.fit_transform(X, y)
    np.testing.assert_allclose(model.transform(X), Z, rtol=0, atol=1e-9 * np.abs(Z).max())


def test_new_rows_project_by_the_documented_formula() -> None:
    X, y = clouds()
    model = KernelDiscriminant(gamma=0.4).fit(X, y)
    new = np.random.default_rng(5).normal(size=(11, 3))
    kernel = rbf_kernel(new, X, gamma=0.4)
    np.testing.assert_allclose(model.transform(new), kernel @ model.dual_coef_ + model.intercept_, atol=1e-10)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = clouds()
    model = KernelDiscriminant()
    Z = model.fit_transform(X, y)
    one_by_one = np.vstack([model.transform(row[None]) for row in X])
    np.testing.assert_allclose(one_by_one, model.transform(X), rtol=0, atol=1e-11)
    monkeypatch.setattr(klda, "BLOCK", 3 * len(X))  # three rows at a time, in fit as well
    blocks = clone(model)
    np.testing.assert_allclose(blocks.fit_transform(X, y), Z, rtol=0, atol=1e-11)
    np.testing.assert_allclose(blocks.transform(X), Z, rtol=0, atol=1e-11)


# ------------------------------------------------------------------------------------------ invariances


def test_translation_and_rotation_of_the_inputs() -> None:
    X, y = clouds()
    Q = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    Z = KernelDiscriminant(gamma=0.4).fit_transform(X, y)
    assert_same(Z, KernelDiscriminant(gamma=0.4).fit_transform(X @ Q + [1.0, -20.0, 300.0], y))


def test_scale_of_the_inputs() -> None:
    # gamma="scale" undoes it; the linear kernel's rho follows tr(S_w).
    X, y = clouds()
    for kernel in ("rbf", "linear"):
        model = KernelDiscriminant(kernel=kernel)
        Z = model.fit_transform(X, y)
        for factor in (1e-50, 1e3, 1e80):
            assert_same(Z, model.fit_transform(X * factor, y))


def test_order_of_the_rows() -> None:
    X, y = clouds()
    order = np.random.default_rng(7).permutation(len(y))
    Z = KernelDiscriminant().fit_transform(X, y)
    # signs too: they depend on the classes' means only
    np.testing.assert_allclose(KernelDiscriminant().fit_transform(X[order], y[order]), Z[order], rtol=0, atol=1e-10)


def test_names_of_the_classes() -> None:
    X, y = clouds()
    model = KernelDiscriminant()
    Z = model.fit_transform(X, y)
    np.testing.assert_array_equal(model.fit_transform(X, np.array(list("abcd"))[y]), Z)  # same order: same bits
    assert list(model.classes_) == list("abcd")
    assert_same(Z, model.fit_transform(X, np.array([2, 0, 3, 1])[y]))  # another order: signs only


def test_every_row_twice_is_the_same_problem() -> None:
    # S_b, S_w and rho are means over rows, so w stays and the dual coefficients are halved.
    X, y = clouds()
    once, twice = KernelDiscriminant(), KernelDiscriminant()
    Z = once.fit_transform(X, y)
    Z2 = twice.fit_transform(np.vstack([X, X]), np.append(y, y))
    np.testing.assert_allclose(Z2, np.vstack([Z, Z]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(twice.dual_coef_[:40] * 2, once.dual_coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(twice.eigenvalues_, once.eigenvalues_, rtol=1e-10)


def test_same_input_same_bits_and_input_untouched() -> None:
    X, y = clouds()
    X.flags.writeable = y.flags.writeable = False
    Z, again = (KernelDiscriminant().fit_transform(X, y) for _ in range(2))
    np.testing.assert_array_equal(Z, again)


def test_two_classes_have_the_second_on_the_positive_side() -> None:
    for sizes in ((10, 10), (3, 30), (30, 3)):
        X, y = clouds(sizes, seed=8)
        Z = KernelDiscriminant().fit_transform(X, y)
        assert Z.shape == (len(y), 1)
        assert Z[y == 1].mean() > 0 > Z[y == 0].mean()


# ------------------------------------------------------------------------------------------ degenerate cases


def test_one_class_and_too_many_components_are_one_sentence() -> None:
    X, y = clouds()
    with pytest.raises(ValueError, match=r"^y contains one class only, 'a'; there must be at least two classes\.$"):
        KernelDiscriminant().fit(X, ["a"] * len(y))
    with pytest.raises(ValueError, match=r"^n_components=4 must be a whole number from 1 to 3, one less than the"):
        KernelDiscriminant(n_components=4).fit(X, y)
    with pytest.raises(ValueError, match=r"^n_components=True must be"):
        KernelDiscriminant(n_components=True).fit(X, y)
    with pytest.raises(ValueError, match=r"a value beyond 1e\+100 in column 1"):
        KernelDiscriminant().fit(X * [1.0, 1e101, 1.0], y)


@pytest.mark.parametrize(
    "wrong",
    [{"alpha": 0}, {"alpha": 1e7}, {"gamma": 0}, {"gamma": np.inf}, {"gamma": "wide"}, {"kernel": "poly"},
     {"n_components": 0}, {"n_components": 1.5}],
)  # fmt: skip
def test_parameters_outside_their_range(wrong: dict[str, Any]) -> None:
    X, y = clouds()
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
        KernelDiscriminant(**wrong).fit(X, y)


def test_distances_lost_to_rounding_are_an_error() -> None:
    # Two groups 3e7 apart: distances within a group are differences of squares near 1e15.
    rng = np.random.default_rng(9)
    X = np.vstack([rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) + 3e7])
    with pytest.raises(ValueError, match=r"^alpha=1e-12 is below the rounding of distances in X; it must be larger"):
        KernelDiscriminant(gamma=1.0, alpha=1e-12).fit(X, rng.integers(0, 3, 400))


def test_gamma_as_in_svc() -> None:
    X, y = clouds()
    assert KernelDiscriminant(gamma="scale").fit(X, y).gamma_ == pytest.approx(1 / (3 * X.var()))
    assert KernelDiscriminant(gamma="auto").fit(X, y).gamma_ == pytest.approx(1 / 3)
    assert KernelDiscriminant(gamma=0.5).fit(X, y).gamma_ == 0.5
    assert KernelDiscriminant(kernel="linear").fit(X, y).gamma_ is None


def test_constant_columns_do_nothing() -> None:
    X, y = clouds()
    wide = np.column_stack([X, np.full(len(y), 1e90), np.full(len(y), 0.1)])
    for kernel in ("rbf", "linear"):
        Z = KernelDiscriminant(gamma=0.4, kernel=kernel).fit_transform(X, y)
        assert_same(Z, KernelDiscriminant(gamma=0.4, kernel=kernel).fit_transform(wide, y))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_all_rows_equal_project_to_zero(kernel: str) -> None:
    model = KernelDiscriminant(kernel=kernel)
    Z = model.fit_transform(np.full((6, 2), 0.1), [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(Z, np.zeros((6, 2)))
    np.testing.assert_array_equal(model.eigenvalues_, np.zeros(2))
    np.testing.assert_array_equal(model.transform([[5.0, 7.0]]), np.zeros((1, 2)))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("sizes", [(4, 7, 2), (1, 1, 1)])
def test_classes_without_variance_become_points(kernel: str, sizes: tuple[int, ...]) -> None:
    # S_w = 0: the quotients are infinite without regularisation, finite with the floor of rho.
    points = np.array([[0.0, 0.1], [1.0, 0.3], [0.2, 2.0]])
    y = np.repeat([0, 1, 2], sizes)
    model = KernelDiscriminant(kernel=kernel)
    Z = model.fit_transform(points[y], y)
    assert np.isfinite(Z).all() and np.all(model.eigenvalues_ > 1e9)
    centres = model.transform(points)
    apart = np.linalg.norm(centres[:, None] - centres, axis=-1)[np.triu_indices(3, 1)]
    assert apart.min() > 1e3 * np.linalg.norm(Z - centres[y], axis=1).max()


def test_a_class_with_one_row() -> None:
    X, y = clouds((1, 12, 15))
    model = KernelDiscriminant()
    Z = model.fit_transform(X, y)
    assert np.isfinite(Z).all() and np.all(model.eigenvalues_ > 0)
    np.testing.assert_allclose(model.transform(X), Z, rtol=0, atol=1e-9 * np.abs(Z).max())


def test_equal_rows_in_two_classes_project_equally() -> None:
    X, y = clouds()
    X, y = np.vstack([X, X[:10], X[:10]]), np.concatenate([y, y[:10], (y[:10] + 1) % 4])
    for gamma in (1e-9, 1.0, 1e12):
        model = KernelDiscriminant(gamma=gamma, alpha=1e-8)
        Z = model.fit_transform(X, y)
        np.testing.assert_allclose(Z[40:50], Z[:10], rtol=0, atol=1e-6 * np.abs(Z).max())
        np.testing.assert_allclose(Z[50:], Z[:10], rtol=0, atol=1e-6 * np.abs(Z).max())
        np.testing.assert_allclose(model.transform(X), Z, rtol=0, atol=1e-6 * np.abs(Z).max())


@pytest.mark.parametrize("gamma", [1e6, 1e300])
def test_a_huge_gamma_has_the_identity_as_gram_matrix(gamma: float) -> None:
    # G = I: S_b has K - 1 eigenvalues 1 / N on w' w; S_w = (I - P) / N gives them nothing; rho decides alone.
    X, y = clouds()
    model = KernelDiscriminant(gamma=gamma)
    Z = model.fit_transform(X, y)
    rho = 1e-3 * (40 - 4) / 40
    np.testing.assert_allclose(model.eigenvalues_, 1 / (40 * rho), rtol=1e-9)
    np.testing.assert_allclose(model.transform(X), Z, rtol=0, atol=1e-9 * np.abs(Z).max())
    apart = model.transform(X + 1.0)  # no training row is near: the origin of feature space
    np.testing.assert_allclose(apart, np.tile(apart[0], (40, 1)), rtol=0, atol=1e-12 * np.abs(Z).max())


def test_a_gamma_that_leaves_no_number_projects_to_zero() -> None:
    X, y = clouds()
    model = KernelDiscriminant(gamma=1e-300)
    np.testing.assert_array_equal(model.fit_transform(X, y), np.zeros((40, 3)))


@pytest.mark.parametrize("alpha", [1e-20, 1e-10, 1e-3])
def test_fewer_inputs_than_directions_leave_empty_components(alpha: float) -> None:
    # One input: all class means on a line, S_b of rank 1.
    X, y = clouds(D=1, seed=10)
    model = KernelDiscriminant(kernel="linear", alpha=alpha)
    Z = model.fit_transform(X, y)
    assert model.eigenvalues_[0] > 0.01
    np.testing.assert_array_equal(model.eigenvalues_[1:], 0)
    np.testing.assert_array_equal(Z[:, 1:], 0)
    np.testing.assert_array_equal(model.transform(X)[:, 1:], 0)


def test_singular_within_class_scatter() -> None:
    # Repeated columns and N < D: plain LDA's S_w has no inverse, ours equals LDA on the columns without repeats.
    X, y = clouds()
    Z = KernelDiscriminant(kernel="linear", alpha=1e-9).fit_transform(X, y)
    repeated = KernelDiscriminant(kernel="linear", alpha=1e-9).fit_transform(np.hstack([X] * 20), y)
    assert_same(Z, repeated, rtol=1e-6)


def test_float32_is_computed_in_float64() -> None:
    X, y = clouds()
    X = X.astype(np.float32)
    model = KernelDiscriminant()
    Z = model.fit_transform(X, y)
    assert Z.dtype == model.transform(X).dtype == np.float64
    np.testing.assert_array_equal(Z, KernelDiscriminant().fit_transform(X.astype(np.float64), y))


# ------------------------------------------------------------------------------------------ as it is used


@pytest.mark.slow
def test_nearest_neighbours_on_digits(digits: tuple[Floats, NDArray[np.intp]]) -> None:
    X, y = digits
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    ours, plain = (make_pipeline(step, nearest()) for step in (KernelDiscriminant(), LinearDiscriminantAnalysis()))
    scores = cross_val_score(ours, X, y, cv=folds)
    assert scores.mean() > cross_val_score(plain, X, y, cv=folds).mean() + 0.01
    np.testing.assert_array_equal(scores, cross_val_score(ours, X, y, cv=folds))
    assert ours.fit(X, y).score(X, y) == 1.0
