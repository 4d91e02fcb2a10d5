"""The interior-point SVM against an independent duality gap, LIBSVM, and cases with a known answer."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsvm.solvers.linear_svm import solve
from ldsvm.solvers.reference_svm import solve_liblinear, solve_libsvm
from ldsvm.solvers.svm_problem import duality_gap, objective

Floats = NDArray[np.float64]


def slow_primal(Z: Floats, v: Floats, b: float, y: Floats, c: Floats) -> float:
    value = 0.5 * sum(float(vi) ** 2 for vi in v)
    for n in range(len(y)):
        value += c[n] * max(0.0, 1.0 - y[n] * (sum(v[i] * Z[n, i] for i in range(len(v))) + b))
    return float(value)


def slow_gap(Z: Floats, v: Floats, b: float, y: Floats, c: Floats, alpha: Floats) -> float:
    """Relative gap from multipliers made feasible: clipped to the box, the heavier sign scaled down to balance."""
    a = [min(max(float(alpha[n]), 0.0), float(c[n])) for n in range(len(y))]
    plus, minus = (sum(a[n] for n in range(len(y)) if y[n] == sign) for sign in (1, -1))
    for n in range(len(y)):
        own = plus if y[n] == 1 else minus
        a[n] *= min(plus, minus) / own if own > 0 else 0.0
    assert abs(sum(a[n] * y[n] for n in range(len(y)))) <= 1e-9 * max(1.0, sum(a))
    w = [sum(a[n] * y[n] * Z[n, i] for n in range(len(y))) for i in range(Z.shape[1])]
    primal = slow_primal(Z, v, b, y, c)
    return (primal - (sum(a) - 0.5 * sum(wi**2 for wi in w))) / (primal or 1.0)


def data(N: int = 80, L: int = 3, K: int = 2, seed: int = 0) -> tuple[Floats, Floats]:
    """Overlapping classes on inputs of unequal scale."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, L)) * (1.0 + np.arange(L)) + 0.3
    Y = np.where(Z @ rng.normal(size=(L, K)) + rng.normal(size=(N, K)) > 0.5, 1.0, -1.0)
    return Z, Y


def assert_optimal(Z: Floats, Y: Floats, C: Floats, tol: float = 1e-6) -> tuple[Floats, Floats]:
    V, b, alpha = solve(Z, Y, C)
    for k in range(Y.shape[1]):
        assert -1e-12 <= slow_gap(Z, V[k], b[k], Y[:, k], C[:, k], alpha[:, k]) < tol
    return V, b


@pytest.mark.parametrize("C", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_gap_by_an_independent_formula(C: float) -> None:
    # weak duality: a feasible dual value below the primal proves the SVM optimal, whatever the solver did
    Z, Y = data()
    penalties = C * np.random.default_rng(1).uniform(0.5, 2.0, size=Y.shape)
    assert_optimal(Z, Y, penalties, tol=1e-8)


def test_objective_and_gap_equal_the_slow_formulas() -> None:
    # both formulas at a point that is not optimal, with rows that take no part and an unbalanced alpha
    rng = np.random.default_rng(2)
    Z, Y = data(N=13, K=3)
    V, b, C, alpha = rng.normal(size=(3, 3)), rng.normal(size=3), rng.uniform(0, 2, Y.shape), rng.normal(size=Y.shape)
    C[::4, 1] = 0.0
    slow = [slow_primal(Z, V[k], b[k], Y[:, k], C[:, k]) for k in range(3)]
    np.testing.assert_allclose(objective(Z, V, b, Y, C), slow, rtol=1e-12)
    gaps = [slow_gap(Z, V[k], b[k], Y[:, k], C[:, k], alpha[:, k]) for k in range(3)]
    np.testing.assert_allclose(duality_gap(Z, V, b, Y, C, alpha), gaps, rtol=1e-12)
    assert min(gaps) > 1e-3


def test_gap_rejects_a_perturbed_svm() -> None:
    Z, Y = data()
    C = np.ones(Y.shape)
    V, b, alpha = solve(Z, Y, C)
    assert (duality_gap(Z, V, b, Y, C, alpha) < 1e-9).all()
    assert (duality_gap(Z, 1.05 * V, b, Y, C, alpha) > 1e-5).all()
    assert (duality_gap(Z, V, b, Y, C, 0.9 * alpha) > 1e-4).all()


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_objective_is_that_of_libsvm(C: float) -> None:
    # the minimum is unique in value; LIBSVM stops at its own tolerance, so it may only be a little worse
    Z, Y = data(N=30, L=2)
    penalties = np.full(Y.shape, C)
    ours = objective(Z, *solve(Z, Y, penalties)[:2], Y, penalties)
    V, b, alpha = solve_libsvm(Z, Y, penalties)
    theirs = objective(Z, V, b, Y, penalties)
    assert (ours <= theirs * (1 + 1e-9)).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    assert (duality_gap(Z, V, b, Y, penalties, alpha) < 1e-2).all()


def test_liblinear_comes_close() -> None:
    # it also penalises the bias, so it is above the optimum, but not by much
    Z, Y = data()
    C = np.ones(Y.shape)
    ratio = objective(Z, *solve_liblinear(Z, Y, C)[:2], Y, C) / objective(Z, *solve(Z, Y, C)[:2], Y, C)
    assert ((ratio >= 1 - 1e-9) & (ratio < 1.05)).all()


@pytest.mark.parametrize("solver", [solve, solve_libsvm])
def test_two_points_by_hand(solver: object) -> None:
    # the hard margin between (1, 0) and (4, 4): v = 2 d / |d|^2 with d = (3, 4), and v.z + b = -1 at the first
    Z, Y = np.array([[1.0, 0.0], [4.0, 4.0]]), np.array([[-1.0], [1.0]])
    V, b, _ = solver(Z, Y, np.full((2, 1), 100.0))  # type: ignore[operator]
    np.testing.assert_allclose(V, [[0.24, 0.32]], atol=1e-6)
    np.testing.assert_allclose(b, [-1.24], atol=1e-6)


def test_a_minority_at_the_centre_gives_the_zero_svm() -> None:
    # XOR-like: alpha can balance the classes' means, so v = 0 is optimal and the objective is 2 C min(n+, n-)
    Z = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0]])
    Y = np.array([[-1.0], [-1], [-1], [-1], [1]])
    C = np.full((5, 1), 3.0)
    V, b = assert_optimal(Z, Y, C)
    np.testing.assert_allclose(V, 0.0, atol=1e-5)
    np.testing.assert_allclose(objective(Z, V, b, Y, C), 6.0, rtol=1e-8)


@pytest.mark.parametrize("solver", [solve, solve_libsvm, solve_liblinear])
def test_one_sided_problems(solver: object) -> None:
    # one sign only: v = 0, b = that sign costs nothing; no rows at all: any SVM is optimal, ours is zero
    Z, Y = data(N=20, K=3)
    C = np.ones(Y.shape)
    Y[:, 0], C[Y[:, 1] > 0, 1], C[:, 2] = 1.0, 0.0, 0.0
    V, b, _ = solver(Z, Y, C)  # type: ignore[operator]
    np.testing.assert_array_equal(V, 0.0)
    np.testing.assert_array_equal(b, [1.0, -1.0, 0.0])


@pytest.mark.parametrize("solver", [solve, solve_libsvm])
def test_penalties_count_rows(solver: object) -> None:
    # C = 0 is a row removed and 2 C a row repeated, in the objective and hence in the SVM
    Z, Y = data(N=40)
    times = np.arange(40) % 3
    V, b, _ = solver(Z, Y, np.repeat(times[:, None], 2, axis=1) * 0.7)  # type: ignore[operator]
    again = np.repeat(np.arange(40), times)
    V2, b2, _ = solver(Z[again], Y[again], np.full((len(again), 2), 0.7))  # type: ignore[operator]
    np.testing.assert_allclose(V, V2, atol=2e-4)
    np.testing.assert_allclose(b, b2, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("case", ["collapsed", "duplicates", "one column repeated", "separable", "all on the margin"])
def test_degenerate_inputs(case: str, C: float) -> None:
    # late MAC iterates: classes collapsed to points, as many margin points as unknowns, singular covariances
    rng = np.random.default_rng(3)
    Z, Y = data(N=30, K=1)
    if case == "collapsed":
        Z = np.where(Y > 0, [1.0, 2.0, -1.0], [0.5, 0.0, 0.0])
    elif case == "duplicates":
        Z = Z[rng.integers(0, 5, 30)]
    elif case == "one column repeated":
        Z = np.repeat(np.round(Z[:, :1]), 3, axis=1)
    elif case == "separable":
        Z[:, 0] = Y[:, 0] * rng.uniform(1, 3, 30)
    else:
        Z = Z - Z[:, :1] * [1.0, 0.0, 0.0] + Y * [1.0, 0.0, 0.0]
    assert_optimal(Z, Y, np.full(Y.shape, C))


def test_a_newton_matrix_singular_in_float64_is_no_error() -> None:
    # the weights of margin rows grow like 1 / gap, until the identity in I + Z'wZ is lost to rounding
    Z, Y = np.array([[1.0], [1.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [-1.0]])
    C = np.full((4, 1), 100.0)
    V, b, _ = solve(Z, Y, C)
    np.testing.assert_allclose(objective(Z, V, b, Y, C), objective(Z, *solve_libsvm(Z, Y, C)[:2], Y, C), rtol=1e-6)


def test_singular_newton_matrices_on_many_small_problems() -> None:
    # duplicate points in one column repeated, large C: every problem has an optimum and must get one
    for seed in range(60):
        rng = np.random.default_rng(seed)
        Z = np.repeat(rng.integers(-2, 3, size=(12, 1)).astype(float), 2, axis=1)
        Y = np.where(np.arange(12) + rng.integers(0, 6, 12) > 8, 1.0, -1.0)[:, None]
        assert_optimal(Z, Y, np.full((12, 1), 10.0 ** rng.uniform(2, 5)))


def test_predictor_corrector_steps_do_not_cycle() -> None:
    # Mehrotra's steps can cycle far from the optimum without a safeguard; found by search, four rows and six inputs
    Z = np.array([[-2.0, 2, 2, 2, 0, -2], [0, 0, 0, 0, -1, 2], [-1, 2, 1, 1, -2, 0], [-1, 1, 1, 0, -1, -1]])
    assert_optimal(Z, np.array([[-1.0], [1], [-1], [-1]]), np.full((4, 1), 100.0))


def test_threads_agree() -> None:
    # how the work is shared out changes rounding at most, and two threads give the same bits every time
    Z, Y = data(N=2000, L=2, K=60)
    C = np.full(Y.shape, 0.1)
    one, two = (solve(Z, Y, C, n) for n in (1, 2))
    np.testing.assert_allclose(one[0], two[0], atol=1e-5)
    again = solve(Z, Y, C, 2)
    np.testing.assert_array_equal(two[0], again[0])
    assert (duality_gap(Z, two[0], two[1], Y, C, two[2]) < 1e-8).all()


@pytest.mark.parametrize("start", ["zero", "answer", "near", "opposite", "huge"])
def test_a_start_changes_the_way_only(start: str) -> None:
    # the problem is convex: from any SVMs the same objective, also from those that mislead
    Z, Y = data(K=3)
    C = np.random.default_rng(4).uniform(0.5, 5.0, size=Y.shape)
    V, b, _ = solve(Z, Y, C)
    factor = {"zero": 0.0, "answer": 1.0, "near": 1.1, "opposite": -1.0, "huge": 1e6}[start]
    V2, b2, alpha = solve(Z, Y, C, 1, (factor * V, factor * b))
    for k in range(3):
        assert -1e-12 <= slow_gap(Z, V2[k], b2[k], Y[:, k], C[:, k], alpha[:, k]) < 1e-7
    np.testing.assert_allclose(V2, V, atol=1e-4)


def test_multipliers_prove_the_svm_for_huge_penalties() -> None:
    # rounding may spoil the last iterate; the multipliers returned must belong to the SVM returned
    Z = np.repeat([[-1.0], [0.0], [-0.5], [0.0], [1.0], [-0.5]], 3, axis=1)
    assert_optimal(Z, np.array([[-1.0], [-1], [1], [1], [-1], [1]]), np.full((6, 1), 1e7), tol=1e-3)
