"""Ridge regression from a Gram matrix, and blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest

from ldsvm.solvers.ridge import KEPT, Ridge
from ldsvm.threads import Blocks, blocks


def test_solves_the_normal_equations_for_many_ridges() -> None:
    # more ridges than factors are kept, visited twice: a stale factor would show
    rng = np.random.default_rng(0)
    Phi, R = rng.normal(size=(20, 5)) * [1, 2, 3, 4, 5], rng.normal(size=(5, 2))
    ridge = Ridge(Phi.T @ Phi)
    for lam in [*np.geomspace(1e-3, 1e2, KEPT + 2)] * 2:
        np.testing.assert_allclose((Phi.T @ Phi + lam * np.eye(5)) @ ridge.solve(R, lam), R, atol=1e-9)


def test_singular_gives_the_minimum_norm_solution() -> None:
    # two equal features and no ridge: the pseudo-inverse shares the weight between them
    rng = np.random.default_rng(1)
    Phi = rng.normal(size=(20, 4))[:, [0, 1, 2, 3, 1]]
    Z = rng.normal(size=(20, 2))
    W = Ridge(Phi.T @ Phi).solve(Phi.T @ Z, 0.0)
    np.testing.assert_allclose(W, np.linalg.pinv(Phi) @ Z, atol=1e-8)
    np.testing.assert_allclose(W[1], W[4], atol=1e-8)


def test_a_ridge_below_rounding_still_fits() -> None:
    # the weights on equal features are then undetermined, their fit is not
    rng = np.random.default_rng(1)
    Phi = rng.normal(size=(20, 4))[:, [0, 1, 2, 3, 1]]
    Z = rng.normal(size=(20, 2))
    W = Ridge(Phi.T @ Phi).solve(Phi.T @ Z, 1e-30)
    np.testing.assert_allclose(Phi @ W, Phi @ np.linalg.pinv(Phi) @ Z, atol=1e-8)


def test_zero_matrix_gives_zero() -> None:
    # no information at all: the minimum-norm solution is zero, not NaN
    np.testing.assert_array_equal(Ridge(np.zeros((3, 3))).solve(np.zeros((3, 2)), 0.0), 0.0)


@pytest.mark.parametrize(("n", "threads", "least"), [(1, 4, 512), (1025, 2, 512), (7, 3, 2), (10_000, 7, 1)])
def test_blocks_cover_every_row_once(n: int, threads: int, least: int) -> None:
    parts = blocks(n, threads, least)
    assert np.concatenate([np.arange(n)[part] for part in parts]).tolist() == list(range(n))
    assert len(parts) == max(1, min(threads, n // least))


def test_results_come_in_the_order_of_the_blocks() -> None:
    # sums over blocks must not depend on which thread is first
    with Blocks(1000, 4, least=10) as rows:
        starts = rows.map(lambda part: part.start)
    assert starts == sorted(starts) and len(starts) == 4
