"""The interior-point SVM of `linear_svm` on rows in several places: only Newton sums move.

`newton` is the method of `svm_kernels.interior_point`, step for step, as a generator: it yields the passes over the
rows that it needs and is sent their sums, so several problems can ask for their passes together. `Rows` holds one
problem's rows of one place and does the passes, with the same compiled kernels.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ldsvm.solvers import svm_kernels as kernels
from ldsvm.typing import Array

NOTHING = np.empty(0)


@dataclass(frozen=True)
class Pass:
    """One pass over the rows, see `svm_kernels.rows_part`. length: of the sums. keep: the multipliers before it."""

    what: int
    vectors: Array
    length: int = 0
    numbers: tuple[float, float] = (0.0, 0.0)
    move: int = 0
    keep: bool = False


@dataclass
class Sums:
    """What a pass over rows gives: sums to be added up over places, and a number of which the largest counts."""

    sums: Array
    worst: float

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.sums + other.sums, max(self.worst, other.worst))


@dataclass
class Rows:
    """One problem's rows of one place. Zt (P, n) with the bias as row L of ones; signs y (n,), penalties c (n,) > 0."""

    Zt: Array
    y: Array
    c: Array
    R: Array = field(init=False)
    alpha: Array = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.y)
        self.R, self.alpha = np.zeros((kernels.ROWS, n)), np.zeros(n)

    def do(self, wanted: Pass) -> Sums:
        """Go over the rows once."""
        if wanted.keep:
            self._part(Pass(kernels.KEEP, wanted.vectors))
        return self._part(wanted)

    def _part(self, wanted: Pass) -> Sums:
        sums, numbers = np.zeros(wanted.length), np.array(wanted.numbers)
        args = self.Zt, self.y, self.c, self.R, self.alpha, wanted.vectors, wanted.move, numbers, sums
        return Sums(sums, kernels.rows_part(wanted.what, *args))

    def facts(self) -> Array:
        """Return n, the rows with y > 0, sum c, sum y z (P,) and sum z z' (P, P), block-lower, as one array."""
        gram = np.zeros((len(self.Zt),) * 2)
        kernels.rows_gram(self.Zt, gram)
        counts = [len(self.y), np.count_nonzero(self.y > 0), self.c.sum()]
        return np.concatenate([counts, self.Zt @ self.y, gram.ravel()])


def padded(Z: Array) -> Array:
    """Return rows Z (n, L) as (P, n): their transpose, a row of ones for the bias, zeros to a multiple of four."""
    n, L = Z.shape
    Zt = np.zeros((-(-(L + 1) // 4) * 4, n))
    Zt[:L], Zt[L] = Z.T, 1.0
    return Zt


def newton(facts: Array, L: int, near: Array) -> Generator[Pass, Sums, Array]:
    """Solve one problem, from the `Rows.facts` of all its rows; returns the machine (P,), weights and bias.

    near (P,): the answer of a nearby problem, or zeros. Rows then hold the multipliers that the answer's bound is from.
    A problem with rows of one sign only gets weights of 0 and that sign as its bias, without a pass.
    """
    P = len(near)
    N, plus, whole = facts[:3]
    v = np.zeros(P)
    if plus in (0, N):
        v[L] = 0.0 if N == 0 else 1.0 if plus else -1.0
        return v
    v, best, share = yield from _begin(facts[3 : 3 + P], facts[3 + P :].reshape(P, P), L, near)
    yield Pass(kernels.PLACE, v[None], numbers=(share * best / N, 0.0))
    answer, best, proved, previous, stalled, restarted = v.copy(), np.inf, -np.inf, np.inf, 0, False
    step, move, trial, keep = 0.0, kernels.MOVE, kernels.TRIAL, False
    for _ in range(kernels.MAX_ITER):
        found = yield Pass(kernels.ASSEMBLE, v[None], P * P + 2 * P + 3, (step, 0.0), move)
        H, rhs, dual, sums = np.split(found.sums, [P * P, P * P + P, P * P + 2 * P])
        H, gap = H.reshape(P, P), sums[0]
        primal, bound = 0.5 * np.sum(v[:L] ** 2) + sums[1], sums[2] - 0.5 * np.sum(dual[:L] ** 2)
        if primal < best:
            best, answer = primal, v.copy()
        level = abs(dual[L]) <= kernels.LEVEL * sums[2]
        keep = proved == -np.inf or (level and bound > proved)
        if keep:
            proved = bound if level else proved
        balanced = abs(dual[L]) <= kernels.TOLERANCE * whole
        if (balanced and best - bound <= kernels.TOLERANCE * best) or gap <= kernels.ROUNDING * best:
            break
        stalled = stalled + 1 if gap > 0.9 * previous else 0
        cautious = 0.0 < step < kernels.SHORT or gap > previous
        previous = gap
        close = balanced and gap <= kernels.CLOSE * best
        if stalled >= (kernels.PATIENCE if close else kernels.STRUGGLE):
            if restarted or close:
                break
            v, restarted, stalled, previous = np.zeros(P), True, 0, np.inf
            step, move, trial = 0.0, kernels.MOVE, kernels.TRIAL
            yield Pass(kernels.PLACE, v[None], numbers=(whole / N, 0.0), keep=keep)
            continue
        H[np.diag_indices(P)] += np.where(np.arange(P) == L, 0.0, 1.0)
        try:
            factor = cho_factor(H, lower=True, check_finite=False)
        except LinAlgError:
            break
        rhs += dual
        rhs[:L] -= v[:L]
        affine = cho_solve(factor, rhs, check_finite=False)
        found = yield Pass(kernels.PREDICT, affine[None], 2 * P + 1, keep=keep)
        keep = False
        centre, curve, second = found.sums[:P], found.sums[P : 2 * P], found.sums[2 * P]
        reach = 1.0 / max(1.0, found.worst)
        after = max(gap * (1.0 - reach) + reach * reach * second, 0.0)
        aim, trust = (after / gap) ** 3 * gap / (2 * N), 1.0
        if cautious:
            aim, trust = max(aim, kernels.CENTRE * gap / (2 * N)), 0.0
        rhs += aim * centre + trust * curve
        direction = cho_solve(factor, rhs, check_finite=False)
        found = yield Pass(kernels.DIRECT, direction[None], numbers=(aim, trust), move=move)
        step = kernels.DAMPING / max(found.worst, kernels.DAMPING)
        for _ in range(kernels.CORRECTORS):
            if step > kernels.LONG:
                break
            found = yield Pass(kernels.RECENTRE, affine[None], P, (min(1.0, 2.0 * step + 0.1), aim), move)
            rhs += found.sums
            other = cho_solve(factor, rhs, check_finite=False)
            found = yield Pass(kernels.AGAIN, other[None], move=trial)
            longer = kernels.DAMPING / max(found.worst, kernels.DAMPING)
            if longer < 1.1 * step:
                break
            step, move, trial, direction = longer, trial, move, other
        v = v + step * direction
    if keep:
        yield Pass(kernels.KEEP, v[None])
    return answer


def _begin(
    moments: Array, gram: Array, L: int, near: Array
) -> Generator[Pass, Sums, tuple[Array, float, float]]:  # fmt: skip
    """Return the guess of lowest objective, that objective and the share of it to aim at first."""
    P = len(near)
    gram = np.tril(gram)
    gram[np.diag_indices(P)] += 1e-6 * np.trace(gram) / P
    try:
        fitted = cho_solve(cho_factor(gram, lower=True, check_finite=False), moments, check_finite=False)
    except LinAlgError:
        fitted = np.zeros(P)
    guesses = [fitted, 2.0 * fitted, 4.0 * fitted, *([near] if near[:L].any() else [])]
    found = yield Pass(kernels.HINGE, np.stack(guesses), len(guesses))
    values = [0.5 * np.sum(v[:L] ** 2) + lost for v, lost in zip(guesses, found.sums, strict=True)]
    chosen = int(np.argmin(values))
    return guesses[chosen].copy(), values[chosen], kernels.NEAR if chosen == 3 else kernels.FAR
