"""The nearest centre against exact arithmetic on whole numbers, where float32 alone would be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ldsvm.maps.nearest import Nearest


def exact(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """By whole numbers, the first of equals."""
    difference = X[:, None].astype(np.int64) - centers[None].astype(np.int64)
    return np.einsum("nmd,nmd->nm", difference, difference).argmin(axis=1)


@pytest.mark.parametrize("offset", [0, 10_000, 10_000_000])
@pytest.mark.parametrize("M", [1, 2, 40])
def test_it_is_the_exact_answer_also_of_ties_and_near_ties(M: int, offset: int) -> None:
    rng = np.random.default_rng(M)
    centers = rng.integers(0, 60, (M, 5)) * 2
    halfway = (centers + centers[::-1]) // 2  # as far from one centre as from another
    X = np.concatenate([rng.integers(0, 120, (2_000, 5)), halfway, halfway + rng.integers(-1, 2, (M, 5)), centers])
    X, centers = X + offset, centers + offset
    assert np.array_equal(Nearest(centers.astype(float))(X.astype(float)), exact(X, centers))


@pytest.mark.slow
@pytest.mark.parametrize(("D", "M"), [(5, 40), (20, 40), (784, 100)])
def test_ties_of_tables_of_0_and_1_do_not_depend_on_the_cut(D: int, M: int) -> None:
    X = np.random.default_rng(0).integers(0, 2, (600, D))
    nearest, wanted = Nearest(X[:M].astype(float)), exact(X, X[:M])
    for size in (1, 7, 300, 600):
        parts = [nearest(X[start : start + size].astype(float)) for start in range(0, 600, size)]
        assert np.array_equal(np.concatenate(parts), wanted)


def test_single_precision_alone_would_be_wrong() -> None:
    # two centres far away and close to each other: float32 does not see which is nearer
    centers = np.array([[4_000.0, 0.0], [4_000.0, 0.001], [-8_000.0, 0.0]])
    X = np.column_stack([np.zeros(100), np.linspace(-1.0, 1.0, 100)])
    wanted = (X[:, 1] > 0.0005).astype(int)
    single = ((X[:, None].astype(np.float32) - centers[None].astype(np.float32)) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(Nearest(centers)(X), wanted) and not np.array_equal(single, wanted)


@pytest.mark.parametrize("size", [1e-120, 1e-42, 1e-25, 1e15, 1e25, 1e120])
def test_numbers_beyond_single_precision(size: float) -> None:
    rng = np.random.default_rng(0)
    centers, X = rng.integers(-50, 50, (12, 3)), rng.integers(-60, 60, (500, 3))
    found = Nearest(centers * size)(X * size)
    least, taken = (((X - centers[place]) ** 2).sum(axis=1) for place in (exact(X, centers), found))
    assert np.array_equal(least, taken)


@pytest.mark.parametrize(
    ("X", "centers"), [([[1e40, 1e38]], [[1e-8, -1e-5], [-1e-8, 1e-5]]), ([[1e12]], [[0.0], [1e-45]])]
)
def test_numbers_that_single_precision_loses(X: list[list[float]], centers: list[list[float]]) -> None:
    a, b = ((np.array(X) @ np.array(c)).item() for c in centers)
    assert Nearest(np.array(centers))(np.array(X)).tolist() == [int(b > a)]


def test_few_rows_are_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    nearest, rows = Nearest(rng.normal(size=(50, 60))), []
    plain = Nearest._values

    def noting(self: Nearest, x: np.ndarray, dtype: object) -> tuple[np.ndarray, np.ndarray]:
        rows.append(len(x))
        return plain(self, x, dtype)

    monkeypatch.setattr(Nearest, "_values", noting)
    nearest(rng.normal(size=(5_000, 60)))
    assert rows[0] == 5_000 and 0 < sum(rows[1:]) < 30
