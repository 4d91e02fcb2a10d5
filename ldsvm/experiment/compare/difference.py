"""The difference between two methods over several splits of the same rows, with a test that knows that these overlap.

Training sets of different splits share most of their rows, so that the differences on J splits are not independent, and
the variance of their mean is not s²/J: the ordinary paired t-test finds differences where there are none. Nadeau and
Bengio (2003, Machine Learning 52, 239-281) put (1/J + n_test/n_train) s² in its place, as if two splits were correlated
by the share of rows that they test. The Bayesian test of Benavoli et al. (2017, JMLR 18, 77) has this t-distribution as
its posterior, so the interval of one comparison is its credible interval too; beyond that, it has to be told below
which size a difference does not matter, which only the user knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

LEVEL, ROUNDING = 0.05, 1e-9


@dataclass(frozen=True)
class Difference:
    """The mean difference over the splits, the ends of its 95 % interval, and the p-value of no difference."""

    mean: float
    low: float
    high: float
    p: float

    @property
    def is_shown(self) -> bool:
        """Whether there is a difference, by a test that errs in 5 % of the cases where there is none."""
        return self.p < LEVEL


def corrected_t(differences: Sequence[float], test_ratio: float, comparisons: int = 1) -> Difference:
    """Return the corrected resampled t-test of the differences (J,) on at least two splits.

    test_ratio: test rows of a split over the rows that its models were made from. comparisons: how many such tests are
    read together; p and interval are then for all of them (Bonferroni). Where all differences are equal, as on a few
    small folds they can be by chance, they have no variance, and p is that of their signs, 2 / 2^J.

    Examples
    --------
    >>> found = corrected_t([0.01, 0.03, 0.02, 0.02, 0.02], test_ratio=1 / 4)
    >>> round(found.mean, 4), round(found.low, 4), round(found.high, 4), round(found.p, 4)
    (0.02, 0.0068, 0.0332, 0.0135)
    """
    from scipy.stats import t

    J, mean = len(differences), fmean(differences)
    if max(differences) - min(differences) <= ROUNDING * abs(mean):
        return Difference(mean, mean, mean, min(1.0, comparisons * 2 / 2**J) if mean else 1.0)
    error = math.sqrt((1 / J + test_ratio) * variance(differences, mean))
    half = error * float(t.isf(LEVEL / (2 * comparisons), J - 1))
    p = min(1.0, comparisons * 2 * float(t.sf(abs(mean) / error, J - 1)))
    return Difference(mean, mean - half, mean + half, p)
