"""Exact linear SVMs with few inputs and many rows, by a primal-dual interior-point method (Mehrotra).

One problem (the g-step, second term of e:svm-qp), with the bias unregularised as in LIBSVM:

    min_{v,b}  1/2 |v|^2 + sum_n C_n max(0, 1 - y_n (v.z_n + b))

Its dual has the Hessian A A' with A = diag(y) Z of rank L, so a Newton step needs only the (L+1) x (L+1) matrix
diag(1,..,1,0) + sum_n w_n (z_n,1)(z_n,1)': rows enter through sums, and an iteration costs O(N L^2).
All problems that share Z advance together. Primal and dual take one common step, which keeps both feasible.
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers import svm_kernels
from ldsvm.solvers.compiled import Rows
from ldsvm.solvers.svm_problem import one_by_one
from ldsvm.typing import Array

TOLERANCE = 1e-10  # relative duality gap at which a problem is solved
ROUNDING = 1e-13  # relative complementarity below which a further step is rounding only
MAX_ITER = 200
FAR, NEAR = 2.0, 1.0  # first complementarity over the objective, for a rough guess and for a nearby answer
RESTART = 1e-6  # relative gap above which a stuck problem begins again
PATIENCE = 12  # iterations in a row without progress in complementarity: rounding rules, stop
THREAD_WORK = 50_000  # rows times problems below which a pass is too short to be worth a thread
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
        return _InteriorPoint(Z, Y, C, n_threads, start).run()

    def fit(k: int, Z: Array, y: Array, c: Array) -> tuple[Array, Array, Array]:
        near = None if start is None else (start[0][k : k + 1], start[1][k : k + 1])
        return _InteriorPoint(Z, y[:, None], c[:, None], n_threads, near).run()

    return one_by_one(fit, Z, Y, C)  # one-vs-one: every problem has rows of its own


class _InteriorPoint:
    """K problems on the same rows, all with C > 0 and both signs; arrays over rows are (K, N)."""

    def __init__(self, Z: Array, Y: Array, C: Array, n_threads: int, start: tuple[Array, Array] | None) -> None:
        N, L = Z.shape
        K = Y.shape[1]
        P = -(-(L + 1) // 4) * 4
        self.N, self.L, self.K, self.P, self.n_threads = N, L, K, P, n_threads
        self.Zt = np.zeros((P, N))
        self.Zt[:L] = Z.T
        self.Zt[L] = 1.0
        self.Y, self.C = (np.ascontiguousarray(a.T, dtype=np.float64) for a in (Y, C))
        self.v = np.zeros((K, P))
        self.A, self.E, self.S, self.X = (np.empty((K, N)) for _ in range(4))
        self.dA, self.dS, self.dX = (np.zeros((K, N)) for _ in range(3))
        self._place(np.arange(K), *self._first_guess(start))

    def _first_guess(self, start: tuple[Array, Array] | None) -> tuple[Array, Array]:
        """The machine to begin with, per problem, and the share of its objective to aim the first complementarity at.

        Candidates are least-squares machines at three sizes and, where given, a nearby problem's answer; the lowest
        objective begins.
        """
        K, L, P = self.K, self.L, self.P
        gram = self.Zt @ self.Zt.T
        gram[np.diag_indices(P)] += 1e-6 * np.trace(gram) / P
        fitted = np.linalg.solve(gram, self.Zt @ self.Y.T).T
        guesses, shares = [size * fitted for size in (1.0, 2.0, 4.0)], [FAR, FAR, FAR]
        if start is not None and start[0].any():
            near = np.zeros((K, P))
            near[:, :L], near[:, L] = start
            guesses, shares = [*guesses, near], [*shares, NEAR]
        values = [self._objective(v) for v in guesses]
        chosen = np.argmin(values, axis=0)
        return np.array(guesses)[chosen, np.arange(K)], np.array(shares)[chosen]

    def _objective(self, v: Array) -> Array:
        hinge = np.maximum(0.0, 1.0 - self.Y * (v @ self.Zt))
        normal = v[:, : self.L]
        value: Array = 0.5 * np.einsum("kl,kl->k", normal, normal) + np.einsum("kn,kn->k", self.C, hinge)
        return value

    def _place(self, problems: Array, v: Array, share: Array) -> None:
        """Put the iterate at machines v with every row's two complementarity products equal (perfectly centred rows).

        With d = f - 1 = s - xi, alpha s = eta xi = m and alpha + eta = C, s solves C s^2 - (C d + 2 m) s + m d = 0.
        """
        C = self.C[problems]
        Cd = C * (self.Y[problems] * (v @ self.Zt) - 1.0)
        whole = np.zeros((self.K, self.P))
        whole[problems] = v
        m = (share * self._objective(whole)[problems] / self.N)[:, None]
        root = np.sqrt(Cd**2 + 4.0 * m**2)
        large = (np.abs(Cd) + 2.0 * m + root) / (2.0 * C)  # the larger of s and xi, free of cancellation
        strong = m / large  # its multiplier, the smaller of alpha and eta
        small = m / (C - strong)
        right = Cd >= 0
        self.S[problems], self.X[problems] = np.where(right, large, small), np.where(right, small, large)
        self.A[problems], self.E[problems] = np.where(right, strong, C - strong), np.where(right, C - strong, strong)
        self.v[problems] = v
        for move in (self.dA, self.dS, self.dX):
            move[problems] = 0.0

    def run(self) -> tuple[Array, Array, Array]:
        K, L = self.K, self.L
        best, answer = np.full(K, np.inf), np.zeros((K, self.P))
        previous, stalled, restarted = np.full(K, np.inf), np.zeros(K, np.int64), np.zeros(K, bool)
        step, problems = np.zeros(K), np.arange(K)
        with Rows(self.N, self.n_threads, THREAD_WORK // K) as rows:
            for _ in range(MAX_ITER):
                H, rhs, dual, (gap, hinge, total) = self._assemble(rows, problems, step)
                primal = 0.5 * np.einsum("kl,kl->k", self.v[:, :L], self.v[:, :L]) + hinge
                bound = total - 0.5 * np.einsum("kl,kl->k", dual[:, :L], dual[:, :L])
                better = np.isin(np.arange(K), problems) & (primal < best)
                best[better], answer[better] = primal[better], self.v[better]
                balanced = np.abs(dual[:, L]) <= TOLERANCE * self.C.sum(axis=1)
                done = balanced & (best - bound <= TOLERANCE * best)
                # With as many rows on the margin as unknowns rounding spoils the bound first, not the iterate.
                done |= gap <= ROUNDING * best
                stalled = np.where(gap > 0.9 * previous, stalled + 1, 0)
                previous = gap
                stuck = stalled >= np.where(restarted, PATIENCE, PATIENCE // 2)
                again = np.flatnonzero(stuck & ~done & ~restarted & (~balanced | (gap > RESTART * best)))
                problems = problems[~(done | stuck)[problems]]
                if again.size:  # a guess that misled: begin again from the zero machine, once
                    self._place(again, np.zeros((again.size, self.P)), np.full(again.size, 1.0))
                    restarted[again], stalled[again], previous[again], step[again] = True, 0, np.inf, 0.0
                    problems = np.union1d(problems, again)
                    H, rhs, dual, (gap, _, _) = self._assemble(rows, problems, np.zeros(K))
                if problems.size == 0:
                    break
                step = self._advance(rows, problems, H, rhs, dual, gap)
        return answer[:, :L].copy(), answer[:, L].copy(), self.A.T.copy()

    def _assemble(self, rows: Rows, problems: Array, step: Array) -> tuple[Array, Array, Array, Array]:
        K, P = self.K, self.P

        def block(part: slice) -> tuple[Array, Array, Array, Array]:
            out = np.zeros((K, P, P)), np.zeros((K, P)), np.zeros((K, P)), np.zeros((K, 3))
            svm_kernels.assemble(
                problems, self.Zt, part.start, part.stop, self.v, self.Y, self.C, self.A, self.E, self.S, self.X,
                self.dA, self.dS, self.dX, step, *out,
            )  # fmt: skip
            return out

        H, rhs, dual, sums = (sum(parts) for parts in zip(*rows.map(block), strict=True))
        H = np.tril(H) + np.swapaxes(np.tril(H, -1), 1, 2)
        diagonal = np.arange(P)
        H[:, diagonal, diagonal] += diagonal != self.L  # 1 for the weights, 0 for the bias; padding becomes identity
        return H, rhs, dual, sums.T

    def _advance(self, rows: Rows, problems: Array, H: Array, rhs: Array, dual: Array, gap: Array) -> Array:
        """One predictor-corrector step: moves v, leaves the rows' part in dA, dS, dX; returns the step lengths."""
        K, P, N, L = self.K, self.P, self.N, self.L
        rhs = rhs + dual
        rhs[:, :L] -= self.v[:, :L]
        affine = self._newton(problems, H, rhs)

        def predict(part: slice) -> tuple[Array, Array, Array]:
            out = np.zeros((K, P)), np.zeros((K, P)), np.zeros((K, 2))
            svm_kernels.predict(
                problems, self.Zt, part.start, part.stop, self.v, affine, self.Y, self.A, self.E, self.S, self.X, *out
            )
            return out

        centres, curves, sums = zip(*rows.map(predict), strict=True)
        reach = 1.0 / np.maximum(1.0, np.max([part[:, 0] for part in sums], axis=0))
        second = sum(part[:, 1] for part in sums)
        # Mehrotra's rule: aim at (mu_affine / mu)^3 mu
        after = np.maximum(gap * (1.0 - reach) + reach**2 * second, 0.0)
        aim = np.where(gap > 0, (after / np.where(gap > 0, gap, 1.0)) ** 3 * gap / (2 * N), 0.0)
        direction = self._newton(problems, H, rhs + aim[:, None] * sum(centres) + sum(curves))

        def correct(part: slice) -> Array:
            worst = np.zeros(K)
            svm_kernels.correct(
                problems, self.Zt, part.start, part.stop, self.v, affine, direction, aim, self.Y, self.A, self.E,
                self.S, self.X, self.dA, self.dS, self.dX, worst,
            )  # fmt: skip
            return worst

        worst = np.max(rows.map(correct), axis=0)
        step: Array = DAMPING / np.maximum(worst, DAMPING)
        self.v[problems] += step[problems, None] * direction[problems]
        return step

    def _newton(self, problems: Array, H: Array, rhs: Array) -> Array:
        out = np.zeros_like(rhs)
        out[problems] = np.linalg.solve(H[problems], rhs[problems, :, None])[:, :, 0]
        return out
