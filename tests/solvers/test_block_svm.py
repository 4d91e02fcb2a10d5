"""The interior-point SVM on rows in several places against the one on rows in one place."""

from __future__ import annotations

import numpy as np
import pytest

from ldsvm.solvers import linear_svm
from ldsvm.solvers.block_svm import Rows, Sums, newton, padded
from ldsvm.solvers.svm_problem import dual_parts, duality_gap, objective, relative_gap


def solved(Z: np.ndarray, y: np.ndarray, c: np.ndarray, near: np.ndarray | None, places: list[np.ndarray]):
    """Machine (P,), multipliers (N,) and passes of one problem whose rows lie in several places."""
    rows = [Rows(padded(Z[part]), y[part].copy(), c[part].copy()) for part in places]
    method = newton(sum(r.facts() for r in rows), Z.shape[1], np.zeros(len(rows[0].Zt)) if near is None else near)
    found: Sums | None = None
    for passes in range(10_000):
        try:
            wanted = method.send(found)
        except StopIteration as end:
            return end.value, np.concatenate([r.alpha for r in rows]), passes
        every = [r.do(wanted) for r in rows]
        found = every[0]
        for more in every[1:]:
            found = found + more
    raise AssertionError("no end")


def problem(N: int, L: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, L))
    return Z, np.where(Z @ rng.normal(size=L) + 0.7 * rng.normal(size=N) > 0.3, 1.0, -1.0)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(("N", "L"), [(400, 3), (1_500, 9), (6, 8), (300, 1)])
def test_the_machine_is_that_of_rows_in_one_place(N: int, L: int, C: float) -> None:
    Z, y = problem(N, L)
    c = np.full(N, C)
    V, b, _ = linear_svm.solve(Z, y[:, None], c[:, None])
    for cuts in ([], [N // 3], [1, N // 2, N // 2, N - 1]):  # also a place without rows
        v, alpha, _ = solved(Z, y, c, None, np.split(np.arange(N), cuts))
        gap = duality_gap(Z, v[None, :L], v[L : L + 1], y[:, None], c[:, None], alpha[:, None])
        assert gap < 1e-9
        np.testing.assert_allclose(v[:L], V[0], atol=1e-7 * max(1.0, np.abs(V).max()))
        np.testing.assert_allclose(v[L], b[0], atol=1e-6 * max(1.0, abs(b[0])))
        assert np.all(v[L + 1 :] == 0.0)


def test_a_nearby_answer_saves_passes_and_does_not_change_the_answer() -> None:
    Z, y = problem(2_000, 5)
    c = np.full(2_000, 1.0)
    halves = np.split(np.arange(2_000), 2)
    v, _, cold = solved(Z, y, c, None, halves)
    again, _, warm = solved(Z, y, 1.05 * c, v, halves)
    fresh, _, _ = solved(Z, y, 1.05 * c, None, halves)
    assert warm < cold
    np.testing.assert_allclose(again, fresh, atol=1e-6)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_rows_of_one_sign_give_that_sign_without_a_pass(sign: float) -> None:
    Z, _ = problem(50, 2)
    v, _, passes = solved(Z, np.full(50, sign), np.ones(50), None, [np.arange(50)])
    assert passes == 0 and np.array_equal(v, [0.0, 0.0, sign, 0.0])


def test_equal_rows_of_both_signs_have_no_better_machine_than_none() -> None:
    Z, y = np.ones((40, 2)), np.repeat([1.0, -1.0], 20)
    v, _, _ = solved(Z, y, np.ones(40), None, np.split(np.arange(40), [7]))
    value = objective(Z, v[None, :2], v[2:3], y[:, None], np.ones((40, 1)))
    np.testing.assert_allclose(value, 40.0, rtol=1e-6)


def test_the_gap_of_parts_is_the_gap_of_the_whole() -> None:
    Z, y = problem(300, 4)
    rng = np.random.default_rng(1)
    Y, C = np.stack([y, -y], axis=1), rng.uniform(0.5, 2.0, (300, 2))
    V, b, alpha = rng.normal(size=(2, 4)), rng.normal(size=2), rng.uniform(-0.5, 2.5, (300, 2))
    parts = [dual_parts(Z[p], Y[p], C[p], alpha[p]) for p in np.split(np.arange(300), [10, 200])]
    level, moment = (sum(found) for found in zip(*parts, strict=True))
    gap = relative_gap(objective(Z, V, b, Y, C), level, moment)
    np.testing.assert_allclose(gap, duality_gap(Z, V, b, Y, C, alpha), rtol=1e-12)
    # by its definition: multipliers in the box, the heavier sign scaled down
    for k in range(2):
        a = np.clip(alpha[:, k], 0, C[:, k])
        plus, minus = a[Y[:, k] > 0].sum(), a[Y[:, k] < 0].sum()
        a = a * np.where(Y[:, k] > 0, min(plus, minus) / plus, min(plus, minus) / minus)
        assert abs(a @ Y[:, k]) < 1e-9
        primal = objective(Z, V, b, Y, C)[k]
        dual = a.sum() - 0.5 * np.sum(((a * Y[:, k]) @ Z) ** 2)
        np.testing.assert_allclose(gap[k], (primal - dual) / primal, rtol=1e-9)
