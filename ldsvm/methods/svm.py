"""Support vector machines on the inputs themselves: linear and Gaussian."""

from __future__ import annotations

from typing import Any

CACHE_MB = 500  # of kernel values that libsvm keeps


def linear() -> Any:
    """Return an unfitted linear SVM, one SVM against the rest for each class (liblinear)."""
    from sklearn.svm import LinearSVC

    # The bias is penalised like a weight in liblinear; the scaling makes that penalty negligible.
    return LinearSVC(dual="auto", intercept_scaling=10.0, max_iter=20_000)


def gaussian() -> Any:
    """Return an unfitted SVM with kernel exp(-gamma |x - x'|²), one SVM for each pair of classes (libsvm)."""
    from sklearn.svm import SVC

    return SVC(kernel="rbf", cache_size=CACHE_MB)


def gaussian_one_vs_rest() -> Any:
    """Return the same with one SVM against the rest for each class, as in the paper."""
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(gaussian())
