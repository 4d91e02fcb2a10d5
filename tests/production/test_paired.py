"""The paired randomisation test: it is McNemar's of the error, exact for sums over rows and areas, and honest."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

from ldsvm.metrics import Answers, Metric, Undefined, metric
from ldsvm.production.gate import level, mcnemar
from ldsvm.production.paired import alike, corrected, differing, exchanged, randomisation, shares, tossed

CLASSES = np.array(["no", "yes"])


def pair(n: int, seed: int, better: float = 0.0, scale: float = 1.0) -> tuple[Answers, Answers]:
    """Two models with the same kind of noise, of which the first sees the truth better by so much."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    y[:2] = 0, 1
    shared = rng.normal(size=n)
    scores = [(2 + gain) * y - 1 + 0.8 * shared + 0.6 * rng.normal(size=n) for gain in (better, 0.0)]
    p = [1 / (1 + np.exp(-2 * s)) for s in scores]
    return tuple(  # type: ignore[return-value]
        Answers(CLASSES, y, (s > 0).astype(int), np.column_stack([1 - q, q]), s * k)
        for s, q, k in zip(scores, p, (1.0, scale), strict=True)
    )


def gain(name: str, ours: Answers, theirs: Answers) -> float:
    one = metric(name)
    return one.loss(one.value(theirs)) - one.loss(one.value(ours))


def test_of_the_error_the_coins_are_mcnemars() -> None:
    truth = np.zeros(40, dtype=int)
    for wins, losses in ((5, 0), (9, 3), (4, 6)):
        ours, theirs = (Answers(CLASSES, truth, np.zeros(40, dtype=int)) for _ in range(2))
        theirs.predicted[:wins] = 1
        ours.predicted[wins : wins + losses] = 1
        rng = np.random.default_rng(0)
        for name in ("error", "accuracy"):  # a mean over rows, and a scorer of scikit-learn, row by row
            found = shares(metric(name), ours, theirs, rng)
            assert sorted(np.round(40 * found)) == [-1] * losses + [1] * wins
            p = tossed(found, 1e-5, rng)  # asks for up to a million tosses
            assert p == pytest.approx(mcnemar(wins, losses), rel=0.2)  # 200 hits are known to 7 %


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log_loss", "brier", "balanced_accuracy", "roc_auc"])
def test_whatever_rows_are_exchanged_the_gain_is_the_sum_of_their_shares(name: str) -> None:
    # all 2^6 exchanges: with this the tosses count what a permutation test with the metric itself would
    ours, theirs = alike(metric(name), *pair(6, 3, better=0.5))
    assert sorted(np.bincount(ours.codes)) == [2, 4]
    rows = differing(ours, theirs)
    found = np.zeros(6)
    order = np.random.default_rng(0).permutation(rows)
    found[order] = shares(metric(name), ours, theirs, np.random.default_rng(0))
    for coins in product([1, -1], repeat=6):
        signs = np.array(coins)
        swapped = exchanged(ours, theirs, np.flatnonzero(signs < 0))
        assert gain(name, *swapped) == pytest.approx(signs @ found, abs=1e-12)


@pytest.mark.slow
def test_of_other_metrics_the_sum_is_close() -> None:
    ours, theirs = pair(200, 0, better=1.0)
    found = shares(metric("f1"), ours, theirs, np.random.default_rng(0))
    assert found.sum() == pytest.approx(gain("f1", ours, theirs), rel=0.05)


def test_many_rows_share_coins_and_give_about_the_same() -> None:
    ours, theirs = pair(700, 1, better=0.05)
    found = shares(metric("roc_auc"), ours, theirs, np.random.default_rng(0))
    assert len(found) == 300
    assert found.sum() == pytest.approx(gain("roc_auc", ours, theirs), rel=1e-9)
    each = shares(metric("log_loss"), ours, theirs, np.random.default_rng(0))
    assert each.sum() == pytest.approx(gain("log_loss", ours, theirs), rel=1e-9)


def test_four_rows_and_the_only_row_of_a_class_are_no_evidence() -> None:
    # where a bootstrap's standard error makes 0.02 of four rows, and nothing of a class that never varies
    truth = np.array([0] * 40 + [1])
    ours, theirs = (Answers(CLASSES, truth, truth.copy()) for _ in range(2))
    theirs.predicted[:4] = 1
    assert randomisation(metric("accuracy"), ours, theirs, 0.025, 0) == pytest.approx(1 / 16, rel=0.2)
    theirs.predicted[:] = [*[0] * 40, 0]
    assert gain("balanced_accuracy", ours, theirs) == 0.5
    assert randomisation(metric("balanced_accuracy"), ours, theirs, 0.025, 0) == pytest.approx(0.5, rel=0.2)
    assert randomisation(metric("accuracy"), ours, ours, 0.025, 0) == 1


def test_the_smallest_probability_follows_the_level_and_the_seed_decides() -> None:
    strong = np.ones(40)
    rng = np.random.default_rng
    assert tossed(strong, 0.025, rng(0)) == pytest.approx(1e-4) and tossed(strong, 1e-5, rng(0)) < 2e-6
    few = np.array([1.0] * 9 + [-1.0])
    assert tossed(few, 0.025, rng(1)) == tossed(few, 0.025, rng(1))
    exact = sum(comb(10, k) for k in (9, 10)) / 2**10
    assert tossed(few, 0.025, rng(1)) == pytest.approx(exact, rel=0.3)


def test_scales_of_decision_values_do_not_matter_to_an_area() -> None:
    same = [randomisation(metric("roc_auc"), *pair(150, 2, better=0.4, scale=k), 0.025, 0) for k in (1.0, 50.0)]
    assert same[0] == same[1] < 0.2


def test_a_class_that_one_model_lacks_and_probabilities_that_one_lacks() -> None:
    ours, theirs = pair(60, 0, better=1.0)
    more = Answers(
        np.array(["no", "perhaps", "yes"]), 2 * theirs.codes, 2 * theirs.predicted,
        np.insert(theirs.needed, 1, 0.0, axis=1),
    )  # fmt: skip
    level_ = 0.025
    wanted = randomisation(metric("log_loss"), ours, theirs, level_, 0)
    assert randomisation(metric("log_loss"), ours, more, level_, 0) == pytest.approx(wanted)
    bare = Answers(theirs.classes, theirs.codes, theirs.predicted, None, theirs.decisions)
    assert 0 < randomisation(metric("roc_auc"), ours, bare, level_, 0) < 1
    with pytest.raises(Undefined, match="gives no probabilities"):
        randomisation(metric("log_loss"), ours, bare, level_, 0)


def test_rare_large_losses_make_a_gain_less_probable_than_coins_say() -> None:
    # the exact value of a mean of normal shares is Student's; skewness against the gain raises the probability
    rng = np.random.default_rng(0)
    plain = rng.normal(0.2, 1, 50)
    assert corrected(np.r_[plain, 0.4 - plain]) == pytest.approx(
        tossed(np.r_[plain, 0.4 - plain], 0.01, rng), rel=0.3, abs=0.005
    )
    skewed = 0.4 - rng.exponential(0.3, 60)
    assert corrected(skewed) > 1.5 * tossed(skewed, 0.001, rng)


def promoted(here: Metric, looks: int, runs: int, better: float = 0.0, step: int = 25) -> float:
    """Return how often one of so many looks promotes, each on the rows of the one before and some more."""
    found = 0
    for run in range(runs):
        both = pair(step * looks, run, better)
        for look in range(1, looks + 1):
            seen = [one.take(np.arange(step * look)) for one in both]
            allowed = level(0.95, look)
            if randomisation(here, *seen, allowed, run) <= allowed:
                found += 1
                break
    return found / runs


@pytest.mark.slow
def test_looks_at_growing_rows_promote_equally_good_models_in_five_per_cent_of_the_cases_at_most() -> None:
    assert promoted(metric("log_loss"), 8, 120) <= 0.05
    assert promoted(metric("roc_auc"), 3, 30) <= 0.05


@pytest.mark.slow
def test_a_model_that_is_truly_better_gets_through() -> None:
    assert promoted(metric("log_loss"), 8, 30, better=2.5) > 0.8
    assert promoted(metric("roc_auc"), 3, 20, better=2.5) > 0.8
