"""The error without labels: right where probabilities hold, with any mix of classes; wide where little is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production.drift import Drift, Shift
from ldsvm.production.estimate import Estimate, Held, estimate, expected, new_mix, on_holdout

RULES = DriftConfig()
STILL = Shift("", 0.0, 1.0, drifted=False)
NOTHING = Drift((STILL,), STILL, STILL, ())
MIXED = replace(NOTHING, labels=Shift("predicted classes", 0.1, 1e-9, drifted=False))
SURE = Held(10**8, 10.0**8, 0.0)  # probabilities that are known to hold
PRIOR = np.array([0.5, 0.5])


def rows(n: int, share: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels, of which a share is 1, and true probabilities of two normal classes at the PRIOR."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    x = rng.normal(size=n) + 2 * y
    p = 1 / (1 + np.exp(-2 * (x - 1)))  # log ratio of N(2, 1) and N(0, 1)
    return y, np.column_stack([1 - p, p])


@pytest.mark.slow
def test_where_probabilities_hold_the_interval_has_the_error_as_often_as_it_says() -> None:
    inside = 0
    for seed in range(400):
        y, P = rows(500, 0.5, seed)
        answers = P.argmax(axis=1)
        found = estimate(expected(P, answers, PRIOR), NOTHING, RULES, SURE)
        inside += found.low <= (answers != y).mean() <= found.high
    assert 0.92 < inside / 400 < 0.98  # of 95 %; three standard deviations


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.8])
def test_another_mix_of_classes_is_found_and_its_error(share: float) -> None:
    y, P = rows(200_000, share, 1)
    answers = P.argmax(axis=1)
    found, Q = new_mix(P, PRIOR)
    assert found[1] == pytest.approx(share, abs=0.005)
    truth = P * [1 - share, share]  # Bayes' rule with the true shares
    np.testing.assert_allclose(Q, truth / truth.sum(axis=1, keepdims=True), atol=0.01)
    sums, wrong = expected(P, answers, PRIOR), (answers != y).mean()
    assert estimate(sums, MIXED, RULES, SURE).error == pytest.approx(wrong, abs=0.003)
    skewed = P.argmax(axis=1) * 0 + 1  # a rule that always answers class 1
    always = estimate(expected(P, skewed, PRIOR), MIXED, RULES, SURE).error
    assert always == pytest.approx((y == 0).mean(), abs=0.005)
    assert abs(estimate(expected(P, skewed, PRIOR), NOTHING, RULES, SURE).error - always) > 0.1


def test_the_same_mix_changes_nothing() -> None:
    _, P = rows(200_000, 0.5, 2)
    share, Q = new_mix(P, PRIOR)
    assert share == pytest.approx(PRIOR, abs=0.005)
    np.testing.assert_allclose(Q, P, atol=0.01)


def test_rows_that_judged_correct_the_estimate_and_few_of_them_widen_it() -> None:
    y, P = rows(20_000, 0.5, 3)
    answers = P.argmax(axis=1)
    sharp = P**3 / (P**3).sum(axis=1, keepdims=True)  # promises too much
    seen, new = slice(0, 10_000), slice(10_000, None)
    held = on_holdout(sharp[seen], answers[seen], int((answers != y)[seen].sum()))
    found = estimate(expected(sharp[new], answers[new], PRIOR), NOTHING, RULES, held)
    wrong = (answers != y)[new].mean()
    assert found.low < wrong < found.high and abs(found.error - wrong) < 0.01
    assert abs(estimate(expected(sharp[new], answers[new], PRIOR), NOTHING, RULES, SURE).error - wrong) > 0.05
    few = on_holdout(P[:20], answers[:20], int((answers != y)[:20].sum()))
    sums = expected(P[new], answers[new], PRIOR)
    wide, narrow = (estimate(sums, NOTHING, RULES, one) for one in (few, SURE))
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)
    assert estimate(sums, NOTHING, RULES, Held(0, 0.0, 0.0)).error == pytest.approx(narrow.error)  # no such rows


def test_sums_of_chunks_are_those_of_all_where_the_mix_is_the_same_in_each() -> None:
    _, P = rows(40_000, 0.5, 4)
    answers = P.argmax(axis=1)
    whole = expected(P, answers, PRIOR)
    parts = expected(P[:20_000], answers[:20_000], PRIOR) + expected(P[20_000:], answers[20_000:], PRIOR)
    assert parts.rows == whole.rows == 40_000 and parts.wrong == pytest.approx(whole.wrong)
    assert parts.mixed == pytest.approx(whole.mixed, rel=0.01)


def test_a_few_rows_are_taken_for_no_other_mix() -> None:
    _, P = rows(50, 0.9, 6)
    found = expected(P, P.argmax(axis=1), PRIOR)
    assert (found.mixed, found.mixed_variance) == (found.wrong, found.variance)


@pytest.mark.parametrize(
    "drift",
    [
        replace(NOTHING, latent=Shift("latent", 0.3, 0.0, drifted=True)),
        replace(NOTHING, inputs=(STILL, Shift("c0", 0.3, 0.0, drifted=True))),
    ],
)
def test_rows_unlike_the_training_make_it_doubtful(drift: Drift) -> None:
    _, P = rows(100, 0.5, 5)
    sums = expected(P, P.argmax(axis=1), PRIOR)
    assert estimate(sums, drift, RULES, SURE).doubtful
    said = estimate(sums, NOTHING, RULES, SURE)
    assert not said.doubtful and said.sentence.startswith("Error estimated without labels: ")


def test_all_of_the_rows_are_100_percent() -> None:
    assert Estimate(0.49, 0.0, 1.0, doubtful=False).sentence.endswith(": 49 % (95 % interval 0 to 100 %).")
    assert Estimate(0.0123, 0.00456, 0.999, doubtful=False).sentence.endswith(": 1.2 % (95 % interval 0.46 to 100 %).")
