"""The Z-step through general QP solvers, as references: OSQP with one workspace per class, qpsolvers row by row.

Both solve the paper's form in (z, xi) (e:svm-optZ, e:svm-optZm):

    min |z - f|^2 + c.xi   s.t.   y_k (V_k.z + b_k) + xi_k >= 1,   xi >= 0

and have the signature of `box_qp.solve`, so that a row's answer can be judged by `box_qp.residual`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ldsvm.typing import Array

# OSQP's own defaults (1e-3) are far too loose for targets that feed a regression.
ACCURACY = {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 20_000, "polishing": True, "verbose": False}


def _patterns(Y: Array, upper: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Rows that share their SVMs and signs, hence their constraint matrix: (rows, SVMs, signs)."""
    keys, inverse = np.unique(np.where(upper > 0, Y, 0.0), axis=0, return_inverse=True)
    for i, key in enumerate(keys):
        svms = np.flatnonzero(key)
        yield np.flatnonzero(inverse.ravel() == i), svms, key[svms]


def _matrices(V: Array, b: Array, signs: Array) -> tuple[Array, Array, Array]:
    """P, G, h of 1/2 x'Px + q'x s.t. G x >= h with x = (z, xi)."""
    K, L = V.shape
    P = np.diag(np.r_[np.full(L, 2.0), np.zeros(K)])
    G = np.block([[signs[:, None] * V, np.eye(K)], [np.zeros((K, L)), np.eye(K)]])
    return P, G, np.r_[1.0 - signs * b, np.zeros(K)]


def solve_osqp(
    F: Array, V: Array, b: Array, Y: Array, upper: Array, start: Array | None = None, n_threads: int = 1
) -> tuple[Array, Array]:
    """`box_qp.solve` by OSQP: set up once per class, then update the linear term and warm-start per row."""
    import osqp

    L = V.shape[1]
    Z, alpha = F.astype(np.float64), np.zeros(upper.shape)
    for rows, svms, signs in _patterns(Y, upper):
        if svms.size == 0:
            continue
        P, G, h = _matrices(V[svms], b[svms], signs)
        problem = osqp.OSQP()
        q = np.r_[-2.0 * F[rows[0]], upper[rows[0], svms]]
        problem.setup(sp.csc_matrix(np.triu(P)), q, sp.csc_matrix(G), h, np.full(h.size, np.inf), **ACCURACY)
        for n in rows:
            problem.update(q=np.r_[-2.0 * F[n], upper[n, svms]])
            answer = problem.solve(raise_error=False)
            Z[n] = answer.x[:L]
            alpha[n, svms] = np.clip(-answer.y[: svms.size], 0.0, upper[n, svms])
    return Z, alpha


def solve_any(
    F: Array, V: Array, b: Array, Y: Array, upper: Array, start: Array | None = None, n_threads: int = 1, *, solver: str
) -> tuple[Array, Array]:
    """`box_qp.solve` by one `qpsolvers.solve_problem` per row, with any back end that qpsolvers has installed.

    Raises
    ------
    RuntimeError : the back end returned no solution for a row.
    """
    import qpsolvers

    L = V.shape[1]
    sparse = solver in qpsolvers.sparse_solvers and solver not in qpsolvers.dense_solvers
    tight: dict[str, Any] = {k: v for k, v in ACCURACY.items() if k != "verbose"} if solver == "osqp" else {}
    Z, alpha = F.astype(np.float64), np.zeros(upper.shape)
    for rows, svms, signs in _patterns(Y, upper):
        P, G, h = _matrices(V[svms], b[svms], signs)
        if sparse:
            P, G = sp.csc_matrix(P), sp.csc_matrix(G)
        for n in rows if svms.size else ():
            q = np.r_[-2.0 * F[n], upper[n, svms]]
            answer = qpsolvers.solve_problem(qpsolvers.Problem(P, q, -G, -h), solver=solver, **tight)
            if answer.x is None or answer.z is None:
                raise RuntimeError(f"z_solver={solver!r} found no solution of the Z-step for row {n}.")
            Z[n] = answer.x[:L]
            alpha[n, svms] = np.clip(answer.z[: svms.size], 0.0, upper[n, svms])
    return Z, alpha
