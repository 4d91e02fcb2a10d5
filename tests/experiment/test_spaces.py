"""Grids and random points: how they are distributed, their types, and that a seed decides them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from ldsvm.experiment.config.spaces import Range, Space, draw, grid

UNIT = Range(uniform=[0, 1])  # beside whole numbers it keeps points apart


def values(of: Range, n: int = 2000, seed: int = 3) -> list[float]:
    return [point["k"] for point in draw({"k": of, "u": UNIT}, n, seed)]


def test_grid_is_every_combination_in_the_order_of_the_file() -> None:
    points = grid({"gamma": [0.1, 1.0], "C": [1.0, 10.0, 100.0]})
    assert [(p["gamma"], p["C"]) for p in points] == [
        (0.1, 1.0), (0.1, 10.0), (0.1, 100.0), (1.0, 1.0), (1.0, 10.0), (1.0, 100.0),
    ]  # fmt: skip
    assert [list(p) for p in points] == [["gamma", "C"]] * 6
    assert grid({}) == [{}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "law"),
    [
        (Range(log_uniform=[1e-3, 10]), stats.loguniform(1e-3, 10)),
        (Range(uniform=[-2, 3]), stats.uniform(-2, 5)),
    ],
)
def test_numbers_are_distributed_as_their_range_says(of: Range, law: object) -> None:
    found = values(of)
    assert stats.kstest(found, law.cdf).pvalue > 0.01  # type: ignore[attr-defined]
    assert of.ends[0] <= min(found) and max(found) <= of.ends[1]
    assert {type(v) for v in found} == {float}


@pytest.mark.slow
@pytest.mark.parametrize("log", [False, True])
def test_whole_numbers_have_their_share_at_both_ends_too(log: bool) -> None:
    of = Range(log_uniform_int=[1, 6]) if log else Range(uniform_int=[1, 6])
    found = values(of)
    # What rounds to k lies between k - 1/2 and k + 1/2, of the whole from 1/2 to 13/2.
    shares = [math.log((k + 0.5) / (k - 0.5)) / math.log(13) if log else 1 / 6 for k in range(1, 7)]
    assert {type(v) for v in found} == {int}
    counts = np.bincount(found, minlength=7)[1:]
    assert stats.chisquare(counts, np.array(shares) * len(found)).pvalue > 0.01


def test_a_range_of_two_whole_numbers_reaches_both() -> None:
    assert set(values(Range(uniform_int=[-1, 0]), 50)) == {-1, 0}
    assert set(values(Range(log_uniform_int=[799, 800]), 50)) == {799, 800}


def test_no_rounding_leaves_the_ends() -> None:
    of = Range(log_uniform=[0.1, 0.3])
    assert (of.value(np.nextafter(0.1, 0)), of.value(np.nextafter(0.3, 1)), of.value(0.2)) == (0.1, 0.3, 0.2)
    assert [Range(uniform_int=[2, 5]).value(drawn) for drawn in (1.5, 5.5, 2.51)] == [2, 5, 3]


MIXED: Space = {"n": Range(log_uniform_int=[50, 800]), "C": [1, "a", None], "alpha": Range(uniform=[0.1, 0.9])}


def test_the_seed_decides_the_points_and_more_of_them_begin_with_the_same() -> None:
    points = draw(MIXED, 20, seed=5)
    assert draw(MIXED, 20, seed=5) == points == draw(MIXED, 30, seed=5)[:20]
    assert not {json.dumps(p) for p in points} & {json.dumps(p) for p in draw(MIXED, 20, seed=6)}
    assert [list(p) for p in points] == [["n", "C", "alpha"]] * 20
    assert {p["C"] for p in points} == {1, "a", None}
    assert json.loads(json.dumps(points)) == points  # plain values


def test_points_of_lists_are_never_repeated_and_at_most_the_grid() -> None:
    space: Space = {"gamma": [0.1, 0.2, 0.3, 0.4], "C": [1, 2, 3, 4, 5]}
    whole = {json.dumps(p) for p in grid(space)}
    for n, size in ((7, 7), (20, 20), (100, 20)):
        found = [json.dumps(p) for p in draw(space, n, seed=0)]
        assert len(found) == len(set(found)) == size
        assert set(found) <= whole
    assert draw({}, 5, seed=0) == [{}]


def test_points_of_few_whole_numbers_are_not_repeated_either() -> None:
    found = [point["k"] for point in draw({"k": Range(uniform_int=[1, 3])}, 50, seed=0)]
    assert sorted(found) == [1, 2, 3]
