"""Support vector machines on the inputs themselves: linear and Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np


def linear() -> Any:
    """Return an unfitted linear SVM, one machine against the rest for each class (liblinear)."""
    from sklearn.svm import LinearSVC

    # The bias is penalised like a weight in liblinear; the scaling makes that penalty negligible.
    return LinearSVC(dual="auto", intercept_scaling=10.0, max_iter=20_000)


def gaussian() -> Any:
    """Return an unfitted SVM with kernel exp(-gamma ||x - x'||²), one machine for each pair of classes (libsvm)."""
    from sklearn.svm import SVC

    return SVC(kernel="rbf", cache_size=500)


def count_linear(fitted: Any) -> None:
    """A linear SVM has no basis functions; tables show a dash."""


def count_gaussian(fitted: Any) -> int:
    """Count distinct support vectors.

    The paper sums the vectors of K one-against-all machines, which counts a shared vector several times. libsvm
    trains one machine per pair of classes on a shared list, and the length of that list is what a prediction costs.
    """
    return int(fitted.n_support_.sum())


def arrays_linear(fitted: Any) -> list[np.ndarray]:
    """Return what a prediction needs: weights (K, D) and biases (K,)."""
    return [fitted.coef_, fitted.intercept_]


def arrays_gaussian(fitted: Any) -> list[np.ndarray]:
    """Return what a prediction needs: support vectors (M, D), their weights (K - 1, M) and biases."""
    return [fitted.support_vectors_, fitted.dual_coef_, fitted.intercept_]
