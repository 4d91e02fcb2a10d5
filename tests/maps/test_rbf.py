"""Gaussian features against a slow double loop; the choice of centres and width."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsvm.maps import RBF
from ldsvm.maps.rbf import Gaussians, distinct_rows

Floats = NDArray[np.float64]


def slow_features(X: Floats, centers: Floats, gamma: float) -> Floats:
    return np.array(
        [[math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, c, strict=True))) for c in centers] for x in X]
    )


def basis_of(
    X: Floats, n_basis: int | None = 5, centers: str = "kmeans", gamma: float | str = 0.3, **kw: object
) -> Gaussians:
    seed = np.random.RandomState(0)
    return RBF(n_basis, centers, gamma, 1e-3).basis(X, kw.get("weight"), seed, 1, kw.get("near"))  # type: ignore


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("gamma", [1e-3, 0.3, 40.0])
def test_features_equal_the_double_loop(gamma: float, dtype: type, atol: float) -> None:
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(12, 3)).astype(dtype), rng.normal(size=(4, 3)).astype(dtype)
    Phi = Gaussians(centers, gamma)(X, dtype)
    assert Phi.dtype == dtype
    np.testing.assert_allclose(Phi, slow_features(X.astype(float), centers.astype(float), gamma), atol=atol)


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e6])
def test_an_offset_of_the_data_costs_no_digits(offset: float) -> None:
    # distances do not change under translation; |x|^2 - 2 x.c + |c|^2 would lose 12 digits at 1e6
    rng = np.random.default_rng(1)
    X, centers = np.round(rng.normal(size=(12, 3)), 2), np.round(rng.normal(size=(4, 3)), 2)
    moved = Gaussians(centers + offset, 0.5)(X + offset, np.float64)
    np.testing.assert_allclose(moved, slow_features(X, centers, 0.5), atol=1e-7)


def test_float32_far_from_the_centres_is_still_right() -> None:
    # gamma |x|^2 of 1e6 has no correct float32 digits in its exponent: float64 takes over
    centers = np.array([[1000.0, 0.0], [-1000.0, 0.0]], np.float32)
    X = centers + np.array([[0.3, 0.4]], np.float32)
    Phi = Gaussians(centers, 1.0)(X, np.float32)
    np.testing.assert_allclose(Phi, slow_features(X.astype(float), centers.astype(float), 1.0), atol=1e-4)
    assert Phi.dtype == np.float32


def test_values_never_exceed_one() -> None:
    # exp of a rounded positive exponent would, at the centres themselves
    X = np.random.default_rng(2).normal(size=(50, 30)).astype(np.float32)
    assert Gaussians(X, 1e-3)(X, np.float32).max() <= 1.0


def test_width_by_scale_is_that_of_svc() -> None:
    # gamma = 1 / (D Var(X)) over all numbers of X; weights count rows
    X = np.random.default_rng(3).normal(size=(20, 4)) * [1, 2, 3, 4] + 5
    times = 1 + np.arange(20) % 3
    assert basis_of(X, gamma="scale").gamma == pytest.approx(1 / (4 * X.var()), rel=1e-12)
    repeated = np.repeat(X, times, axis=0)
    assert basis_of(X, gamma="scale", weight=times.astype(float)).gamma == pytest.approx(
        1 / (4 * repeated.var()), rel=1e-12
    )
    assert basis_of(np.ones((3, 2)), n_basis=1, gamma="scale").gamma == 1.0


def test_random_centres_are_distinct_rows() -> None:
    X = np.repeat(np.arange(24.0).reshape(8, 3), 4, axis=0)
    rows = {tuple(c) for c in basis_of(X, 6, "random").centers.tolist()}
    assert len(rows) == 6 and rows <= {tuple(x) for x in X.tolist()}


def test_kmeans_finds_separated_clusters() -> None:
    # far clusters of very unequal size: the centres are their means
    rng = np.random.default_rng(4)
    means = np.array([[0.0, 0], [50, 0], [0, 90]])
    X = np.vstack([m + rng.normal(size=(n, 2)) for m, n in zip(means, (40, 50, 60), strict=True)])
    centers = basis_of(X, 3).centers
    assert sorted(np.argmin(((centers[:, None] - means) ** 2).sum(-1), 1)) == [0, 1, 2]
    np.testing.assert_allclose(
        sorted(centers.tolist()), sorted([X[:40].mean(0), X[40:90].mean(0), X[90:].mean(0)], key=list), atol=1e-4
    )


def test_every_distinct_row_and_the_warning_that_names_both_numbers() -> None:
    X = np.repeat(np.arange(8.0).reshape(4, 2), 3, axis=0)
    X[0, 0] = -0.0  # equal to 0.0, so not a row of its own
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert basis_of(X, None).size == basis_of(X, 4).size == 4
    with pytest.warns(
        UserWarning, match=r"n_basis=7 is more than the 4 distinct training rows; n_basis is reduced to 4\."
    ):
        assert basis_of(X, 7).size == 4


def test_distinct_rows_keep_the_first_of_each() -> None:
    X = np.array([[1.0, 2], [0.0, 1], [1, 2], [-0.0, 1], [2, 1]])
    assert distinct_rows(X).tolist() == [0, 1, 4]
    assert distinct_rows(np.asfortranarray(X)).tolist() == [0, 1, 4]


def test_an_earlier_map_lends_its_basis() -> None:
    # warm start: the same centres and width, whatever the new data would give
    X = np.random.default_rng(5).normal(size=(20, 3))
    near = RBF(5, "random", 0.3, 1e-3).prepare(X, None, np.random.RandomState(0), 1).fit(X[:, :1], 2.0)
    assert basis_of(X + 1, near=near) is near.basis  # type: ignore[attr-defined]


def test_pickle_keeps_no_derived_arrays() -> None:
    basis = Gaussians(np.random.default_rng(6).normal(size=(50, 8)).astype(np.float32), 0.2)
    before = len(pickle.dumps(basis))
    X = np.ones((2, 8))
    Phi = basis(X, np.float64)
    assert len(pickle.dumps(basis)) == before
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(basis))(X, np.float64), Phi)
