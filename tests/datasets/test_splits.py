"""Splits: disjoint, of the right size and proportion, and the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ldsvm.datasets import DataError, Split, balanced, mnist10, stratified
from ldsvm.datasets.splits import Indices

# Uneven classes, in an order that is no function of the class: 0 once in 10 rows, 1 thrice, 2 six times.
UNEVEN = np.tile([2, 1, 2, 2, 0, 1, 2, 2, 1, 2], 30)
# Labels with the sizes of MNIST's digits, shuffled by arithmetic (7919 is coprime with 60,000).
SIZES = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
DIGITS = np.repeat(np.arange(10), SIZES)[np.arange(60_000) * 7919 % 60_000]
TEST = np.arange(10_000) % 10


def counts(y: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> list[int]:
    return [int(count) for count in np.bincount(y[rows])]


def index(train: list[int], validation: list[int], test: list[int]) -> tuple[Indices, Indices, Indices]:
    return np.array(train, np.int64), np.array(validation, np.int64), np.array(test, np.int64)


def disjoint(*parts: np.ndarray[Any, Any]) -> bool:
    every = np.concatenate(parts)
    return len(set(every.tolist())) == len(every)


def test_stratified_by_fractions_uses_every_row_in_proportion() -> None:
    split = stratified(UNEVEN, train=0.6, validation=0.2, test=0.2, seed=3)
    assert counts(UNEVEN, split.train) == [18, 54, 108]
    assert counts(UNEVEN, split.validation) == counts(UNEVEN, split.test) == [6, 18, 36]
    assert sorted(np.concatenate([split.train, split.validation, split.test])) == list(range(300))
    assert not split.official_test


@pytest.mark.parametrize("seed", range(5))
def test_stratified_by_counts_is_within_two_rows_of_the_share(seed: int) -> None:
    y = load_digits().target
    split = stratified(y, train=797, validation=311, test=402, seed=seed)
    assert disjoint(split.train, split.validation, split.test)
    for rows, size in ((split.train, 797), (split.validation, 311), (split.test, 402)):
        assert len(rows) == size
        share = size * np.bincount(y) / len(y)
        assert np.abs(np.bincount(y[rows]) - share).max() <= 2


def test_stratified_takes_names_and_empty_parts() -> None:
    named = np.array(["even", "odd"])[UNEVEN % 2]
    split = stratified(named, train=20, validation=0, test=0.0, seed=1)
    assert (len(split.train), len(split.validation), len(split.test)) == (20, 0, 0)
    assert np.count_nonzero(named[split.train] == "odd") == 6


def test_fractions_that_round_both_up_still_fit() -> None:
    split = stratified([0, 1, 0], train=0.5, validation=0.5, test=0.0, seed=0)
    assert len(split.train) + len(split.validation) == 3


def test_mnist10_draws_from_training_and_keeps_the_test_set_whole() -> None:
    split = mnist10(DIGITS, TEST, seed=0)
    assert (len(split.train), len(split.validation)) == (10_000, 10_000)
    assert disjoint(split.train, split.validation)
    assert split.official_test and split.test.tolist() == list(range(10_000))
    # At random: each digit's share is within five standard deviations of the expected one.
    share = np.array(SIZES) / 60_000
    assert np.all(np.abs(counts(DIGITS, split.train) - 10_000 * share) < 5 * np.sqrt(10_000 * share))
    assert len(set(counts(DIGITS, split.train))) > 5, "a random draw is not balanced"


@pytest.mark.parametrize("train", [100, 500, 5_000])
def test_balanced(train: int) -> None:
    split = balanced(DIGITS, TEST, train=train, seed=8)
    assert counts(DIGITS, split.train) == [train // 10] * 10
    assert counts(DIGITS, split.validation) == [1_000] * 10
    assert disjoint(split.train, split.validation)
    assert split.official_test and len(split.test) == 10_000


def test_balanced_learning_curve_is_nested_with_one_validation_set() -> None:
    small, large = (balanced(DIGITS, TEST, train=train, seed=2) for train in (100, 3_000))
    assert set(small.train) < set(large.train)
    np.testing.assert_array_equal(small.validation, large.validation)


SPLITS: list[Callable[[int], Split]] = [
    lambda seed: stratified(UNEVEN, train=0.6, validation=0.2, test=0.2, seed=seed),
    lambda seed: mnist10(DIGITS, TEST, seed=seed),
    lambda seed: balanced(DIGITS, TEST, train=500, seed=seed),
]
DIGESTS = ["c16132a2f06e4a71", "402baf8bae1b6fa5", "6b1244c53c48c684"]


@pytest.mark.parametrize(("draw", "digest"), list(zip(SPLITS, DIGESTS, strict=True)))
def test_the_same_on_every_machine(draw: Callable[[int], Split], digest: str) -> None:
    assert draw(20_261_127).digest() == digest


@pytest.mark.parametrize("draw", SPLITS)
def test_another_seed_is_another_split(draw: Callable[[int], Split]) -> None:
    assert draw(1).digest() != draw(2).digest()


def test_digest_tells_parts_and_test_sets_apart() -> None:
    def split(train: list[int], validation: list[int], official: bool) -> str:
        return Split(*index(train, validation, [5]), official).digest()

    assert len({split([1], [2], False), split([2], [1], False), split([1, 2], [], False), split([1], [2], True)}) == 4


@pytest.mark.parametrize(
    ("train", "test", "official", "message"),
    [
        ([1, 2], [2], False, "share 1 rows"),
        ([2, 1], [4], False, "train must be sorted"),
        ([1, 1], [4], True, "train must be sorted"),
        ([1], [-1], True, "test must be sorted"),
        ([1, 3], [4], True, "The parts train, validation share 1 rows"),
    ],
)
def test_impossible_splits_are_refused(train: list[int], test: list[int], official: bool, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Split(*index(train, [3], test), official)


def test_an_official_test_set_may_reuse_row_numbers() -> None:
    assert len(Split(*index([0, 2], [1], [0, 1, 2]), True).test) == 3


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((200, 100, 1), "train=200, validation=100, test=1: .* 300 are available"),
        ((0.6, 0.3, 0.2), "train=0.6, validation=0.3, test=0.2: .* 300 are available"),
        ((0.5, 10, 10), "three counts, or three fractions"),
        ((1.5, 0, 0), "three counts, or three fractions"),
        ((True, 1, 1), "three counts, or three fractions"),
        ((float("nan"), 0.1, 0.1), "three counts, or three fractions"),
        ((10, -1, 5), "no size is negative"),
        ((0, 10, 10), "train needs at least one row"),
    ],
)
def test_bad_sizes_of_stratified(sizes: tuple[float, float, float], message: str) -> None:
    train, validation, test = sizes
    with pytest.raises(DataError, match=message):
        stratified(UNEVEN, train=train, validation=validation, test=test, seed=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mnist10(DIGITS, TEST, train=60_001, seed=0), "train=60001 is too large: 60000 rows are available"),
        (lambda: mnist10(DIGITS, TEST, train=55_000, seed=0), "validation=10000 is too large: 5000 rows"),
        (lambda: mnist10(DIGITS, TEST, train=0, seed=0), "train=0 must be a whole number of at least 1"),
        (lambda: mnist10(DIGITS, [], seed=0), r"y_test has shape \(0,\)"),
        (lambda: balanced(DIGITS, TEST, train=105, seed=0), "train=105 cannot be balanced: .* the 10 digits"),
        (lambda: balanced(DIGITS, TEST, train=100, validation=15, seed=0), "validation=15 cannot be balanced"),
        (lambda: balanced(DIGITS, TEST, train=50_000, seed=0), "take 6000 rows .* only 5421 are available of 5"),
        (lambda: balanced(DIGITS, TEST, train=100, seed=-1), "seed=-1 must be a whole number"),
        (lambda: stratified(np.eye(3), train=1, validation=1, test=1, seed=0), r"y has shape \(3, 3\)"),
    ],
)
def test_other_bad_arguments(call: Callable[[], Split], message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()
