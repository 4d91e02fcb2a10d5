"""The Z-step: one small QP per row, independent over rows (e:svm-optZ, e:svm-optZm)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ldsvm.mac.problem import Problem
from ldsvm.mac.state import Info, State
from ldsvm.solvers.svm_problem import hinges
from ldsvm.typing import Array

Solver = Callable[..., tuple[Array, Array]]


def solver_by_name(name: str) -> Solver:
    """ "batched" (exact, all rows at once), "osqp" (one workspace per class) or any back end of qpsolvers.

    Raises
    ------
    ValueError : no such solver here.
    """
    if name == "batched":
        from ldsvm.solvers.box_qp import solve

        return solve
    from ldsvm.solvers.qp_routes import solve_any, solve_osqp

    if name == "osqp":
        return solve_osqp
    import qpsolvers

    back_end = name.removeprefix("qpsolvers:")
    if back_end not in qpsolvers.available_solvers:
        known = ["batched", "osqp", *(f"qpsolvers:{s}" for s in qpsolvers.available_solvers)]
        raise ValueError(f"z_solver={name!r} is not available; allowed: {known}.")
    return partial(solve_any, solver=back_end)


@dataclass(frozen=True)
class Following:
    """The exact Z-step of any rows for SVMs V (K, L), b (K,): see `ldsvm.maps.base.Follower`."""

    problem: Problem
    V: Array
    b: Array
    mu: float

    def __call__(self, rows: Any, F: Array) -> Array:
        from ldsvm.solvers.box_qp import solve

        problem = self.problem
        upper = penalties(problem.C[rows], self.mu, problem.weight[rows])
        return solve(F, self.V, self.b, problem.Y[rows], upper, n_threads=problem.n_threads)[0]

    def hinges(self, Z: Array) -> float:
        problem = self.problem
        return float(hinges(Z, self.V, self.b, problem.Y, problem.C).sum())


def penalties(C: Array, mu: float, weight: Array | float = 1.0) -> Array:
    """Return c_nk = 2 C_nk / mu (n, K): a row's weight (n,) is in its hinge and in its distance, so it cancels."""
    upper: Array = 2.0 * C / (mu * np.reshape(weight, (-1, 1)))
    return upper


def z_step(problem: Problem, state: State, solver: str = "batched") -> tuple[State, Info]:
    """Minimise the penalised objective over Z.

    Info: ``kkt``, the largest residual of any row, computed from the answer and not from the solver's status.
    """
    from ldsvm.solvers.box_qp import residual

    upper = penalties(problem.C, state.mu, problem.weight)
    Z, alpha = solver_by_name(solver)(
        state.F, state.V, state.b, problem.Y, upper, state.alpha, n_threads=problem.n_threads
    )
    kkt = residual(Z, alpha, state.V, state.b, problem.Y, upper)
    return replace(state, Z=Z, alpha=alpha), {"kkt": float(np.max(kkt, initial=0.0))}
