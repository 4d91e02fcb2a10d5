"""The one judge. Every method, ours included, is scored by this function on the same test set and the same clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.baselines import Method


@dataclass(frozen=True)
class Score:
    """What the judge found on the test set.

    error, error_low, error_high: fraction of wrong predictions and its 95 % Wilson interval. n_wrong of n_test.
    n_basis: number of basis functions, None where there are none. parameter_bytes: size of what a prediction needs.
    predict_us: microseconds per sample. classes: K labels. class_errors: K fractions. confusion: K rows of K counts,
    row = true class, column = predicted class.
    """

    error: float
    error_low: float
    error_high: float
    n_wrong: int
    n_test: int
    n_basis: int | None
    parameter_bytes: int
    predict_us: float
    classes: list[Any]
    class_errors: list[float]
    confusion: list[list[int]]


def judge(fitted: Any, method: Method, X: NDArray[Any], y: NDArray[Any], *, repeats: int) -> Score:
    """Score a fitted classifier on the test set X (n, D), y (n,).

    The only place that sees test data; call it once per method, after every choice is made. The speed is the median
    of `repeats` predictions of the whole set on one thread, after one that warms up caches and compilers.
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
        parameter_bytes=sum(int(array.nbytes) for array in method.arrays(fitted)),
        predict_us=_predict_us(fitted, X, repeats),
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


@contextmanager
def _one_thread(fitted: Any) -> Iterator[None]:
    """Hold predictions to one thread: not every method can use more, and waiting threads would time the machine."""
    from threadpoolctl import threadpool_limits

    given = {key: value for key, value in fitted.get_params(deep=False).items() if key == "n_jobs"}
    fitted.set_params(**dict.fromkeys(given, 1))
    try:
        with threadpool_limits(1):
            yield
    finally:
        fitted.set_params(**given)


def _predict_us(fitted: Any, X: NDArray[Any], repeats: int) -> float:
    times = []
    with _one_thread(fitted):
        for _ in range(repeats):
            start = time.perf_counter()
            fitted.predict(X)
            times.append(time.perf_counter() - start)
    return float(np.median(times)) / len(X) * 1e6
