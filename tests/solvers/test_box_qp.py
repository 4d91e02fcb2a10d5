"""The exact Z-step solver against closed forms and a brute-force enumeration of active sets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsvm.solvers.box_qp import closed_form, residual, solve

Floats = NDArray[np.float64]
SHAPES = [(1, 2), (2, 2), (1, 3), (2, 4), (3, 4), (5, 3)]  # (L, K): more SVMs than dimensions and fewer


def enumerate_active_sets(f: Floats, V: Floats, b: Floats, y: Floats, c: Floats) -> Floats:
    """The optimal z of one row: every SVM at 0, at c or free is tried until the optimality conditions hold."""
    A = y[:, None] * V
    for states in product("0cf", repeat=len(c)):
        free = np.array([s == "f" for s in states])
        alpha = np.where([s == "c" for s in states], c, 0.0)
        if free.any():
            r = 1.0 - A @ (f + 0.5 * alpha @ A) - y * b
            alpha[free] = np.linalg.lstsq(0.5 * A[free] @ A[free].T, r[free], rcond=1e-12)[0]
        z = f + 0.5 * alpha @ A
        slope = 1.0 - A @ z - y * b
        inside = (alpha >= -1e-9).all() and (alpha <= c + 1e-9).all()
        low, high = alpha <= 1e-9, alpha >= c - 1e-9
        # slope <= 0 at the lower bound, >= 0 at the upper, = 0 between
        signs = (low | (slope >= -1e-9)) & (high | (slope <= 1e-9))
        if inside and signs.all():
            return z
    raise AssertionError("no active set is optimal")


def rows(L: int, K: int, seed: int, N: int = 30) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """F, V, b, Y, upper with asymmetric numbers: SVMs of unequal length, boxes that differ by row and SVM."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(K, L)) * (1.0 + np.arange(K))[:, None]
    Y = np.where(rng.random((N, K)) < 0.4, 1.0, -1.0)
    return rng.normal(size=(N, L)) * 2.0, V, rng.normal(size=K), Y, rng.uniform(0.05, 3.0, size=(N, K))


@pytest.mark.parametrize(("L", "K"), SHAPES)
def test_equals_enumeration_of_active_sets(L: int, K: int) -> None:
    # z is unique (strictly convex in z), whatever the multipliers
    F, V, b, Y, upper = rows(L, K, seed=10 * L + K)
    Z, alpha = solve(F, V, b, Y, upper)
    slow = [enumerate_active_sets(F[n], V, b, Y[n], upper[n]) for n in range(len(F))]
    np.testing.assert_allclose(Z, slow, atol=1e-9)
    np.testing.assert_allclose(Z, F + 0.5 * (alpha * Y) @ V, atol=1e-12)
    # every kind of active set occurs, so the comparison means something
    assert (alpha == 0).any() and (alpha == upper).any() and ((alpha > 0) & (alpha < upper)).any()


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize(("L", "K"), SHAPES)
def test_satisfies_optimality_conditions(L: int, K: int, factor: float) -> None:
    # the residual is computed from the answer, for boxes from never binding to always
    F, V, b, Y, upper = rows(L, K, seed=L + K)
    Z, alpha = solve(F, V, b, Y, factor * upper)
    assert (alpha >= 0).all() and (alpha <= factor * upper).all()
    assert residual(Z, alpha, V, b, Y, factor * upper).max() < 1e-9 * max(1.0, factor)


@pytest.mark.parametrize("what", ["alpha", "Z", "other row"])
def test_residual_rejects_a_wrong_answer(what: str) -> None:
    # a measure of optimality that accepts a perturbed optimum would make the tests above empty
    F, V, b, Y, upper = rows(3, 4, seed=1)
    Z, alpha = solve(F, V, b, Y, upper)
    free = ((alpha > 0) & (alpha < upper)).any(axis=1)  # with every multiplier at a bound a small error can be optimal
    if what == "alpha":
        alpha = np.clip(alpha + np.where(alpha > upper / 2, -1e-3, 1e-3), 0.0, upper)
        Z = F + 0.5 * (alpha * Y) @ V
    elif what == "Z":
        Z = Z + 1e-3
    else:
        Z, alpha = Z[::-1], alpha[::-1]
    assert free.sum() > 20 and (residual(Z, alpha, V, b, Y, upper)[free] > 1e-5).all()


def test_residual_by_hand() -> None:
    # v = (3, 4): q = 12.5; margin 1 - 5 = -4 at z = (-1, 0), b = -1, y = 1; alpha moves to 0.1 + 5/12.5 = 0.5, box 0.3
    value = residual(np.array([[-1.0, 0.0]]), np.array([[0.1]]), np.array([[3.0, 4.0]]), np.array([-1.0]),
                     np.ones((1, 1)), np.array([[0.3]]))  # fmt: skip
    assert value == pytest.approx([12.5 * 0.2])


@pytest.mark.parametrize(
    ("f", "y", "upper", "z"),
    [(2.0, 1.0, 9.0, 2.0), (0.0, 1.0, 9.0, 0.25), (0.0, 1.0, 0.05, 0.05), (0.0, -1.0, 9.0, -0.75)],
    ids=["beyond the margin", "moved onto the margin", "moved as far as C allows", "other sign"],
)
def test_one_svm_by_hand(f: float, y: float, upper: float, z: float) -> None:
    # the three cases of Algorithm a:drsvm-optZ on a line: v = 2, b = 1/2
    Z, alpha = solve(np.array([[f]]), np.array([[2.0]]), np.array([0.5]), np.array([[y]]), np.array([[upper]]))
    assert pytest.approx(z) == Z.item()
    assert residual(Z, alpha, np.array([[2.0]]), np.array([0.5]), np.array([[y]]), np.array([[upper]])) < 1e-12


def test_one_svm_equals_the_general_solver() -> None:
    # one real SVM and one that never takes part is the same problem
    F, V, b, Y, upper = rows(3, 2, seed=4)
    upper[:, 1] = 0.0
    Z, alpha = solve(F, V, b, Y, upper)
    Z1, alpha1 = closed_form(F, V[0], b[0], Y[:, 0], upper[:, 0])
    np.testing.assert_allclose(Z, Z1, atol=1e-10)
    np.testing.assert_allclose(alpha[:, :1], alpha1, atol=1e-9)


def test_zero_svm_moves_nothing() -> None:
    # V = 0: the hinge does not depend on z, so z = f; alone and among other SVMs
    F, V, b, Y, upper = rows(3, 3, seed=5)
    Z, _ = closed_form(F, np.zeros(3), 0.3, Y[:, 0], upper[:, 0])
    np.testing.assert_array_equal(Z, F)
    V[1] = 0.0
    with_zero, alpha = solve(F, V, b, Y, upper)
    without, _ = solve(F, V[[0, 2]], b[[0, 2]], Y[:, [0, 2]], upper[:, [0, 2]])
    np.testing.assert_allclose(with_zero, without, atol=1e-9)
    np.testing.assert_array_equal(alpha[:, 1], np.where(1.0 - Y[:, 1] * b[1] > 0, upper[:, 1], 0.0))


def test_a_box_of_zero_takes_a_svm_out() -> None:
    # one-vs-one: a row's QP has only its own SVMs, which differ from row to row
    F, V, b, Y, upper = rows(2, 4, seed=6)
    out = np.arange(4)[None, :] == (np.arange(len(F)) % 4)[:, None]
    Z, alpha = solve(F, V, b, Y, np.where(out, 0.0, upper))
    for n in range(len(F)):
        kept = ~out[n]
        np.testing.assert_allclose(
            Z[n], enumerate_active_sets(F[n], V[kept], b[kept], Y[n, kept], upper[n, kept]), atol=1e-9
        )
    assert not alpha[out].any()


def test_equal_svms_are_one_svm_with_the_sum_of_the_boxes() -> None:
    # a singular Hessian: two copies of an SVM with boxes c and d act as one with c + d
    F, V, b, Y, upper = rows(3, 2, seed=7)
    twice = np.array([0, 1, 0])
    Z, alpha = solve(F, V[twice], b[twice], Y[:, twice], upper[:, twice])
    once, _ = solve(F, V, b, Y, upper * np.array([2.0, 1.0]))
    np.testing.assert_allclose(Z, once, atol=1e-9)
    assert residual(Z, alpha, V[twice], b[twice], Y[:, twice], upper[:, twice]).max() < 1e-9


@pytest.mark.parametrize("start", ["own answer", "upper", "outside"])
def test_start_changes_nothing(start: str) -> None:
    # z is unique, so multipliers to start from may only save work; those outside the box are pulled in
    F, V, b, Y, upper = rows(2, 4, seed=8)
    Z, alpha = solve(F, V, b, Y, upper)
    begin = {"own answer": alpha, "upper": upper, "outside": 5.0 * upper - 2.0}[start]
    again, _ = solve(F, V, b, Y, upper, begin)
    np.testing.assert_allclose(again, Z, atol=1e-9)


@pytest.mark.slow
def test_threads_and_memory_order_change_no_bit() -> None:
    # rows are independent: blocks of rows, Fortran order and read-only input give the same bits
    F, V, b, Y, upper = rows(3, 4, seed=9, N=1300)
    Z, alpha = solve(F, V, b, Y, upper)
    other = [np.asfortranarray(a) for a in (F, V, b, Y, upper)]
    for a in other:
        a.flags.writeable = False
    Z2, alpha2 = solve(*other, n_threads=2)
    np.testing.assert_array_equal(Z, Z2)
    np.testing.assert_array_equal(alpha, alpha2)
