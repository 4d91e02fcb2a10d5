"""The nearest centre against exact arithmetic on whole numbers, where float32 alone would be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ldsvm.shards.nearest import Nearest


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
    # the mean of the centres is subtracted first: with M a power of two that is exact, else a tie may break by rounding
    found, wanted = Nearest(centers.astype(float))(X.astype(float)), exact(X, centers)
    least, taken = (((X - centers[place]) ** 2).sum(axis=1) for place in (wanted, found))
    assert np.array_equal(least, taken)
    assert M == 40 or np.array_equal(found, wanted)


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


def test_few_rows_are_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X, centers = rng.normal(size=(5_000, 60)), rng.normal(size=(50, 60))
    nearest, again = Nearest(centers), []

    class Noting(np.ndarray):
        def __rmatmul__(self, x: np.ndarray) -> np.ndarray:
            again.append(len(x))
            return x @ np.asarray(self)

    nearest.centers = nearest.centers.view(Noting)
    nearest(X)
    assert sum(again) < 20
