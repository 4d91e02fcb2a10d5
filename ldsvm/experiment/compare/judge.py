"""The one judge. Every method, ours included, is scored by this function on the same test set and the same clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ldsvm.methods import Method
from ldsvm.speed import predict_us


@dataclass(frozen=True)
class Score:
    """What the judge found on the test set.

    error, error_low, error_high: fraction of wrong predictions and its 95 % Wilson interval. n_wrong of n_test.
    n_basis: number of basis functions, None where there are none; n_basis_sum: the sum over the SVMs that share
    them. parameter_bytes: size of what a prediction needs. predict_us: microseconds per sample on one thread,
    predict_all_us: on all that the experiment may use. classes: K labels. class_errors: K fractions. confusion: K rows
    of K counts, row = true class, column = predicted class.
    """

    error: float
    error_low: float
    error_high: float
    n_wrong: int
    n_test: int
    n_basis: int | None
    n_basis_sum: int | None
    parameter_bytes: int
    predict_us: float
    predict_all_us: float
    classes: list[Any]
    class_errors: list[float]
    confusion: list[list[int]]

    @property
    def majority_error(self) -> float:
        """Fraction of test rows outside the largest class: the error of always answering that class."""
        totals = [sum(row) for row in self.confusion]
        return 1 - max(totals) / sum(totals)


def judge(fitted: Any, method: Method, X: Any, y: NDArray[Any], *, repeats: int, n_jobs: int) -> Score:
    """Score a fitted classifier on the test set X (n, D), y (n,).

    The only place that sees test data; call it once per method, after every choice is made. The speed is the median
    of `repeats` predictions of the whole set, on one thread and on n_jobs, after one that warms up caches and
    compilers.
    """
    classes = np.unique(np.concatenate([fitted.classes_, y]))
    predicted = fitted.predict(X)
    confusion = confusion_matrix(y, predicted, classes)
    totals = confusion.sum(axis=1)
    wrong = int(confusion.sum() - np.trace(confusion))
    low, high = wilson(wrong, len(y))
    return Score(
        error=wrong / len(y),
        error_low=low,
        error_high=high,
        n_wrong=wrong,
        n_test=len(y),
        n_basis=method.count(fitted),
        n_basis_sum=method.total(fitted),
        parameter_bytes=sum(_bytes(array) for array in method.arrays(fitted)),
        predict_us=(alone := predict_us(fitted, X, repeats, 1)),
        predict_all_us=alone if n_jobs == 1 else predict_us(fitted, X, repeats, n_jobs),
        classes=classes.tolist(),
        class_errors=((totals - np.diag(confusion)) / np.maximum(totals, 1)).tolist(),
        confusion=confusion.tolist(),
    )


def confusion_matrix(y: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return counts (K, K): row = true class, column = predicted class, both in the order of the sorted `classes`."""
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (np.searchsorted(classes, y), np.searchsorted(classes, predicted)), 1)
    return counts


def wilson(wrong: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of the proportion wrong / n.

    Unlike the usual p ± 2 sd it stays inside [0, 1] and does not shrink to a point at zero errors
    (Wilson 1927, J. Am. Stat. Assoc. 22, 209-212).
    """
    from scipy.stats import binomtest

    interval = binomtest(wrong, n).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def _bytes(array: Any) -> int:
    """Return the size of an array or of a sparse matrix, such as the training rows of nearest neighbours."""
    parts = [getattr(array, name) for name in ("data", "indices", "indptr")] if issparse(array) else [array]
    return sum(int(part.nbytes) for part in parts)
