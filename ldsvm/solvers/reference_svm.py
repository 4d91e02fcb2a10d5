"""Linear SVMs by scikit-learn's LIBSVM and LIBLINEAR, as references for `linear_svm`; same inputs and outputs."""

from __future__ import annotations

import warnings

import numpy as np

from ldsvm.solvers.svm_problem import Answer, one_by_one
from ldsvm.typing import Array


def solve_libsvm(Z: Array, Y: Array, C: Array, n_threads: int = 1) -> Answer:
    """`linear_svm.solve` by LIBSVM (``SVC(kernel="linear")``), problem after problem; exact but slow for large C."""

    def fit(k: int, Z: Array, y: Array, c: Array) -> Answer:
        from sklearn.svm import SVC

        top = c.max()
        svm = SVC(kernel="linear", C=top, tol=1e-6, cache_size=500).fit(Z, y, sample_weight=c / top)
        alpha = np.zeros(y.size)
        alpha[svm.support_] = np.abs(svm.dual_coef_[0])
        return svm.coef_[0], svm.intercept_, alpha

    return one_by_one(fit, Z, Y, C)


def solve_liblinear(Z: Array, Y: Array, C: Array, n_threads: int = 1) -> Answer:
    """`linear_svm.solve` by LIBLINEAR (``LinearSVC(loss="hinge")``), which also penalises the bias: approximate."""

    def fit(k: int, Z: Array, y: Array, c: Array) -> Answer:
        from sklearn.svm import LinearSVC

        top = c.max()
        # A large intercept_scaling makes the penalty on the bias small.
        svm = LinearSVC(loss="hinge", C=top, tol=1e-4, max_iter=20_000, intercept_scaling=10.0, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the caller judges the objective and keeps the better SVM
            svm.fit(Z, y, sample_weight=c / top)
        return svm.coef_[0], svm.intercept_, np.zeros(y.size)

    return one_by_one(fit, Z, Y, C)
