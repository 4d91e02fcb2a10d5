"""Exact linear SVMs with few inputs and many rows, by a primal-dual interior-point method (Mehrotra).

One problem (the g-step, second term of e:svm-qp), with the bias unregularised as in LIBSVM:

    min_{v,b}  1/2 |v|^2 + sum_n C_n max(0, 1 - y_n (v.z_n + b))

Its dual has the Hessian A A' with A = diag(y) Z of rank L, so a Newton step needs only the (L+1) x (L+1) matrix
diag(1,..,1,0) + sum_n w_n (z_n,1)(z_n,1)': rows enter through sums, and an iteration costs O(N L^2).
Primal and dual take one common step, which keeps both feasible once they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldsvm.solvers.block_svm import MANY, Part, Pass, Sums, Take, extended, padded
from ldsvm.solvers.block_svm import solve as block_solve
from ldsvm.solvers.svm_kernels import factor_gram, interior_point, rows_gram
from ldsvm.solvers.svm_problem import one_by_one
from ldsvm.threads import Blocks
from ldsvm.typing import Array

THREAD_ROWS = 1000  # rows times problems per thread below which a thread is not worth its start


def solve(
    Z: Array, Y: Array, C: Array, n_threads: int = 1, start: tuple[Array, Array] | None = None
) -> tuple[Array, Array, Array]:
    """Train K linear SVMs on the same inputs, each to a relative duality gap of 1e-10 where rounding allows.

    Parameters
    ----------
    Z : (N, L) inputs.
    Y : (N, K) signs in {-1, +1}.
    C : (N, K) penalties; 0 takes a row out of that problem.
    n_threads : blocks of rows worked on at the same time.
    start : SVMs (V, b) of a nearby problem, from which fewer steps are needed; the answer is the same optimum.

    Returns
    -------
    V, b : (K, L) and (K,) SVMs; alpha : (N, K) multipliers. Judge them with `svm_problem.duality_gap`.

    Examples
    --------
    >>> import numpy as np
    >>> Z, Y = np.array([[-1.0], [1.0], [3.0]]), np.array([[-1.0], [1.0], [1.0]])
    >>> V, b, alpha = solve(Z, Y, np.full((3, 1), 10.0))
    >>> np.round(V, 6).item(), bool(abs(b[0]) < 1e-6)
    (1.0, True)
    """
    if (C > 0).all() and bool(((Y > 0).any(axis=0) & (Y < 0).any(axis=0)).all()):
        return _together(Z, Y, C, n_threads, start)

    def fit(k: int, Z: Array, y: Array, c: Array) -> tuple[Array, Array, Array]:
        near = None if start is None else (start[0][k : k + 1], start[1][k : k + 1])
        return _together(Z, y[:, None], c[:, None], 1, near)

    return one_by_one(fit, Z, Y, C)  # one-vs-one: every problem has rows of its own


def _together(
    Z: Array, Y: Array, C: Array, n_threads: int, start: tuple[Array, Array] | None
) -> tuple[Array, Array, Array]:
    """`solve` where every problem has every row, in both signs: K problems on one copy of Z, in threads."""
    N, L = Z.shape
    K = Y.shape[1]
    Zt = padded(Z)
    P = len(Zt)
    signs, penalties = (np.ascontiguousarray(a.T, dtype=np.float64) for a in (Y, C))
    near = np.zeros((K, P)) if start is None else extended(*start)
    if N > MANY:
        return _on_few(Zt, L, signs, penalties, n_threads, near)
    # Sums by our kernels, here and in the threads: BLAS would wake threads of its own, which then hold the cores.
    gram = np.zeros((P, P))
    rows_gram(Zt, gram)
    factor_gram(gram)
    v, alpha = np.empty((K, P)), np.empty((K, N))

    def block(part: slice) -> None:
        for k in range(part.start, part.stop):
            interior_point(Zt, L, signs[k], penalties[k], gram, near[k], v[k], alpha[k])

    with Blocks(K, n_threads, -(-THREAD_ROWS // N)) as problems:
        problems.map(block)
    return v[:, :L].copy(), v[:, L].copy(), np.ascontiguousarray(alpha.T)


def _on_few(
    Zt: Array, L: int, signs: Array, penalties: Array, n_threads: int, near: Array
) -> tuple[Array, Array, Array]:
    """`solve` with many rows, by `block_svm.solve`."""
    K = len(signs)
    parts = [Part(Zt, y, c) for y, c in zip(signs, penalties, strict=True)]
    with Blocks(K, n_threads, least=1) as team:
        found = block_solve(_Here(parts, team), Zt.shape[1], L, dict(enumerate(near)))
    v = np.stack([found[k] for k in range(K)])
    return v[:, :L].copy(), v[:, L].copy(), np.stack([part.multipliers() for part in parts], axis=1)


@dataclass(frozen=True)
class _Here:
    """All rows in one place, the problems dealt out to threads."""

    parts: list[Part]
    team: Blocks

    def near(self, svms: dict[int, Array]) -> dict[int, Array]:
        return self.team.each(lambda k: self.parts[k].near(svms[k]), list(svms))

    def take(self, wanted: dict[int, Take]) -> dict[int, Array]:
        return self.team.each(lambda k: self.parts[k].take(wanted[k]), list(wanted))

    def go(self, wanted: dict[int, Pass]) -> dict[int, Sums]:
        return self.team.each(lambda k: self.parts[k].do(wanted[k]), list(wanted))

    def look(self, ends: dict[int, tuple[Array, Array]]) -> dict[int, Array]:
        return self.team.each(lambda k: self.parts[k].look(ends[k]), list(ends))
