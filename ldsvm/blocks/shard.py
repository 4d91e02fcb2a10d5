"""The rows of one worker and all that is kept of them during a fit; only sums leave it.

A `Shard` is told what to do by name (`Team.call`), the same in this process, in a thread or in a process of Ray's. All
its methods return small plain values: sums over its rows, counts, the largest of something, and the inputs of the few
rows that become centres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ldsvm import threads
from ldsvm.blocks.batches import Batches, Target
from ldsvm.blocks.features import Features
from ldsvm.mac.z_step import penalties
from ldsvm.maps.features import row_blocks
from ldsvm.solvers.block_svm import Part, Pass, Sums, Take, padded
from ldsvm.solvers.svm_problem import dual_parts, hinges
from ldsvm.typing import Array


class Shard(Features):
    """The coordinates of some rows: the Z-step, the rows' part of the g-step, and gradients for learned centres."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.alpha: Array | None = None  # multipliers of the last Z-step, if there was one
        self.svm: dict[int, Part] = {}
        self.batches: Batches | None = None

    def start(self, points: Array) -> None:
        """Put each row at the point (K, L) of its class."""
        self.Z = points[self.y]
        self.alpha = None

    def classes_of(self, numbers: Array) -> Array:
        """Those of the rows with these numbers, ascending, that are here: their class indices (n,)."""
        here = numbers[(numbers >= self.offset) & (numbers < self.offset + len(self))]
        found: Array = self.y[here - self.offset]
        return found

    def measure(self, V: Array, b: Array) -> Array:
        """Sum of |z - F|^2 and of |F|^2, rows that g(F(x)) gets wrong, and the hinges at F and at Z of each SVM."""
        K = len(b)
        out = np.zeros(3 + 2 * K)
        for rows in self._slices(K):
            F = self.F[rows]
            Y, C = self._signs(rows)
            out[1] += np.einsum("nl,nl->", F, F)
            out[2] += np.count_nonzero(self.scheme.classes(self.scheme.scores(F @ V.T + b)) != self.y[rows])
            out[3 : 3 + K] += hinges(F, V, b, Y, C)
            Z = self.Z[rows]
            out[0] += np.einsum("nl,nl->", Z - F, Z - F)
            out[3 + K :] += hinges(Z, V, b, Y, C)
        return out

    def z_step(self, V: Array, b: Array, mu: float) -> float:
        """Solve the Z-step's problem of every row; return the largest residual."""
        from ldsvm.solvers.box_qp import residual

        n, K = len(self), len(b)
        before, self.alpha = self.alpha, np.empty((n, K))
        self.Z = np.empty((n, V.shape[1]))
        worst = 0.0
        for rows in self._slices(K):
            Y, C = self._signs(rows)
            upper = penalties(C, mu)
            near = None if before is None else before[rows]
            Z, alpha = self.z_solver(self.F[rows], V, b, Y, upper, near, n_threads=self.n_threads)
            worst = max(worst, float(np.max(residual(Z, alpha, V, b, Y, upper), initial=0.0)))
            self.Z[rows], self.alpha[rows] = Z, alpha
        return worst

    def svm_open(self, svms: list[int]) -> None:
        """Set up these SVMs' problems on Z, and threads to work on them."""
        self.crew = threads.Blocks(len(svms), self.n_threads, least=1)
        whole, n = padded(self.Z), len(self)
        Y, C = np.empty((len(svms), n)), np.empty((len(svms), n))
        for rows in self._slices(self.scheme.n_svms):
            Y[:, rows], C[:, rows] = (part[:, svms].T for part in self._signs(rows))
        self.svm = {}
        for k, y, c in zip(svms, Y, C, strict=True):
            part = c > 0
            one = (whole, y, c) if part.all() else (np.ascontiguousarray(whole[:, part]), y[part], c[part])
            self.svm[k] = Part(*one, self.offset)

    def svm_near(self, svms: dict[int, Array]) -> dict[int, Array]:
        """Count the rows near the margins of these SVMs, see `Part.near`."""
        return self.crew.each(lambda k: self.svm[k].near(svms[k]), list(svms))

    def svm_take(self, wanted: dict[int, Take]) -> dict[int, Array]:
        """Choose the rows that each of these problems works on, see `Part.take`."""
        return self.crew.each(lambda k: self.svm[k].take(wanted[k]), list(wanted))

    def svm_look(self, ends: dict[int, tuple[Array, Array]]) -> dict[int, Array]:
        """Look at all rows between two SVMs of each of these problems, see `Part.look`."""
        return self.crew.each(lambda k: self.svm[k].look(ends[k]), list(ends))

    def svm_pass(self, wanted: dict[int, Pass]) -> dict[int, Sums]:
        """Go over the rows once for each of the problems that want it."""
        return self.crew.each(lambda k: self.svm[k].do(wanted[k]), list(wanted))

    def svm_close(self, old: dict[int, Array], new: dict[int, Array]) -> dict[int, tuple[Array, Array, Array]]:
        """Hinges of the old and the new SVM (P,) of each problem, and the `dual_parts` of its multipliers."""
        found = {}
        for k, part in self.svm.items():
            L = self.Z.shape[1]
            hinges = [np.maximum(0.0, 1.0 - part.y * (v @ part.Zt)) @ part.c for v in (old[k], new[k])]
            parts = dual_parts(part.Zt[:L].T, part.y[:, None], part.c[:, None], part.multipliers()[:, None])
            found[k] = np.array(hinges), *parts
        self.svm = {}
        self.crew.__exit__()
        return found

    def descend(self, seed: int, batch: int, shift: Array, svms: tuple[Array, Array, float] | None) -> None:
        """Begin gradient steps, of `batch` rows each, with distances around the point shift.

        svms: V, b and mu, for coordinates that follow F; None for those that are here.
        """
        whole = self._whole()
        reader = None if whole is not None else lambda i: self._again(self.train, i, self.sizes[i])
        target = self._fixed() if svms is None else partial(self._following, *svms)
        self.batches = Batches(whole, reader, self.sizes, batch, seed, shift, target)

    def _fixed(self) -> Target:
        Z = self.Z.astype(np.float32)
        return lambda rows: Z[rows]

    def _following(self, V: Array, b: Array, mu: float, rows: Array) -> Callable[[Array], Array]:
        """Return the Z-step of these rows, a function of F."""
        from ldsvm.solvers.box_qp import solve

        Y, C = self._signs(rows)
        return lambda F: solve(F, V, b, Y, penalties(C, mu))[0]

    def slopes(self, center: Array, width: Array, W: Array) -> Array:
        """Derivatives of half the squared residual of the next batch by centres, log-widths and weights, in a row."""
        assert self.batches is not None
        return self.batches.slopes(center, width, W)

    def worst(self, count: int) -> tuple[Array, Array]:
        """The rows that are fitted worst: |z - F|^2, in falling order, and their inputs."""
        R = self.Z - self.F
        misses = np.einsum("nl,nl->n", R, R)
        rows = np.argsort(-misses, kind="stable")[:count]
        place = np.sort(rows)
        X = self.inputs(place + self.offset)[1].astype(np.float32)
        return misses[rows], X[np.searchsorted(place, rows)]

    def _slices(self, width: int) -> Iterator[slice]:
        return row_blocks(len(self), 4 * width)

    def _signs(self, rows: slice | Array) -> tuple[Array, Array]:
        """Signs Y and penalties C of some rows, for all SVMs."""
        y = self.y[rows]
        Y, part = self.scheme.signs(y)
        return Y, part * self.C[y][:, None]
