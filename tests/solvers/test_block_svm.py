"""The interior-point SVM on rows in several places against the one on rows in one place."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from ldsvm.solvers import block_svm, linear_svm
from ldsvm.solvers.block_svm import Part, Pass, Sums, Take, padded, solve
from ldsvm.solvers.svm_problem import dual_parts, duality_gap, objective, relative_gap


def solved(Z: np.ndarray, y: np.ndarray, c: np.ndarray, near: np.ndarray | None, places: list[np.ndarray]):
    """SVM (P,), multipliers (N,) and passes of one problem whose rows lie in several places."""
    starts = np.cumsum([0, *map(len, places)])
    parts = [Part(padded(Z[p]), y[p].copy(), c[p].copy(), int(at)) for p, at in zip(places, starts, strict=False)]
    passes: list[int] = []

    class Everywhere:
        def near(self, svms: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
            return {k: reduce(add, [part.near(v) for part in parts]) for k, v in svms.items()}

        def take(self, wanted: dict[int, Take]) -> dict[int, np.ndarray]:
            return {k: reduce(add, [part.take(one) for part in parts]) for k, one in wanted.items()}

        def go(self, wanted: dict[int, Pass]) -> dict[int, Sums]:
            passes.append(1)
            return {k: reduce(add, [part.do(one) for part in parts]) for k, one in wanted.items()}

        def look(self, ends: dict[int, tuple[np.ndarray, np.ndarray]]) -> dict[int, np.ndarray]:
            return {k: reduce(add, [part.look(one) for part in parts]) for k, one in ends.items()}

    start = np.zeros(len(padded(Z[:1]))) if near is None else near
    found = solve(Everywhere(), len(y), Z.shape[1], {7: start})
    return found[7], np.concatenate([part.multipliers() for part in parts]), len(passes)


def problem(N: int, L: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, L))
    return Z, np.where(Z @ rng.normal(size=L) + 0.7 * rng.normal(size=N) > 0.3, 1.0, -1.0)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(("N", "L"), [(400, 3), (1_500, 9), (6, 8), (300, 1)])
def test_the_svm_is_that_of_rows_in_one_place(N: int, L: int, C: float) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_many_rows_are_solved_on_few_of_them_and_exactly(
    shift: float, C: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    Z, y = problem(4_000, 3, seed=2)
    Z[y > 0] += shift  # the classes apart, or mixed
    c = np.where(y > 0, C, 0.3 * C)
    V, b, _ = linear_svm.solve(Z, y[:, None], c[:, None])
    monkeypatch.setattr(block_svm, "MANY", 100)
    monkeypatch.setattr(block_svm, "SAMPLE", 150)
    monkeypatch.setattr(block_svm, "FEWEST", 20)
    monkeypatch.setattr(block_svm, "BLOCK", 999)  # of rows that are looked at together
    for cuts in ([], [1, 1, 1_500, 3_999]):
        v, found, _ = solved(Z, y, c, None, np.split(np.arange(4_000), cuts))
        gap = duality_gap(Z, v[None, :3], v[3:4], y[:, None], c[:, None], found[:, None])
        assert gap < 1e-9 and np.all((found >= 0.0) & (found <= c))
        np.testing.assert_allclose(v[:3], V[0], atol=1e-6 * max(1.0, np.abs(V).max()))
        np.testing.assert_allclose(v[3], b[0], atol=1e-5 * max(1.0, abs(b[0])))
    monkeypatch.setattr(linear_svm, "MANY", 100)
    again = linear_svm.solve(Z, np.stack([y, -y], axis=1), np.stack([c, c], axis=1), 2, (V[[0, 0]], b[[0, 0]]))
    np.testing.assert_allclose(again[0], [V[0], -V[0]], atol=1e-6 * max(1.0, np.abs(V).max()))
    assert duality_gap(Z, *again[:2], np.stack([y, -y], axis=1), np.stack([c, c], axis=1), again[2]).max() < 1e-9


def test_many_rows_that_lie_on_the_margin_of_one_svm(monkeypatch: pytest.MonkeyPatch) -> None:
    # as a Z-step leaves them: it moves rows to the margin of the SVM before
    Z, y = problem(6_000, 3, seed=4)
    w = np.array([0.6, -0.8, 1.1])
    on = np.arange(6_000) % 5 != 0
    Z[on] += ((y[on] - Z[on] @ w) / (w @ w))[:, None] * w
    c = np.full(6_000, 0.05)
    V, b, _ = linear_svm.solve(Z, y[:, None], c[:, None])
    for name, value in {"MANY": 100, "SAMPLE": 200, "FEWEST": 20, "LOOSE": 0.0, "TRIES": 3}.items():  # always closer
        monkeypatch.setattr(block_svm, name, value)
    v, alpha, _ = solved(Z, y, c, None, np.split(np.arange(6_000), [2_500]))
    assert duality_gap(Z, v[None, :3], v[3:4], y[:, None], c[:, None], alpha[:, None]) < 1e-9
    old, new = (objective(Z, *one, y[:, None], c[:, None])[0] for one in ((V, b), (v[None, :3], v[3:4])))
    np.testing.assert_allclose(new, old, rtol=1e-9)


def test_rows_of_a_sample_that_misleads_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    Z, y = problem(3_000, 2, seed=3)
    strange = np.arange(3_000) % 30 != 0  # what the sample does not see has other labels
    y[strange] = np.where(Z[strange] @ [1.0, -2.0] > 0, 1.0, -1.0)
    c = np.full(3_000, 0.1)
    V, b, _ = linear_svm.solve(Z, y[:, None], c[:, None])
    monkeypatch.setattr(block_svm, "MANY", 100)
    monkeypatch.setattr(block_svm, "SAMPLE", 100)  # every thirtieth
    v, _, _ = solved(Z, y, c, None, [np.arange(3_000)])
    np.testing.assert_allclose(v[:3], [*V[0], b[0]], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4, 5])
@pytest.mark.parametrize("width", [1e-3, 1e-4])
def test_few_rows_that_let_a_svm_go_anywhere_are_joined_by_few_others(
    width: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Z, y = problem(20_000, 3, seed)
    Z[y > 0] += 1.5
    c = np.full(20_000, 0.05)
    for name, value in {"MANY": 100, "SAMPLE": 200, "FEWEST": 2, "WIDTH": width}.items():
        monkeypatch.setattr(block_svm, name, value)
    taken: list[float] = []
    plain = Part.take

    def noting(self: Part, wanted: Take) -> np.ndarray:
        found = plain(self, wanted)
        taken.append(found[0])
        return found

    monkeypatch.setattr(Part, "take", noting)
    v, alpha, _ = solved(Z, y, c, None, [np.arange(20_000)])
    assert duality_gap(Z, v[None, :3], v[3:4], y[:, None], c[:, None], alpha[:, None]) < 1e-9
    assert min(taken[1:]) < 20 and max(taken) < 2_500  # of the rows close to the margin none was missing in the end


@pytest.mark.parametrize(("width", "begun_there"), [(0.5, True), (1e3, False)])
def test_a_nearby_svm_is_begun_at_unless_most_rows_are_near_its_margin(
    width: float, begun_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Z, y = problem(4_000, 3, seed=2)
    Z[y > 0] += 3.0
    c = np.full(4_000, 1.0)
    near, _, _ = solved(Z, y, 1.1 * c, None, [np.arange(4_000)])
    for name, value in {"MANY": 100, "SAMPLE": 150, "FEWEST": 20, "WIDTH": width}.items():
        monkeypatch.setattr(block_svm, name, value)
    wanted: list[Take] = []
    plain = Part.take
    monkeypatch.setattr(Part, "take", lambda self, take: (wanted.append(take), plain(self, take))[1])
    v, alpha, _ = solved(Z, y, c, near, [np.arange(4_000)])
    assert (wanted[0].v is near) == begun_there and (wanted[0].v is None) != begun_there
    assert duality_gap(Z, v[None, :3], v[3:4], y[:, None], c[:, None], alpha[:, None]) < 1e-9


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


def test_equal_rows_of_both_signs_have_no_better_svm_than_none() -> None:
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
