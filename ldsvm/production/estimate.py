"""The error of a model on rows without labels, estimated from its own probabilities.

If probabilities are calibrated, a prediction is wrong with probability 1 - p, where p is that of the predicted class,
so the mean of 1 - p is the expected error (confidence-based performance estimation, as in NannyML). This needs no
labels, but p(y | x) must be the same as in training. If only the class proportions have changed, p(y | x) changes in a
known way: each class is weighted by its new share over its old one, and the new shares are found by maximum likelihood
(Saerens, Latinne and Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities", 2002). For
other changes nothing can be estimated; the comparison of inputs and latent distances detects them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production.drift import Drift, Profile

Floats = NDArray[np.float64]
NORMAL = 1.96  # standard deviations on each side of an interval of 95 %
FEWEST = 200  # rows that show a mix of classes; of fewer the likeliest mix is mostly chance
STEPS, SMALL = 100, 1e-6  # of the new shares: at most so many, and until they move less


@dataclass(frozen=True)
class Expected:
    """Sums over rows, which add up: of the probability q that the answer is wrong, and of its variance q (1 - q).

    mixed, mixed_variance: the same, if the mix of the classes alone had changed.
    """

    rows: int
    wrong: float
    variance: float
    mixed: float
    mixed_variance: float

    def __add__(self, other: Expected) -> Expected:
        """Return the sums over both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Expected(*(one + another for one, another in pairs))


@dataclass(frozen=True)
class Held:
    """On the rows that judged a model: how many answers were wrong, how many were expected to be, and its variance."""

    wrong: int
    expected: float
    variance: float


@dataclass(frozen=True)
class Estimate:
    """An error that was estimated. low, high: 95 % interval, which holds unless it is doubtful."""

    error: float
    low: float
    high: float
    doubtful: bool

    @property
    def sentence(self) -> str:
        """The error with its interval; no figure if the estimate is doubtful, since it would be too low."""
        if self.doubtful:
            return "No error is estimated: these rows are unlike the training data, so the probabilities may be wrong."
        error, low, high = (f"{float(f'{100 * share:.2g}'):g}" for share in (self.error, self.low, self.high))
        return f"Error estimated without labels: {error} % (95 % interval {low} to {high} %)."

    def numbers(self, name: str) -> dict[str, float]:
        """Return what the tracking store shows, in per cent, by names that begin with this one; none where doubtful."""
        if self.doubtful:
            return {}
        parts = {"": self.error, "_low": self.low, "_high": self.high}
        return {f"{name}{part}_percent": 100 * share for part, share in parts.items()}


def expected(P: Floats, answers: NDArray[np.integer], prior: Floats) -> Expected:
    """Return the sums over rows with probabilities P (n, K) and answers (n,), places of classes.

    prior: shares (K,) of the classes in training.

    Examples
    --------
    >>> found = expected(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]), np.array([0.5, 0.5]))
    >>> found.rows, round(found.wrong, 2)
    (2, 0.3)
    """
    mixed_P = new_mix(P, prior)[1] if len(P) >= FEWEST else P
    plain, mixed = (_wrong(Q, answers) for Q in (P, mixed_P))
    sums = (float(part.sum()) for q in (plain, mixed) for part in (q, q * (1.0 - q)))
    return Expected(len(P), *sums)


def _wrong(P: Floats, answers: NDArray[np.integer]) -> Floats:
    found: Floats = 1.0 - P[np.arange(len(P)), answers]
    return found


def new_mix(P: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return the likeliest shares (K,) of the classes, and the probabilities (n, K) with them.

    The algorithm of Saerens, Latinne and Decaestecker (2002), equations 2.9: expectation and maximization by turns.
    """
    prior = np.maximum(prior, 1e-12)
    share = prior
    for _ in range(STEPS):
        weighted = P * (share / prior)
        weighted /= np.maximum(weighted.sum(axis=1, keepdims=True), 1e-300)
        share, before = weighted.mean(axis=0), share
        if np.abs(share - before).max() < SMALL:
            break
    return share, weighted


def estimate(found: Expected, drift: Drift, rules: DriftConfig, held: Held) -> Estimate:
    """Return the error of rows as they were counted, given how they differ from the training.

    held: the same sums for the rows that judged the model. The ratio of wrong answers to expected ones there corrects
    the estimate, and its variance widens the interval; one row is added to both, so that a few rows change little.
    """
    mixed = drift.labels.p <= rules.false_discovery_rate and not drift.latent.drifted
    wrong, variance = (found.mixed, found.mixed_variance) if mixed else (found.wrong, found.variance)
    mean, ratio = wrong / found.rows, (held.wrong + 1) / (held.expected + 1)
    half = NORMAL * sqrt(ratio * variance / found.rows**2 + mean**2 * held.variance / (held.expected + 1) ** 2)
    error = min(1.0, ratio * mean)
    unlike = drift.latent.drifted or drift.share > 0
    return Estimate(error, max(0.0, error - half), min(1.0, error + half), doubtful=unlike)


def on_holdout(P: Floats, answers: NDArray[np.integer], n_wrong: int) -> Held:
    """Return the sums over rows with known labels, of which so many are answered wrongly."""
    wrong = _wrong(P, answers)
    return Held(n_wrong, float(wrong.sum()), float((wrong * (1.0 - wrong)).sum()))


def prior_of(then: Profile, classes: NDArray[np.generic]) -> Floats:
    """Return the shares (K,) of the classes in a training."""
    counts = np.array([then.classes.get(str(name), 0) for name in classes.tolist()], dtype=np.float64)
    return counts / max(counts.sum(), 1.0)
