"""Starting coordinates: geometry of the simplex and its substitutes, random centroids, principal coordinates."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from ldsvm.mac.start import simplex_points, starting_coordinates

# The best known smallest distances of K points on the sphere in three dimensions (Tammes' problem): octahedron,
# square antiprism, icosahedron.
TAMMES = {6: np.sqrt(2.0), 8: 1.2155625, 12: 1.0514622}


@pytest.mark.parametrize("extra", [0, 1, 4])
@pytest.mark.parametrize("K", [2, 3, 5, 10])
def test_regular_simplex(K: int, extra: int) -> None:
    # K unit vectors with equal inner products -1/(K-1) and sum zero; further dimensions stay zero
    P = simplex_points(K, K - 1 + extra)
    gram = np.full((K, K), -1.0 / (K - 1))
    np.fill_diagonal(gram, 1.0)
    np.testing.assert_allclose(P @ P.T, gram, atol=1e-12)
    np.testing.assert_allclose(P.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(P[:, K - 1 :], 0.0)


@pytest.mark.parametrize("K", [4, 5, 10])
def test_two_dimensions_give_the_regular_polygon(K: int) -> None:
    # neighbours subtend 2 pi / K, all points have norm 1
    P = simplex_points(K, 2)
    np.testing.assert_allclose(np.linalg.norm(P, axis=1), 1.0)
    np.testing.assert_allclose(np.sum(P * np.roll(P, 1, axis=0), axis=1), np.cos(2 * np.pi / K), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("K", TAMMES)
def test_points_on_the_sphere_repel_each_other(K: int) -> None:
    # no arrangement has a larger smallest distance than Tammes' bound; ours comes within 3 %
    P = simplex_points(K, 3)
    np.testing.assert_allclose(np.linalg.norm(P, axis=1), 1.0)
    closest = min(np.linalg.norm(a - b) for a, b in combinations(P, 2))
    assert 0.97 * TAMMES[K] < closest <= TAMMES[K] * (1 + 1e-6)
    np.testing.assert_array_equal(P, simplex_points(K, 3))


def test_many_points_in_few_dimensions_stay_apart() -> None:
    # 2 L points are best on both ends of L axes, sqrt(2) apart (Rankin); random ones come within 1
    P = simplex_points(60, 30)
    np.testing.assert_allclose(np.linalg.norm(P, axis=1), 1.0)
    closest = min(np.linalg.norm(a - b) for a, b in combinations(P, 2))
    assert 0.99 * np.sqrt(2.0) < closest <= np.sqrt(2.0) * (1 + 1e-6)


def test_one_dimension_is_equally_spaced() -> None:
    np.testing.assert_allclose(simplex_points(5, 1).ravel(), [-1, -0.5, 0, 0.5, 1])
    np.testing.assert_allclose(np.abs(simplex_points(2, 1)).ravel(), [1, 1])


def test_simplex_and_random_put_a_class_on_one_point() -> None:
    y = np.array([2, 0, 1, 2, 2, 0])
    Z = starting_coordinates("simplex", np.zeros((6, 4)), y, 3, 2, np.random.RandomState(0))
    np.testing.assert_array_equal(Z, simplex_points(3, 2)[y])
    R = starting_coordinates("random", np.zeros((6, 4)), y, 3, 2, np.random.RandomState(0))
    assert len(np.unique(R, axis=0)) == 3 and (R[0] == R[3]).all() and (R[0] != R[1]).any()
    other = starting_coordinates("random", np.zeros((6, 4)), y, 3, 2, np.random.RandomState(1))
    assert (other != R).all()


def test_random_centroids_have_unit_mean_square() -> None:
    # N(0, I / L): expected squared norm 1, as the corners of the simplex have
    R = starting_coordinates("random", np.zeros((4000, 1)), np.arange(4000), 4000, 5, np.random.RandomState(0))
    assert np.mean(np.sum(R**2, axis=1)) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("sparse", [False, True])
def test_principal_coordinates(sparse: bool) -> None:
    # decreasing spread, unit deviation overall, zeros beyond the rank
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [5.0, 2.0, 1.0]
    Z = starting_coordinates("pca", sp.csr_array(X) if sparse else X, np.zeros(40, int), 2, 5, np.random.RandomState(0))
    spread = Z.std(axis=0)
    rank = 2 if sparse else 3
    assert (np.diff(spread[:rank]) < 0).all() and not Z[:, rank:].any()
    assert Z[:, :rank].std() == pytest.approx(1.0)
    assert abs(np.corrcoef(Z[:, 0], X[:, 0])[0, 1]) > 0.98


def test_an_array_is_copied() -> None:
    given = np.ones((3, 2), np.float32)
    Z = starting_coordinates(given, None, np.zeros(3, int), 2, 2, np.random.RandomState(0))
    assert Z.dtype == np.float64 and not np.shares_memory(Z, given)
    np.testing.assert_array_equal(Z, given)
