"""The g-step: K linear SVMs on the coordinates (second term of e:svm-qp)."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ldsvm.mac.problem import Problem
from ldsvm.mac.state import Info, State
from ldsvm.solvers.svm_problem import dual_parts, objective, relative_gap
from ldsvm.typing import Array

WORST_GAP = 1e-3  # above this the exact solver tells
SVMs = tuple[Array, Array]  # V (K, L), b (K,)
SOLVERS = ("ipm", "libsvm", "liblinear")


def train(
    Z: Array, Y: Array, C: Array, solver: str, n_threads: int, start: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """V (K, L), b (K,), alpha (N, K) by the named solver; ``start`` are the SVMs of the last iteration."""
    if solver == "ipm":
        from ldsvm.solvers.linear_svm import solve

        return solve(Z, Y, C, n_threads, start)
    if solver == "libsvm":
        from ldsvm.solvers.reference_svm import solve_libsvm as chosen
    else:
        from ldsvm.solvers.reference_svm import solve_liblinear as chosen
    return chosen(Z, Y, C, n_threads)


def g_step(problem: Problem, state: State, solver: str = "ipm") -> tuple[State, Info]:
    """Minimise the penalised objective over the SVMs; of the old and the new one the better is kept, per problem.

    Info: ``gap``, the largest relative duality gap of any new SVM (1 for LIBLINEAR, which gives no multipliers).
    """
    V, b, alpha = train(state.Z, problem.Y, problem.C, solver, problem.n_threads, (state.V, state.b))
    before = objective(state.Z, state.V, state.b, problem.Y, problem.C)
    after = objective(state.Z, V, b, problem.Y, problem.C)
    gap = relative_gap(after, *dual_parts(state.Z, problem.Y, problem.C, alpha))
    if solver == "ipm":
        warn_of_gap(float(gap.max()))
    V, b = better((state.V, state.b), (V, b), before, after)
    return replace(state, V=V, b=b), {"gap": float(gap.max())}


def better(old: SVMs, new: SVMs, before: Array, after: Array) -> SVMs:
    """Of each problem's old and new SVM return the one whose objective, before and after (K,), is lower."""
    fell = after <= before
    return np.where(fell[:, None], new[0], old[0]), np.where(fell, new[1], old[1])


def warn_of_gap(gap: float) -> None:
    """Warn when the exact solver has not reached the optimum."""
    if gap > WORST_GAP:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"The g-step ended with a relative duality gap of {gap:.1e}, above {WORST_GAP:g}, and kept the better of "
            "the old and the new SVM: scale the features, or lower C.",
            ConvergenceWarning,
            stacklevel=3,
        )
