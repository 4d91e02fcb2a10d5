"""Alternating optimisation without auxiliary coordinates: g and F in turn on the nested objective (e:svm-nested).

For one linear SVM (two classes) and a map F(x) = W' phi(x). With g fixed, F is the convex QP

    min_{W,xi}  lam |W|^2 + C.xi   s.t.   y_n (v.W'phi_n + b) >= 1 - xi_n,   xi >= 0

in M L weights and N slacks. Its multipliers alpha give a lower bound, which judges every answer:
alpha.(1 - y b) - |v|^2 |Phi'(alpha y)|^2 / (4 lam), reached by W = Phi'(alpha y) v' / (2 lam).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ldsvm.mac.g_step import g_step
from ldsvm.mac.problem import Problem
from ldsvm.mac.state import Info, State
from ldsvm.maps.features import BasisMap, FeatureRegression
from ldsvm.typing import Array

# Interior-point solvers of qpsolvers, the first one installed is taken; OSQP, always there, is a first-order method.
INTERIOR = ("clarabel", "piqp", "cvxopt", "ecos")
ACCURACY: dict[str, Any] = {
    "eps_abs": 1e-7,
    "eps_rel": 1e-7,
    "max_iter": 20_000,
    "polishing": True,
    "raise_error": False,
}


def solver_here(wanted: str | None = None) -> str:
    """Return the wanted back end of qpsolvers, or the first interior-point one that is installed, or OSQP.

    Raises
    ------
    ValueError : the wanted one is not installed.
    """
    import qpsolvers

    here: list[str] = qpsolvers.available_solvers
    if wanted is None:
        return next((name for name in INTERIOR if name in here), "osqp")
    if wanted not in here:
        raise ValueError(f"solver={wanted!r} is not available; allowed: {here}.")
    return wanted


@dataclass(frozen=True)
class FStep:
    """The F-step's QP for features Phi (N, M), signs y (N,), penalties C (N,), and an SVM v (L,), b."""

    Phi: Array
    y: Array
    C: Array
    lam: float
    v: Array
    b: float

    def objective(self, W: Array) -> float:
        """lam |W|^2 + sum_n C_n hinge, for W (M, L)."""
        hinge = np.maximum(0.0, 1.0 - self.y * (self.Phi @ (W @ self.v) + self.b))
        return float(self.lam * np.vdot(W, W) + self.C @ hinge)

    def bound(self, alpha: Array) -> float:
        """Return a value that no W is below, from any multipliers (N,) once they are clipped to [0, C]."""
        alpha = np.clip(alpha, 0.0, self.C)
        u = self.Phi.T @ (alpha * self.y)
        return float(alpha @ (1.0 - self.y * self.b) - (self.v @ self.v) * (u @ u) / (4.0 * self.lam))

    def solve(self, solver: str) -> tuple[Array, Array]:
        """W (M, L) and alpha (N,) by a back end of qpsolvers.

        Raises
        ------
        RuntimeError : it gave no answer.
        """
        import qpsolvers

        (N, M), L = self.Phi.shape, self.v.size
        P = sp.diags(np.r_[np.full(M * L, 2.0 * self.lam), np.zeros(N)], format="csc")
        q = np.r_[np.zeros(M * L), self.C]
        scores = sp.csc_matrix(np.kron(self.y[:, None] * self.Phi, self.v))  # of vec W, row by row
        G = sp.bmat([[-scores, -sp.eye(N)], [None, -sp.eye(N)]], format="csc")
        problem = qpsolvers.Problem(P, q, G, np.r_[self.y * self.b - 1.0, np.zeros(N)])
        accuracy = ACCURACY if solver == "osqp" else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its status is not believed anyway: the bound judges what it found
            answer = qpsolvers.solve_problem(problem, solver=solver, **accuracy)
        if answer.x is None or answer.z is None:
            raise RuntimeError(f"solver={solver!r} found no solution of the F-step with {M * L} weights.")
        return answer.x[: M * L].reshape(M, L), answer.z[:N]


def step(problem: Problem, state: State, solver: str) -> tuple[State, Info]:
    """One g-step on F(X), then one F-step; of the old and the new map the better is kept, as in the g-step.

    Info: ``gap_g`` and ``gap_f``, their relative duality gaps, ``seconds_g`` and ``seconds_f``, checks not
    counted: those of this thread at work, since steps of seconds would also count what else the machine does.
    """
    regression, mapping = problem.regression, state.mapping
    assert isinstance(regression, FeatureRegression) and isinstance(mapping, BasisMap)
    clock = time.thread_time()
    state, info = g_step(problem, replace(state, Z=state.F))
    seconds_g, clock = time.thread_time() - clock, time.thread_time()
    Phi = regression.Phi.astype(np.float64)
    f_step = FStep(Phi, problem.Y[:, 0], problem.C[:, 0], problem.lam, state.V[0], float(state.b[0]))
    W, alpha = f_step.solve(solver)
    seconds_f = time.thread_time() - clock
    W = min((mapping.W, W), key=f_step.objective)
    value = f_step.objective(W)
    gap = (value - f_step.bound(alpha)) / value if value > 0 else 0.0
    mapping = BasisMap(mapping.basis, W)
    out = {"gap_g": info["gap"], "gap_f": gap, "seconds_g": seconds_g, "seconds_f": seconds_f}
    return replace(state, mapping=mapping, F=regression.values(mapping)), out


def alternate(
    problem: Problem, state: State, solver: str, n_iter: int, time_limit: float, tell: Callable[[int], None]
) -> tuple[list[Info], State]:
    """Alternate from a state; a row of the history for each iteration, 0 is the start, and the best validated state.

    Ends after ``n_iter`` iterations, or when ``time_limit`` seconds have passed, but never before the first one.
    """
    import qpsolvers  # noqa: F401  (its import is no part of an iteration)

    nothing = {"gap_g": 0.0, "gap_f": 0.0, "seconds_g": 0.0, "seconds_f": 0.0}
    history, best = [nothing | measure(problem, state)], state
    begun = time.perf_counter()
    while len(history) <= n_iter and (len(history) == 1 or time.perf_counter() - begun < time_limit):
        tell(len(history))
        state, info = step(problem, state, solver)
        history.append(info | measure(problem, state))
        if min(history, key=lambda row: (row["valid_error"], row["nested"])) is history[-1]:
            best = state
    return history, best


def measure(problem: Problem, state: State) -> Info:
    """Nested objective, training and validation error of a state."""
    return {
        "nested": problem.nested(state.mapping, state.V, state.b, state.F),
        "train_error": problem.error(state.V, state.b, state.F),
        "valid_error": problem.validation_error(state.mapping, state.V, state.b),
    }


def lowest(problem: Problem, known: float) -> tuple[float, float]:
    """Return the least value of the nested objective over all W and g, from above and from below.

    For one SVM it is a convex problem in u = W v and b: given u and s = |v|^2 the best W is u v' / s, so the
    objective is lam |u|^2 / s + s / 2 + C hinge, jointly convex and for each s a kernel SVM. With the best s it is
    sqrt(2 lam) |u| + C hinge, and sum(alpha) is below it for any alpha with y.alpha = 0, 0 <= alpha <= C and
    |Phi'(alpha y)| <= sqrt(2 lam). known: a value that was reached; the best s is not above it.
    """
    from scipy.optimize import minimize_scalar

    assert isinstance(problem.regression, FeatureRegression)
    Phi, y, C = problem.regression.Phi.astype(np.float64), problem.Y[:, 0], problem.C[:, 0]
    gram, slope = Phi @ Phi.T, float(np.sqrt(2.0 * problem.lam))
    bounds: list[tuple[float, float]] = []

    def value(log_s: float) -> float:
        s = float(np.exp(log_s))
        alpha, margin = _kernel_svm(gram, y, C, s / slope**2)
        size = max(float(np.sqrt((alpha * y) @ gram @ (alpha * y))), 1e-300)  # |u| without its scale
        norm, hinge = slope * size * s / slope**2, float(C @ np.maximum(0.0, 1.0 - margin))
        # LIBSVM keeps the kernel in float32: what is then short of margin 1 would cost much for large C
        above = min(norm + hinge, norm / margin.min() if margin.min() > 0 else np.inf)
        bounds.append((above, float(alpha.sum()) * min(1.0, slope / size)))
        return 0.5 * (norm**2 / s + s) + hinge

    minimize_scalar(value, bounds=(np.log(known) - 15.0, np.log(known)), method="bounded", options={"xatol": 1e-4})
    return float(min(above for above, _ in bounds)), float(max(below for _, below in bounds))


def _kernel_svm(gram: Array, y: Array, C: Array, scale: float) -> tuple[Array, Array]:
    """Multipliers alpha (N,) in [0, C] and margins (N,) of the SVM with the kernel ``scale`` times the Gram matrix."""
    from sklearn.svm import SVC

    top = float(C.max())
    svm = SVC(C=top * scale, kernel="precomputed", tol=1e-6, cache_size=200).fit(gram, y, sample_weight=C / top)
    alpha = np.zeros(y.size)
    alpha[svm.support_] = np.abs(svm.dual_coef_[0]) / scale
    return alpha, y * (scale * (gram @ (alpha * y)) + svm.intercept_[0])
