"""Exact linear SVMs with few inputs and many rows, by a primal-dual interior-point method (Mehrotra).

One problem (the g-step, second term of e:svm-qp), with the bias unregularised as in LIBSVM:

    min_{v,b}  1/2 |v|^2 + sum_n C_n max(0, 1 - y_n (v.z_n + b))

Its dual has the Hessian A A' with A = diag(y) Z of rank L, so a Newton step needs only the (L+1) x (L+1) matrix
diag(1,..,1,0) + sum_n w_n (z_n,1)(z_n,1)': rows enter through sums, and an iteration costs O(N L^2).
Primal and dual take one common step, which keeps both feasible once they are.
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers.compiled import Blocks, kernel
from ldsvm.solvers.svm_kernels import aim_at, assemble, direct, factor, hinge, place, predict, recentre, substitute
from ldsvm.solvers.svm_problem import one_by_one
from ldsvm.typing import Array

TOLERANCE = 1e-10  # relative duality gap at which a problem is solved
ROUNDING = 1e-13  # relative complementarity below which a further step is rounding only
MAX_ITER = 200
FAR, NEAR = 2.0, 1.0  # first complementarity over the objective, for a rough guess and for a nearby answer
SHORT, CENTRE = 0.1, 0.5  # a step below SHORT is a bad one; the next aims at CENTRE times the complementarity
CORRECTORS, LONG = 3, 0.9  # centrality correctors at most per iteration, tried while the step is not long
LEVEL = 1e-8  # |sum alpha y| over sum alpha at which a bound counts
RESTART = 1e-6  # relative gap above which a stuck problem begins again
PATIENCE = 12  # iterations in a row without progress in complementarity: rounding rules, stop
THREAD_ROWS = 1000  # rows times problems per thread below which a thread is not worth its start
DAMPING = 0.995  # share of the longest step to the boundary that is taken


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
    start : machines (V, b) of a nearby problem, from which fewer steps are needed; the answer is the same optimum.

    Returns
    -------
    V, b : (K, L) and (K,) machines; alpha : (N, K) multipliers. Judge them with `svm_problem.duality_gap`.

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
    P = -(-(L + 1) // 4) * 4
    Zt = np.zeros((P, N))
    Zt[:L], Zt[L] = Z.T, 1.0
    signs, penalties = (np.ascontiguousarray(a.T, dtype=np.float64) for a in (Y, C))
    gram = Zt @ Zt.T
    gram[np.diag_indices(P)] += 1e-6 * np.trace(gram) / P
    fitted = np.linalg.solve(gram, Zt @ signs.T).T
    v, alpha = np.empty((K, P)), np.empty((K, N))

    def block(part: slice) -> None:
        for k in range(part.start, part.stop):
            guesses = [size * fitted[k] for size in (1.0, 2.0, 4.0)]
            if start is not None and start[0][k].any():
                near = np.zeros(P)
                near[:L], near[L] = start[0][k], start[1][k]
                guesses.append(near)
            _interior_point(Zt, L, signs[k], penalties[k], np.array(guesses), v[k], alpha[k])

    with Blocks(K, n_threads, -(-THREAD_ROWS // N)) as problems:
        problems.map(block)
    return v[:, :L].copy(), v[:, L].copy(), np.ascontiguousarray(alpha.T)


@kernel
def _interior_point(Zt, L, y, c, guesses, answer, alpha):
    """One problem: answer (P,) becomes the best machine seen, alpha (N,) the best multipliers.

    Least-squares machines at three sizes and a nearby problem's answer, where given, are the guesses (G, P) to begin
    with: the one of lowest objective does.
    """
    P, N = Zt.shape
    a, e, s, x, left, right = np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N)
    da, ds, dx, da2, ds2, dx2 = np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N)
    H, v, whole = np.empty((P, P)), np.empty(P), c.sum()
    rhs, dual, affine, move, centre, curve = (
        np.empty(P), np.empty(P), np.zeros(P), np.zeros(P), np.empty(P), np.empty(P),
    )  # fmt: skip
    best = np.inf
    for g in range(guesses.shape[0]):
        value = 0.5 * np.sum(guesses[g, :L] ** 2) + hinge(Zt, 0, N, guesses[g], y, c)
        if value < best:
            best, v[:], share = value, guesses[g], FAR if g < 3 else NEAR
    place(Zt, 0, N, v, y, c, share * best / N, a, e, s, x, da, ds, dx)
    best, proved, previous, stalled, restarted, step = np.inf, -np.inf, np.inf, 0, False, 0.0
    for _ in range(MAX_ITER):
        H[:], rhs[:], dual[:], centre[:], curve[:] = 0.0, 0.0, 0.0, 0.0, 0.0
        sums = np.zeros(3)
        assemble(Zt, 0, N, v, y, c, a, e, s, x, da, ds, dx, step, H, rhs, dual, sums)
        gap = sums[0]
        primal, bound = 0.5 * np.sum(v[:L] ** 2) + sums[1], sums[2] - 0.5 * np.sum(dual[:L] ** 2)
        if primal < best:
            best, answer[:] = primal, v
        # Rounding can spoil late multipliers for huge C: keep those of the best bound, once sum alpha y is near zero.
        level = abs(dual[L]) <= LEVEL * sums[2]
        if proved == -np.inf or (level and bound > proved):
            alpha[:] = a
            proved = bound if level else proved
        balanced = abs(dual[L]) <= TOLERANCE * whole
        # With as many rows on the margin as unknowns rounding spoils the bound first, not the iterate.
        if (balanced and best - bound <= TOLERANCE * best) or gap <= ROUNDING * best:
            break
        stalled = stalled + 1 if gap > 0.9 * previous else 0
        cautious = 0.0 < step < SHORT or gap > previous
        previous = gap
        if stalled >= (PATIENCE if restarted else PATIENCE // 2):
            if restarted or (balanced and gap <= RESTART * best):
                break
            # a guess that misled: begin again from the zero machine, once
            v[:], restarted, stalled, previous, step = 0.0, True, 0, np.inf, 0.0
            place(Zt, 0, N, v, y, c, whole / N, a, e, s, x, da, ds, dx)
            continue
        for i in range(P):  # 1 for the weights, 0 for the bias; the padding becomes the identity
            if i != L:
                H[i, i] += 1.0
        if not factor(H):
            break
        rhs += dual
        rhs[:L] -= v[:L]
        substitute(H, rhs, affine)
        worst, second = predict(Zt, 0, N, v, affine, y, a, e, s, x, centre, curve)
        reach = 1.0 / max(1.0, worst)
        # Mehrotra's rule: aim at (mu_affine / mu)^3 mu
        after = max(gap * (1.0 - reach) + reach * reach * second, 0.0)
        aim, trust = (after / gap) ** 3 * gap / (2 * N), 1.0
        if cautious:  # Mehrotra's steps can cycle; after a bad one take a plain step towards the central path
            aim, trust = max(aim, CENTRE * gap / (2 * N)), 0.0
        rhs += aim * centre + trust * curve
        substitute(H, rhs, move)
        aim_at(Zt, 0, N, v, affine, aim, trust, y, a, e, s, x, left, right)
        step = DAMPING / max(direct(Zt, 0, N, v, move, y, a, e, s, x, left, right, da, ds, dx), DAMPING)
        for _ in range(CORRECTORS):
            if step > LONG:
                break
            recentre(Zt, 0, N, min(1.0, 2.0 * step + 0.1), aim, y, a, e, s, x, da, ds, dx, left, right, rhs)
            substitute(H, rhs, affine)
            longer = DAMPING / max(direct(Zt, 0, N, v, affine, y, a, e, s, x, left, right, da2, ds2, dx2), DAMPING)
            if longer < 1.1 * step:
                break
            step, move, affine = longer, affine, move
            da, da2, ds, ds2, dx, dx2 = da2, da, ds2, ds, dx2, dx
        v += step * move
