"""Measures of collapse: known values, and what they must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from ldsvm.mac.start import simplex_points
from ldsvm.report.studies.collapse import from_simplex, least_from_simplex, within_to_between


@pytest.mark.parametrize("K", [2, 3, 6])
def test_classes_that_are_corners_of_a_simplex_have_collapsed_entirely(K: int) -> None:
    y = np.repeat(np.arange(K), 3)
    Z = simplex_points(K, K + 1)[y]
    assert within_to_between(Z, y) == pytest.approx(0, abs=1e-12)
    assert from_simplex(Z, y) == pytest.approx(0, abs=1e-12)


def test_points_anywhere_are_no_spread_within_classes() -> None:
    y = np.array([0, 0, 1, 1, 2, 2])
    Z = np.array([[0.0, 3.0], [1.0, -2.0], [7.0, 0.5]])[y]
    assert within_to_between(Z, y) == 0
    assert from_simplex(Z, y) > 0.1


def test_the_measures_of_three_uneven_classes_are_those_worked_out_by_hand() -> None:
    y = np.array([0, 0, 1, 1, 2, 2])
    Z = np.array([[-0.5, 0.0], [0.5, 0.0], [3.0, -1.0], [3.0, 1.0], [0.0, 6.0], [0.0, 6.0]])
    # Means (0, 0), (3, 0), (0, 6), their mean (1, 2): S_B = [[2, -2], [-2, 8]], its inverse [[2/3, 1/6], [1/6, 1/6]];
    # S_W = diag(1/12, 1/3): the trace of the product is 1/18 + 1/18.
    assert within_to_between(Z, y) == pytest.approx(1 / 27)
    gram = np.array([[5.0, 2, -7], [2, 8, -10], [-7, -10, 17]])
    simplex = np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    # |gram|^2 = 378 + 306 = 684, |simplex|^2 = 18, their product 10 - 2 + 7 - 2 + 16 + 10 + 7 + 10 + 34 = 90
    assert np.sum(gram * simplex) == 90
    assert from_simplex(Z, y) == pytest.approx(np.sqrt(2 - 2 * 90 / np.sqrt(684 * 18)))


@pytest.mark.parametrize("measure", [within_to_between, from_simplex])
def test_the_measures_do_not_change_with_place_size_and_rotation(measure: object) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 10)
    Z = rng.normal(size=(4, 5))[y] + 0.3 * rng.normal(size=(40, 5))
    turned = 7.0 + 0.01 * Z @ ortho_group.rvs(5, random_state=1)
    assert callable(measure)
    assert measure(turned, y) == pytest.approx(measure(Z, y), rel=1e-9)


def test_empty_dimensions_count_for_nothing() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 10)
    Z = rng.normal(size=(3, 2))[y] + 0.3 * rng.normal(size=(30, 2))
    padded = np.column_stack([Z, np.zeros((30, 4))])
    assert within_to_between(padded, y) == pytest.approx(within_to_between(Z, y))


def test_classes_in_one_place_are_infinitely_spread_and_no_shape() -> None:
    y = np.array([0, 0, 1, 1])
    Z = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    assert within_to_between(Z, y) == np.inf
    assert np.isnan(from_simplex(Z, y))


@pytest.mark.parametrize(("K", "L"), [(3, 1), (4, 2), (6, 4)])
def test_few_dimensions_cannot_come_closer_to_a_simplex_than_the_bound(K: int, L: int) -> None:
    y = np.arange(K)
    # a projection of the simplex attains it, other points stay above
    shadow = np.linalg.svd(simplex_points(K, K - 1))[0][:, :L]
    assert from_simplex(shadow, y) == pytest.approx(least_from_simplex(K, L))
    others = np.random.default_rng(0).normal(size=(50, K, L))
    assert min(from_simplex(points, y) for points in others) >= least_from_simplex(K, L) - 1e-12
    assert least_from_simplex(K, K - 1) == least_from_simplex(K, K + 3) == 0
