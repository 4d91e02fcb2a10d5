"""Maps that are linear in their weights: ridge regression in both forms, weights, sparse and blocked features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray

from ldsvm import LDSVMClassifier
from ldsvm.maps import RBF, Linear
from ldsvm.maps import features as room
from ldsvm.maps.features import BasisMap, FeatureEvaluation, by_groups, row_blocks

Floats = NDArray[np.float64]


def weights(X: object, Z: Floats, lam: float, mu: float = 3.0, weight: Floats | None = None) -> Floats:
    W: Floats = Linear(lam).prepare(X, weight, np.random.RandomState(0), 1).fit(Z, mu).W  # type: ignore[attr-defined]
    return W


def ridge_by_least_squares(X: Floats, Z: Floats, lam: float, mu: float, weight: Floats) -> Floats:
    """argmin lam |W|^2 + mu/2 sum_n w_n |z_n - W'x_n|^2 as one least-squares problem with stacked rows."""
    root = np.sqrt(0.5 * mu * weight)[:, None]
    stacked = np.vstack([root * X, np.sqrt(lam) * np.eye(X.shape[1])])
    W: Floats = np.linalg.lstsq(stacked, np.vstack([root * Z, np.zeros((X.shape[1], Z.shape[1]))]), rcond=None)[0]
    return W


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("N", [4, 6, 7, 30])
def test_primal_and_dual_ridge_equal_least_squares(N: int, weighted: bool, sparse: bool) -> None:
    # N < D takes the dual form W = X'(XX' + r I)^-1 Z, N >= D the primal one: the same minimiser
    rng = np.random.default_rng(N)
    X, Z = rng.normal(size=(N, 6)), rng.normal(size=(N, 2))
    weight = rng.uniform(0.2, 3.0, N) if weighted else None
    regression = Linear(0.7).prepare(sp.csr_array(X) if sparse else X, weight, np.random.RandomState(0), 1)
    assert regression.ridge.gram.shape == (min(N, 6), min(N, 6))  # type: ignore[attr-defined]
    W = weights(sp.csr_array(X) if sparse else X, Z, 0.7, weight=weight)
    np.testing.assert_allclose(
        W, ridge_by_least_squares(X, Z, 0.7, 3.0, np.ones(N) if weight is None else weight), atol=1e-10
    )


@pytest.mark.parametrize("N", [4, 30])
def test_integer_weights_repeat_rows(N: int) -> None:
    # a weight multiplies the row's squared error, so w = 3 is the row three times, and a primal may become a dual
    rng = np.random.default_rng(1)
    X, Z, times = rng.normal(size=(N, 6)), rng.normal(size=(N, 2)), 1 + np.arange(N) % 3
    rows = np.repeat(np.arange(N), times)
    np.testing.assert_allclose(
        weights(X, Z, 0.5, weight=times.astype(float)), weights(X[rows], Z[rows], 0.5), atol=1e-10
    )


@pytest.mark.parametrize("N", [4, 30])
def test_no_ridge_is_the_minimum_norm_solution(N: int) -> None:
    # alpha = 0 with a column repeated: infinitely many minimisers, the pseudo-inverse picks the shortest
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(N, 6))[:, [0, 1, 2, 3, 4, 5, 5]], rng.normal(size=(N, 2))
    np.testing.assert_allclose(weights(X, Z, 0.0), np.linalg.pinv(X) @ Z, atol=1e-7)


def test_blocks_change_the_result_by_rounding_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # sums over blocks of 7 rows against one block, for the Gram matrix, the right-hand side and the values
    rng = np.random.default_rng(3)
    X, Z, weight = rng.normal(size=(50, 6)), rng.normal(size=(50, 2)), rng.uniform(0.5, 2, 50)

    def run() -> tuple[Floats, Floats, Floats]:
        regression = Linear(0.1).prepare(X, weight, np.random.RandomState(0), 1)
        mapping = regression.fit(Z, 2.0)
        return mapping.W, regression.values(mapping), mapping(X)  # type: ignore[attr-defined]

    whole = run()
    monkeypatch.setattr(room, "row_blocks", lambda n, width, numbers=0: row_blocks(n, 1, 7))
    for one, many in zip(whole, run(), strict=True):
        np.testing.assert_allclose(one, many, atol=1e-12)


@pytest.mark.parametrize(("n", "width", "numbers"), [(10, 3, 9), (10, 100, 9), (1, 0, 5), (7, 1, 7)])
def test_row_blocks_cover_every_row_once(n: int, width: int, numbers: int) -> None:
    parts = [np.arange(n)[rows] for rows in row_blocks(n, width, numbers)]
    assert np.concatenate(parts).tolist() == list(range(n))
    assert all(len(p) == 1 or len(p) * width <= numbers for p in parts)


def test_the_working_memory_of_scikit_learn_bounds_the_blocks() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(300, 4)), np.arange(300) % 3
    model = LDSVMClassifier(
        map="adaptive_rbf", n_basis=20, center_steps=20, alpha=1e-3, C=0.1, random_state=0, max_iter=3, tol=1.0
    )
    whole = model.fit(X, y).decision_function(X)
    with sklearn.config_context(working_memory=0.001):  # 131 numbers
        assert [rows.stop - rows.start for rows in row_blocks(20, 20)] == [6, 6, 6, 2]
        assert [rows.stop - rows.start for rows in row_blocks(2, 1000)] == [1, 1]
        parts = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(parts, whole, atol=1e-4)


def test_decide_is_the_machine_on_the_map() -> None:
    # folding V into W changes the order of two products only; R(F) is the sum of squared weights
    rng = np.random.default_rng(4)
    X, V, b = rng.normal(size=(20, 5)), rng.normal(size=(3, 2)), rng.normal(size=3)
    mapping = Linear(0.1).prepare(X, None, np.random.RandomState(0), 1).fit(rng.normal(size=(20, 2)), 2.0)
    np.testing.assert_allclose(mapping.decide(X, V, b), mapping(X) @ V.T + b, atol=1e-12)
    np.testing.assert_allclose(mapping.decide(sp.csr_array(X), V, b), mapping(X) @ V.T + b, atol=1e-12)
    assert mapping.penalty == pytest.approx(sum(w**2 for w in mapping.W.ravel()))  # type: ignore[attr-defined]
    assert mapping.n_basis == 5


def test_precision_follows_the_input() -> None:
    # float32 in, float32 out; values for training stay float64, those elsewhere are what a prediction would be
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 5)).astype(np.float32)
    regression = Linear(0.1).prepare(X, None, np.random.RandomState(0), 1)
    mapping = regression.fit(rng.normal(size=(20, 2)), 2.0)
    assert mapping(X).dtype == np.float32 and mapping(X.astype(np.float64)).dtype == np.float64
    assert mapping.decide(X, np.ones((1, 2)), np.ones(1)).dtype == np.float32
    assert regression.values(mapping).dtype == np.float64
    np.testing.assert_allclose(mapping(X), regression.values(mapping), atol=1e-5)
    np.testing.assert_allclose(FeatureEvaluation(X[:3]).values(mapping), mapping(X[:3]), atol=1e-6)
    np.testing.assert_allclose(
        FeatureEvaluation(X[:3].astype(np.float64)).values(mapping), regression.values(mapping)[:3], atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_any_number_of_threads_gives_the_same_bits(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BLOCK", 200)
    monkeypatch.setattr(room.row_blocks, "__defaults__", (200,))
    rng = np.random.default_rng(0)
    X, Z, weight = rng.normal(size=(403, 7)).astype(np.float32), rng.normal(size=(403, 2)), rng.uniform(1, 2, 403)
    found = []
    for n_threads in (1, 2, 3, 50):
        family = RBF(20, "random", 0.1, 1e-2)
        regression = family.prepare(X, weight if weighted else None, np.random.RandomState(0), n_threads)
        mapping = regression.fit(Z, 2.0)
        assert isinstance(mapping, BasisMap)
        found.append((mapping.W, regression.values(mapping), regression.elsewhere(X[:50]).values(mapping)))
    for others in found[1:]:
        for first, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(first, other)


def test_groups_cover_every_row_once_in_order() -> None:
    for n_rows, width in ((0, 3), (1, 3), (5, 10**9), (1000, 100_000)):
        groups = by_groups(lambda group: [(rows.start, rows.stop) for rows in group], n_rows, width, 3)
        edges = [edge for group in groups for rows in group for edge in rows]
        assert edges[::2] + [n_rows] * bool(n_rows) == [0] * bool(n_rows) + edges[1::2]
        assert len(groups) <= room.GROUPS
