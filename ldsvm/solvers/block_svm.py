"""The interior-point SVM of `linear_svm` on rows in several places: only Newton sums move.

`newton` wraps `svm_kernels.newton`: it yields the passes over the rows that it needs and is sent their sums, so that
several problems can ask for their passes together. `Part` holds one problem's rows of one place and does the passes.

With many rows (`MANY`) the problem is solved on few of them, exactly (`solve`): the interior-point method takes more
steps the more rows there are, and all but some per cent of them lie well on one side of the margin. Those have
multipliers of 0, or C, and a linear hinge; where they are taken to be so, the objective can only fall, since a hinge is
the larger of its two pieces. So when the SVM that comes out leaves every row on its side, it is the optimum of all;
else the way to it is gone as far as the true objective falls, the rows that have changed sides there are set free, and
it is done again. It begins at the nearby SVM or, where there is none with few rows near its margin, at a sample's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ldsvm.solvers import svm_kernels as kernels
from ldsvm.typing import Array

MANY, SAMPLE = 40_000, 20_000  # from so many rows on only some are worked on; size of the sample that selects them
WIDTH, SIDE = 0.5, 1e-9  # distances from the margin within which rows are worked on; beyond which one is on a side
# Shares of a way that are tried; tiny ones since with few rows to hold it an SVM may go as far as it likes.
WAY = *(0.5**i for i in range(8)), *(10.0**-i for i in (3, 4, 5, 6, 8, 10, 12, 14, 16))
# Where so many rows are close to the margin that the gap stays above LOOSE, the width is made so many times smaller.
LOOSE, CLOSER, TRIES = 1e-8, 8.0, 5
CROWD = 0.25  # share of rows near the margin of a nearby SVM above which it is no good starting point
FEWEST = 200  # rows to work on; with fewer the width is doubled
BLOCK = 2**15  # rows in one go when all are examined, so that intermediate results stay in the cache


@dataclass(frozen=True)
class Pass:
    """One pass over the rows, see `svm_kernels.rows_pass`. length: of the sums. keep: the multipliers before it."""

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


@dataclass(frozen=True)
class Take:
    """Which rows are worked on: every `stride`-th; or, where v (P,) is given, those within `width` of its margin.

    more: also those that are worked on already, and those that turned out to be on the other side of the margin of v.
    tries: how often the width has been made smaller.
    """

    stride: int = 1
    v: Array | None = None
    width: float = 0.0
    more: bool = False
    tries: int = 0


class Part:
    """One problem's rows of one place. Zt (P, n) with the bias as row L of ones; signs y (n,), penalties c (n,) > 0.

    first: number of the first row among those of all places.
    """

    def __init__(self, Zt: Array, y: Array, c: Array, first: int = 0) -> None:
        self.Zt, self.y, self.c, self.first = Zt, y, c, first
        self.free, self.low = np.ones(len(y), bool), np.zeros(len(y), bool)  # worked on; taken to be inside the margin

    def near(self, v: Array) -> Array:
        """Count the rows within WIDTH of the margin of v (P,), and all."""
        beyond = (self._beyond(v, rows) for rows in self._blocks())
        return np.array([sum(np.count_nonzero(np.abs(some) <= WIDTH) for some in beyond), len(self.y)])

    def take(self, wanted: Take) -> Array:
        """Choose the rows to work on. Return their n, those with y > 0, sum c, sum y z (P,) and sum z z' (P, P),
        block-lower; and sum c (1,) and sum c y z (P,) of the rows that are taken to be inside the margin.
        """
        if wanted.v is None:
            free = np.zeros(len(self.y), bool)
            free[-self.first % wanted.stride :: wanted.stride] = True
            self._choose(free, np.zeros(len(free), bool), float(wanted.stride))
        else:
            free, low = self.free.copy(), np.empty(len(self.y), bool)
            for rows in self._blocks():
                beyond = self._beyond(wanted.v, rows)
                near = np.abs(beyond) <= wanted.width
                free[rows] = near | free[rows] | self._wrong(beyond, rows) if wanted.more else near
                low[rows] = ~free[rows] & (beyond < 0.0)
            self._choose(free, low, 1.0)
        P = len(self.Zt)
        gram, inside_sums = np.zeros((P, P)), np.zeros(1 + P)
        kernels.rows_gram(self.z, gram)
        counts = [len(self.signs), np.count_nonzero(self.signs > 0), self.penalties.sum()]
        for rows in self._blocks():
            low = self.low[rows]
            inside = self.c[rows][low]
            inside_sums[0] += inside.sum()
            inside_sums[1:] += self.Zt[:, rows][:, low] @ (inside * self.y[rows][low])
        return np.concatenate([counts, self.z @ self.signs, gram.ravel(), inside_sums])

    def look(self, ends: tuple[Array, Array]) -> Array:
        """At the points WAY between two SVMs (P,), 1 at the second: hinges of all rows, and rows that are on the
        other side than they were taken for (2, points).
        """
        out = np.zeros((2, len(WAY)))
        for rows in self._blocks():
            begin, end = (self._beyond(v, rows) for v in ends)
            for i, t in enumerate(WAY):
                beyond = begin + t * (end - begin)
                out[:, i] += np.maximum(0.0, -beyond) @ self.c[rows], np.count_nonzero(self._wrong(beyond, rows))
        return out

    def _blocks(self) -> Iterator[slice]:
        return (slice(start, start + BLOCK) for start in range(0, len(self.y), BLOCK))

    def _beyond(self, v: Array, rows: slice) -> Array:
        beyond: Array = self.y[rows] * (v @ self.Zt[:, rows]) - 1.0
        return beyond

    def _wrong(self, beyond: Array, rows: slice) -> Array:
        wrong: Array = ~self.free[rows] & np.where(self.low[rows], beyond > SIDE, beyond < -SIDE)
        return wrong

    def _choose(self, free: Array, low: Array, scale: float) -> None:
        self.free, self.low = free, low
        self.z = self.Zt if free.all() else np.ascontiguousarray(self.Zt[:, free])
        self.signs, self.penalties = self.y[free], scale * self.c[free]
        self.R, self.alpha = np.zeros((kernels.ROWS, len(self.signs))), np.zeros(len(self.signs))

    def do(self, wanted: Pass) -> Sums:
        """Go over the rows that are worked on once."""
        if wanted.keep:
            self._go(Pass(kernels.KEEP, wanted.vectors))
        return self._go(wanted)

    def _go(self, wanted: Pass) -> Sums:
        sums, numbers = np.zeros(wanted.length), np.array(wanted.numbers)
        args = self.z, self.signs, self.penalties, self.R, self.alpha, wanted.vectors, wanted.move, numbers, sums
        return Sums(sums, kernels.rows_pass(wanted.what, *args))

    def multipliers(self) -> Array:
        """Of all rows (n,): 0 and C for those that were taken to be outside and inside the margin."""
        alpha = np.where(self.low, self.c, 0.0)
        alpha[self.free] = self.alpha
        return alpha


def length(L: int) -> int:
    """Return P: L weights and a bias, rounded up to a multiple of four, which is faster."""
    return -(-(L + 1) // 4) * 4


def padded(Z: Array) -> Array:
    """Return rows Z (n, L) as (P, n): their transpose, a row of ones for the bias, zeros to a multiple of four."""
    Zt = np.zeros((length(Z.shape[1]), len(Z)))
    Zt[: Z.shape[1]], Zt[Z.shape[1]] = Z.T, 1.0
    return Zt


def extended(V: Array, b: Array | float) -> Array:
    """Return weights (..., L) and biases (...) as (..., P): side by side, zeros to a multiple of four."""
    L = V.shape[-1]
    out = np.zeros((*V.shape[:-1], length(L)))
    out[..., :L], out[..., L] = V, b
    return out


class Places(Protocol):
    """What `solve` asks of all places, for problems by number, and gets added up: what `Part` has."""

    def near(self, svms: dict[int, Array]) -> dict[int, Array]:
        """Count the rows near their margins, and all."""

    def take(self, wanted: dict[int, Take]) -> dict[int, Array]:
        """Choose the rows to work on."""

    def go(self, wanted: dict[int, Pass]) -> dict[int, Sums]:
        """Go over these once."""

    def look(self, ends: dict[int, tuple[Array, Array]]) -> dict[int, Array]:
        """Look at all rows between two SVMs."""


def solve(places: Places, N: int, L: int, near: dict[int, Array]) -> dict[int, Array]:
    """Solve problems side by side: SVMs (P,) by number.

    N: all rows, of which a problem may have some. near: answers of nearby problems, or zeros. The parts then hold the
    multipliers that bounds are from.
    """
    if N <= MANY:
        found = _solved(places.take(dict.fromkeys(near, Take())), places.go, L, near)
        return {k: v for k, (v, _) in found.items()}
    counts = places.near(near)
    wanted = {k: Take(v=v, width=WIDTH) for k, v in _guesses(places, counts, L, near).items()}
    answers: dict[int, Array] = {}
    while wanted:
        facts = places.take(wanted)
        thin = {k for k, one in wanted.items() if not one.more and facts[k][0] < min(FEWEST, counts[k][1])}
        begin: dict[int, Any] = {k: one.v for k, one in wanted.items() if k not in thin}
        solved = _solved({k: facts[k] for k in begin}, places.go, L, begin)
        end = {k: v for k, (v, _) in solved.items()}
        seen = places.look({k: (begin[k], end[k]) for k in end})
        before, wanted = wanted, {k: replace(wanted[k], width=2.0 * wanted[k].width) for k in thin}
        for k, (lost, wrong) in seen.items():
            loose = solved[k][1] > LOOSE and before[k].tries < TRIES
            if wrong[0] == 0 and not loose:  # every row is on its side: the optimum of all
                answers[k] = end[k]
                continue
            points = [begin[k] + t * (end[k] - begin[k]) for t in WAY]
            values = [0.5 * np.sum(v[:L] ** 2) + hinge for v, hinge in zip(points, lost, strict=True)]
            best = int(np.argmin(values))
            if loose:  # too many rows close to the margin: those that are closer still
                wanted[k] = Take(v=points[best], width=before[k].width / CLOSER, tries=before[k].tries + 1)
                continue
            place = min(best, int(np.flatnonzero(wrong)[-1]))  # where some rows are set free
            wanted[k] = Take(v=points[place], width=before[k].width / 4, more=True, tries=before[k].tries)
    return answers


def _guesses(places: Places, counts: dict[int, Array], L: int, near: dict[int, Array]) -> dict[int, Array]:
    """Where to begin: at the nearby SVMs with few rows near their margins, else at the SVMs of a sample."""
    close = {k for k, (some, every) in counts.items() if near[k][:L].any() and some <= CROWD * every}
    sample = {k: Take(stride=max(1, int(counts[k][1]) // SAMPLE)) for k in near if k not in close}
    found = _solved(places.take(sample), places.go, L, near) if sample else {}
    return {k: near[k] if k in close else found[k][0] for k in near}


def _solved(
    facts: dict[int, Array], go: Callable[[dict[int, Pass]], dict[int, Sums]], L: int, near: dict[int, Any]
) -> dict[int, tuple[Array, float]]:
    """Solve problems on the rows that were taken: every pass over them is one call for all that still go on.

    Returns what `newton` does.
    """
    solving = {k: newton(some, L, near[k]) for k, some in facts.items()}
    answers: dict[int, tuple[Array, float]] = {}
    found: dict[int, Any] = dict.fromkeys(facts)
    while found:
        wanted = {}
        for k, sums in found.items():
            try:
                wanted[k] = solving[k].send(sums)
            except StopIteration as end:
                answers[k] = end.value
        found = go(wanted) if wanted else {}
    return answers


def newton(facts: Array, L: int, near: Array) -> Generator[Pass, Sums, tuple[Array, float]]:
    """Solve one problem, from the `Part.take` of all its rows; returns the SVM (P,), weights and bias, and the gap.

    near (P,): the answer of a nearby problem, or zeros. Parts then hold the multipliers that its bound is from. Where
    all rows are of one sign, the weights are 0 and that sign is the bias, without a pass.
    """
    P = len(near)
    (N, plus, whole), moments, gram, inside_sums, inside = np.split(facts, np.cumsum([3, P, P * P, 1]))
    more = float(inside_sums[0])  # sum c of rows inside the margin: more - v.inside is their hinge
    answer, fitted, gram = np.zeros(P), np.zeros(P), gram.reshape(P, P).copy()
    if plus in (0, N) and not more:
        answer[L] = 0.0 if N == 0 else 1.0 if plus else -1.0
        return answer, 0.0
    if kernels.factor_gram(gram):
        kernels.solve_factored(gram, moments, fitted)
    asked, numbers, at = np.zeros((4, P)), np.zeros(2), np.zeros(3, np.int64)
    sums, worst, reached = np.zeros(P * P + 2 * P + 3), np.zeros(1), np.zeros(1)
    state = answer, reached, asked, numbers, at, sums, worst
    lengths = {kernels.ASSEMBLE: len(sums), kernels.PREDICT: 2 * P + 1, kernels.RECENTRE: P}
    for what in kernels.newton(N, L, whole, more, inside, fitted, near, *state):
        vectors, row, save = at.tolist()
        length = vectors if what == kernels.HINGE else lengths.get(what, 0)
        at[kernels.SAVE] = 0
        found = yield Pass(what, asked[:vectors].copy(), length, (numbers[0], numbers[1]), row, bool(save))
        sums[:length], worst[0] = found.sums, found.worst
    return answer, float(reached[0])
