"""Linear SVMs by scikit-learn's LIBSVM and LIBLINEAR, as references for `linear_svm`; same inputs and outputs."""

from __future__ import annotations

import warnings

import numpy as np

from ldsvm.solvers.svm_problem import Machines, one_by_one
from ldsvm.typing import Array


def solve_libsvm(Z: Array, Y: Array, C: Array, n_threads: int = 1) -> Machines:
    """`linear_svm.solve` by LIBSVM (``SVC(kernel="linear")``), problem after problem; exact but slow for large C."""

    def fit(k: int, Z: Array, y: Array, c: Array) -> Machines:
        from sklearn.svm import SVC

        top = c.max()
        machine = SVC(kernel="linear", C=top, tol=1e-6, cache_size=500).fit(Z, y, sample_weight=c / top)
        alpha = np.zeros(y.size)
        alpha[machine.support_] = np.abs(machine.dual_coef_[0])
        return machine.coef_[0], machine.intercept_, alpha

    return one_by_one(fit, Z, Y, C)


def solve_liblinear(Z: Array, Y: Array, C: Array, n_threads: int = 1) -> Machines:
    """`linear_svm.solve` by LIBLINEAR (``LinearSVC(loss="hinge")``), which also penalises the bias: approximate."""

    def fit(k: int, Z: Array, y: Array, c: Array) -> Machines:
        from sklearn.svm import LinearSVC

        top = c.max()
        # A large intercept_scaling makes the penalty on the bias small.
        machine = LinearSVC(loss="hinge", C=top, tol=1e-4, max_iter=20_000, intercept_scaling=10.0, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the caller judges the objective and keeps the better machine
            machine.fit(Z, y, sample_weight=c / top)
        return machine.coef_[0], machine.intercept_, np.zeros(y.size)

    return one_by_one(fit, Z, Y, C)
