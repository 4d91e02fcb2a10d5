"""Whether one model is better than another on the same rows, in any metric: the paired randomisation test.

It extends McNemar's test to any metric. If two models are equally good, it does not matter which of them gave which
of the two predictions for a row. So a coin is tossed for each row, heads exchanges the two predictions, and the
observed gain in the metric is compared with the gains after such exchanges (Noreen, "Computer-intensive methods for
testing hypotheses", 1989; for areas under ROC curves Bandos, Rockette and Gur, Stat. Med. 24, 2005). For the error,
this is McNemar's test.

The bootstrap would not do: with few rows its p values are too small. If four rows differ, all in favour of one model,
it gives 0.02 where coins give 1/16; and a class with a single row never varies. Coins resample nothing, and their
p value is valid for any number of rows.

The metric is computed twice for each row, not twice for each toss. The share of a row is half of what the gain loses
when only that row is exchanged; the gain after a toss is the sum of the shares, each with the sign of its coin. This is
exact for means over rows (also within classes) and for the area under the ROC curve, where the gain is linear in the
coins. For other metrics it is a first-order approximation, without a second-order term, since the gain changes its sign
when all rows are exchanged.

Equally good models can have asymmetric gains: an overconfident one wins a little on most rows and loses much on a few,
which a small holdout may lack. Coins assume symmetric gains. So Student's t test of the shares, with Hall's correction
for skewness (J. R. Stat. Soc. B 54, 1992), is made too, and the larger of the two p values counts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.metrics import Answers, Metric, unchecked

GROUPS = 300  # of rows that share a coin, where more rows differ: a scorer takes a millisecond
LEAST = 9_999  # tosses of all coins
FINE = 10  # smallest probability that can be found: the level divided by this
ENOUGH = 200  # tosses as good as what was found, after which no more are needed
BLOCK = 1_024
PARTS = ("predicted", "probabilities", "decisions")  # of answers, what the model says
Array = NDArray[Any]


def randomisation(metric: Metric, ours: Answers, theirs: Answers, level: float, seed: int) -> float:
    """Return the probability of a gain of `ours` over `theirs` like this one if both are equally good, one-sided.

    ours, theirs: of the same rows in the same order. level: the test's, which decides how many tosses are needed.
    Raises Undefined where the metric has no value.

    Examples
    --------
    >>> from ldsvm.metrics import metric
    >>> truth, said = np.zeros(20, dtype=int), np.repeat([1, 0], [5, 15])
    >>> ours, theirs = (Answers(np.array([0, 1]), truth, one) for one in (truth, said))
    >>> round(randomisation(metric("accuracy"), ours, theirs, 0.05, seed=0), 2)  # five tosses of a coin: 1 / 32
    0.03
    """
    random = np.random.default_rng(seed)
    with unchecked():
        ours, theirs = alike(metric, ours, theirs)
        found = shares(metric, ours, theirs, random)
    alike_rows = len(ours) - len(differing(ours, theirs))
    return max(tossed(found, level, random), corrected(np.pad(found, (0, alike_rows))))


def corrected(found: Array) -> float:
    """Return the probability of a mean of shares (n,) at least as large by Student's t, corrected for skewness.

    Examples
    --------
    >>> rare = np.array([0.1] * 19 + [-0.5])  # small gains, and a loss of which there may be more
    >>> corrected(rare) > corrected(-rare + 2 * rare.mean())
    True
    """
    from scipy.stats import t

    n, spread = len(found), float(found.std(ddof=1)) if len(found) > 1 else 0.0
    if spread == 0:
        return 0.0 if found.sum() > 0 else 1.0  # all alike: coins decide
    skew = float(((found - found.mean()) ** 3).mean()) / spread**3 / np.sqrt(n)
    x = float(found.mean()) / spread * np.sqrt(n)
    return float(t.sf(x + skew * x**2 / 3 + skew**2 * x**3 / 27 + skew / 6, n - 1))


def tossed(found: Array, level: float, random: np.random.Generator) -> float:
    """Return how probable it is that shares (m,) with random signs add up to at least what they do.

    It is the share of tosses that reach the observed sum, which itself counts as a toss, so that the test is valid for
    any number of tosses. Tossing ends once enough of them have reached it (Besag and Clifford, Biometrika 78, 1991).
    """
    least = found.sum() - 1e-9 * np.abs(found).sum()  # what is equal but for rounding counts
    n, done, hits = max(LEAST, math.ceil(FINE / level)), 0, 0
    while done < n:
        size = min(BLOCK, n - done)
        bits = np.unpackbits(random.integers(256, size=(size, -(-len(found) // 8)), dtype=np.uint8), axis=1)
        good = np.cumsum((1.0 - 2.0 * bits[:, : len(found)]) @ found >= least)
        if hits + good[-1] >= ENOUGH:
            return ENOUGH / float(done + 1 + np.searchsorted(good, ENOUGH - hits))
        done, hits = done + size, hits + int(good[-1])
    return (1 + hits) / (1 + n)


def shares(metric: Metric, ours: Answers, theirs: Answers, random: np.random.Generator) -> Array:
    """Return what each row, or group of rows, on which the models differ adds to the gain, (m,)."""
    groups = np.array_split(places := random.permutation(differing(ours, theirs)), max(1, min(GROUPS, len(places))))
    if metric.each is not None:
        gains = (metric.each(theirs) - metric.each(ours)) / len(ours)
        return np.array([gains[group].sum() for group in groups])
    whole = _gain(metric, ours, theirs)
    return np.array([(whole - _gain(metric, *exchanged(ours, theirs, group))) / 2 for group in groups])


def _gain(metric: Metric, ours: Answers, theirs: Answers) -> float:
    return metric.loss(metric.value(theirs)) - metric.loss(metric.value(ours))


def differing(ours: Answers, theirs: Answers) -> Array:
    """Return the rows for which the models do not say the same."""
    pairs = [(a, b) for a, b in zip(_parts(ours), _parts(theirs), strict=True) if a is not None]
    return np.flatnonzero(np.any([(a != b).reshape(len(ours), -1).any(axis=1) for a, b in pairs], axis=0))


def exchanged(ours: Answers, theirs: Answers, rows: Array) -> tuple[Answers, Answers]:
    """Return both with what they say of some rows exchanged."""

    def mixed(kept: Answers, other: Answers) -> Answers:
        parts = [None if part is None else part.copy() for part in _parts(kept)]
        for part, given in zip(parts, _parts(other), strict=True):
            if part is not None and given is not None:
                part[rows] = given[rows]
        return replace(kept, **dict(zip(PARTS, parts, strict=True)))  # type: ignore[arg-type]

    return mixed(ours, theirs), mixed(theirs, ours)


def _parts(answers: Answers) -> tuple[Array | None, ...]:
    return tuple(getattr(answers, name) for name in PARTS)


def alike(metric: Metric, ours: Answers, theirs: Answers) -> tuple[Answers, Answers]:
    """Return both in the same classes and, where the metric knows no scale, with ranks for the decision values.

    Decision values of two models may have different scales, so that exchanged ones could not be compared with the rest.
    A part that only one model has is left out of both.
    """
    both = [_recoded(one, np.union1d(ours.classes, theirs.classes)) for one in (ours, theirs)]
    if any(one.probabilities is None for one in both):
        both = [replace(one, probabilities=None) for one in both]
    if any(one.decisions is None for one in both):
        both = [replace(one, decisions=None) for one in both]
    elif both[0].decisions.ndim == 1:  # type: ignore[union-attr]
        from scipy.stats import rankdata

        ranked = [replace(one, decisions=rankdata(one.decisions)) for one in both]
        if all(_same(metric.value(a), metric.value(b)) for a, b in zip(both, ranked, strict=True)):
            both = ranked
    return both[0], both[1]


def _same(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-12)


def _recoded(answers: Answers, classes: Array) -> Answers:
    """Return answers with more classes, whose probability is zero."""
    if len(classes) == len(answers.classes):
        return answers
    places, probabilities = np.searchsorted(classes, answers.classes), None
    if answers.probabilities is not None:
        probabilities = np.zeros((len(answers), len(classes)))
        probabilities[:, places] = answers.probabilities
    return Answers(classes, places[answers.codes], places[answers.predicted], probabilities, costs=answers.costs)
