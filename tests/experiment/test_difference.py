"""The corrected test of differences over overlapping splits: its formula, its limits, and how often it errs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp

from ldsvm.datasets.folds import cross_validated
from ldsvm.experiment.compare.difference import corrected_t


def test_by_hand() -> None:
    # differences 1, 3, 2, 2, 2: mean 2, s² = 0.5; 5 folds: n_test/n_train = 1/4, so the variance of the mean is
    # (1/5 + 1/4) 0.5 = 0.225; Student's t with 4 degrees of freedom is below 2.7764 in 97.5 % of the cases
    found = corrected_t([1, 3, 2, 2, 2], 1 / 4)
    assert found.mean == 2
    assert (found.low, found.high) == pytest.approx(
        (2 - 2.7764 * math.sqrt(0.225), 2 + 2.7764 * math.sqrt(0.225)), 1e-4
    )
    assert found.p == pytest.approx(2 * t.sf(2 / math.sqrt(0.225), 4))
    assert found.is_shown


def test_without_an_overlap_it_is_the_paired_t_test() -> None:
    apart = np.random.default_rng(0).normal(0.3, 1, size=20)
    usual, found = ttest_1samp(apart, 0), corrected_t(apart.tolist(), 0.0)
    assert found.p == pytest.approx(usual.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(usual.confidence_interval(0.95)))
    assert corrected_t(apart.tolist(), 1e-9).p == pytest.approx(usual.pvalue, rel=1e-6)
    assert corrected_t(apart.tolist(), 1 / 4).p > usual.pvalue


def test_several_comparisons_are_read_together() -> None:
    alone, one_of_three = (corrected_t([1, 3, 2, 2, 2], 1 / 4, n) for n in (1, 3))
    assert one_of_three.p == pytest.approx(3 * alone.p)
    assert one_of_three.high - one_of_three.low > alone.high - alone.low
    for found in (alone, one_of_three, corrected_t([1, 3, 2, 2, 2], 1 / 4, 4)):
        assert (found.low > 0) == found.is_shown  # the interval says the same as p
    assert corrected_t([-1, 1, 0.1], 1 / 2, 3).p == 1.0


def test_equal_differences_have_only_their_signs() -> None:
    assert corrected_t([0.0, 0.0, 0.0], 1 / 2).p == 1.0
    assert corrected_t([0.3 - 0.2, 0.1], 1.0).p == 0.5  # as rounded, these differ
    assert corrected_t([0.1] * 10, 1 / 9).p == 2 / 2**10


@pytest.mark.slow
@pytest.mark.parametrize(("n", "folds"), [(24, 2), (60, 5), (60, 10)])
def test_equal_methods_are_told_apart_in_at_most_five_per_cent(n: int, folds: int) -> None:
    # two methods that are equally good by construction: the same rule on two draws of the same inputs
    rng, y, J = np.random.default_rng(1), np.arange(n) % 2, 300
    splits = cross_validated(y, folds=folds, validation=0.25, seed=0)
    shown, usual = 0, 0
    for _ in range(J):
        errors = np.array([[_error(X, y, one) for one in splits] for X in rng.normal(size=(2, n, 3)) + y[:, None] / 2])
        apart = errors[0] - errors[1]
        shown += corrected_t(apart.tolist(), 1 / (folds - 1)).is_shown
        usual += bool(np.ptp(apart) < 1e-9 and abs(apart[0]) > 0) or corrected_t(apart.tolist(), 0.0).is_shown
    assert shown <= 0.05 * J
    assert usual > 0.05 * J  # which is why it is corrected


def _error(X: np.ndarray, y: np.ndarray, split: object) -> float:  # type: ignore[type-arg]
    """Error of the nearest of two means."""
    rest = np.concatenate([split.train, split.validation])  # type: ignore[attr-defined]
    means = [X[rest][y[rest] == k].mean(axis=0) for k in (0, 1)]
    apart = [((X[split.test] - mean) ** 2).sum(axis=1) for mean in means]  # type: ignore[attr-defined]
    return float(np.mean((apart[1] < apart[0]) != y[split.test]))  # type: ignore[attr-defined]
