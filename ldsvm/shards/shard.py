"""The rows of one worker and all that is kept of them during a fit: nothing of it ever moves but sums.

A `Shard` is told what to do by name (`Team.call`), the same in this process, in a thread or in a process of Ray's. All
its methods return small plain values: sums over its rows, counts, the largest of something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ldsvm import threads
from ldsvm.baselines import memory
from ldsvm.checks import check_labels, check_values, shown
from ldsvm.mac.scheme import Labels, Scheme
from ldsvm.mac.z_step import solver_by_name
from ldsvm.maps.features import Basis, BasisMap, Computed, FeatureSums, row_blocks
from ldsvm.maps.linear import Identity
from ldsvm.shards.batches import Batches
from ldsvm.shards.source import BlockError, RowBlocks
from ldsvm.solvers.block_svm import Pass, Rows, Sums, padded
from ldsvm.solvers.svm_problem import dual_parts, hinges
from ldsvm.typing import Array

KEPT = 0.5  # share of the free memory for inputs and features that are kept, over all shards of a machine


class Shard:
    """Some blocks of the training rows, and of the validation rows.

    memory: bytes for inputs and features that may be kept between passes; None for a share of what is free, 1 / beside
    of it. What does not fit is read, or computed, anew in every pass. n_threads: for its own work.
    """

    def __init__(
        self, train: RowBlocks, valid: RowBlocks | None, memory_bytes: int | None, beside: int, n_threads: int
    ) -> None:
        self.train, self.valid, self.n_threads = train, valid, n_threads
        free = memory.available() if memory_bytes is None else None
        self.budget = memory_bytes if memory_bytes is not None else int(KEPT * (free or 0) / beside)
        self.X: Any = None  # all inputs, where they may be kept
        self.sizes: list[int] = []
        self.offset = 0  # of the first row, in the order of all shards
        self.labels: Any = None
        self.alpha: Array | None = None  # multipliers of the last Z-step, if there was one
        self.svm: dict[int, Rows] = {}
        self.batches: Batches | None = None

    # Getting acquainted -------------------------------------------------------------------------------------------

    def look(self) -> tuple[Any, Array, int]:
        """Read every block once. Return labels, the rows of each, and the number of inputs."""
        self.sizes, self.X, self.free = [], None, self.budget
        labels, width = [], 0
        for i, block in enumerate(self.train.blocks):
            X, y = self._read(self.train, i)
            width = width or X.shape[1]
            if X.shape[1] != width:
                raise BlockError(f"{block.name}: has {X.shape[1]} inputs, the blocks before it have {width}.")
            self._keep(X, i)
            self.sizes.append(len(y))
            labels.append(np.asarray(y))
        self.labels = np.concatenate(labels)
        found, counts = np.unique(self.labels, return_counts=True)
        return found, counts, width

    def _keep(self, X: Any, i: int) -> None:
        """Put the inputs of block i into one array of all, if that may be kept; a single block is taken as it is.

        What Ray has is not kept: there it is in memory already.
        """
        sizes = [block.rows for block in self.train.blocks]
        if len(sizes) == 1 and X.nbytes <= self.free:
            self.X = X
            return
        if i == 0 and None not in sizes:
            whole = sum(size or 0 for size in sizes), X.shape[1]
            if whole[0] * whole[1] * X.itemsize <= self.free:
                self.X = np.empty(whole, X.dtype)
                self.free -= self.X.nbytes
        if self.X is not None:
            if not np.can_cast(X.dtype, self.X.dtype):
                self.X = self.X.astype(np.result_type(X.dtype, self.X.dtype))
            start = sum(self.sizes)
            self.X[start : start + len(X)] = X

    def begin(self, offset: int, classes: Any, scheme: Scheme, balance: Array, C: float, z_solver: str) -> None:
        """Learn what all shards know. offset: rows before these. balance (K,): weights of the classes."""
        self.offset, self.scheme, self.C = offset, scheme, C * balance
        self.y: Labels = np.searchsorted(classes, self.labels).astype(np.int32)
        self.z_solver = solver_by_name(z_solver)
        self.held: list[tuple[int, Labels]] = []
        for i, block in enumerate(self.valid.blocks if self.valid is not None else ()):
            y = np.asarray(self._read(self.valid, i)[1])
            place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
            if not np.array_equal(classes[place], y):
                unknown = y[classes[place] != y][0]
                raise BlockError(
                    f"{block.name}: has the label {shown(unknown)!r}, which is not among the training labels."
                )
            self.held.append((i, place.astype(np.int32)))

    def column_sums(self) -> Array:
        """Sum of x (D,)."""
        return self._sum(lambda x: x.sum(axis=0))

    def column_squares(self, mean: Array) -> Array:
        """Sum of (x - mean)^2 (D,)."""
        return self._sum(lambda x: np.square(x - mean).sum(axis=0))

    def cross_products(self, mean: Array) -> Array:
        """Sum of (x - mean)(x - mean)' (D, D)."""

        def product(x: Array) -> Array:
            centred = x - mean
            out: Array = centred.T @ centred
            return out

        return self._sum(product)

    def inputs(self, numbers: Array) -> tuple[Array, Array]:
        """Those of the rows with these numbers, ascending, that are here: their numbers and inputs (n, D)."""
        here = numbers[(numbers >= self.offset) & (numbers < self.offset + len(self))]
        found = [X[here[self._within(here, rows)] - self.offset - rows.start] for rows, X in self._parts()]
        return here, np.concatenate(found).astype(np.float32)

    def nearest(self, centers: Array, stride: int) -> tuple[Array, Array]:
        """One Lloyd step over every row whose number is a multiple of stride: sums (M, D) and counts (M,) by centre.

        In float64, so that which centre is nearest does not depend on how the rows lie in blocks.
        """
        M, D = centers.shape
        shift = centers.mean(axis=0)
        c = centers - shift
        half = 0.5 * np.einsum("md,md->m", c, c)
        sums, counts = np.zeros((M, D)), np.zeros(M)
        for rows, X in self._parts():
            first = -(self.offset + rows.start) % stride
            some = X[first::stride]
            for part in row_blocks(len(some), max(M, D)):
                x = some[part].astype(np.float64) - shift
                place = np.argmin(half - x @ c.T, axis=1)
                order = np.argsort(place, kind="stable")
                here, starts = np.unique(place[order], return_index=True)
                sums[here] += np.add.reduceat(x[order], starts, axis=0)
                counts += np.bincount(place, minlength=M)
        return sums + counts[:, None] * shift, counts

    # The map ------------------------------------------------------------------------------------------------------

    def use(self, basis: Basis) -> None:
        """Take a basis; features are kept where they may be."""
        self.basis, self.kept = basis, None
        if not isinstance(basis, Identity) and 4 * len(self) * basis.size <= self.free:
            Phi = np.empty((len(self), basis.size), np.float32)
            for rows, X in self._parts():
                basis.fill(X, Phi[rows], self.n_threads, _precision(X))
            self.kept = FeatureSums(Phi, n_threads=self.n_threads)

    def gram(self) -> Array:
        """Phi' Phi (M, M)."""
        total = np.zeros((self.basis.size,) * 2)
        for _, sums in self._features():
            total += sums.inner_gram()
        return total

    def start(self, points: Array) -> None:
        """Put each row at the point (K, L) of its class."""
        self.Z = points[self.y]
        self.alpha = None

    def cross(self) -> Array:
        """Phi' Z (M, L)."""
        total = np.zeros((self.basis.size, self.Z.shape[1]))
        for rows, sums in self._features():
            total += sums.cross(self.Z[rows])
        return total

    def map(self, W: Array) -> None:
        """F = Phi W on the rows here."""
        mapping = BasisMap(self.basis, W)
        self.F = np.empty((len(self), W.shape[1]))
        for rows, sums in self._features():
            self.F[rows] = sums.values(mapping)

    def measure(self, V: Array, b: Array) -> Array:
        """Sum of |z - F|^2 and of |F|^2, rows that g(F(x)) gets wrong, and the hinges at F and at Z of each machine."""
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

    def validate(self, W: Array, V: Array, b: Array) -> Array:
        """Validation rows that g(F(x)) gets wrong, and how many there are."""
        mapping, out = BasisMap(self.basis, W), np.zeros(2)
        for i, y in self.held:
            assert self.valid is not None
            X = self.valid.read(i)[0]
            F = mapping(X if X.dtype.kind == "f" else X.astype(np.float32)).astype(np.float64)
            out[0] += np.count_nonzero(self.scheme.classes(self.scheme.scores(F @ V.T + b)) != y)
            out[1] += len(y)
        return out

    # Z and g ------------------------------------------------------------------------------------------------------

    def z_step(self, V: Array, b: Array, mu: float) -> float:
        """Solve the Z-step's problem of every row; return the largest residual."""
        from ldsvm.solvers.box_qp import residual

        n, K = len(self), len(b)
        before, self.alpha = self.alpha, np.empty((n, K))
        self.Z = np.empty((n, V.shape[1]))
        worst = 0.0
        for rows in self._slices(K):
            Y, C = self._signs(rows)
            upper = 2.0 * C / mu
            near = None if before is None else before[rows]
            Z, alpha = self.z_solver(self.F[rows], V, b, Y, upper, near, n_threads=self.n_threads)
            worst = max(worst, float(np.max(residual(Z, alpha, V, b, Y, upper), initial=0.0)))
            self.Z[rows], self.alpha[rows] = Z, alpha
        return worst

    def svm_open(self, machines: list[int]) -> dict[int, Array]:
        """Set up these machines' problems on Z; return the `Rows.facts` of each."""
        whole, n = padded(self.Z), len(self)
        Y, C = np.empty((len(machines), n)), np.empty((len(machines), n))
        for rows in self._slices(self.scheme.n_machines):
            Y[:, rows], C[:, rows] = (part[:, machines].T for part in self._signs(rows))
        self.svm = {}
        for k, y, c in zip(machines, Y, C, strict=True):
            part = c > 0
            one = (whole, y, c) if part.all() else (np.ascontiguousarray(whole[:, part]), y[part], c[part])
            self.svm[k] = Rows(*one)
        return {k: rows.facts() for k, rows in self.svm.items()}

    def svm_pass(self, wanted: dict[int, Pass]) -> dict[int, Sums]:
        """Go over the rows once for each of the problems that want it."""
        machines = list(wanted)
        with threads.Blocks(len(machines), self.n_threads, least=1) as team:
            found = team.map(lambda part: [self.svm[k].do(wanted[k]) for k in machines[part]])
        return dict(zip(machines, [sums for some in found for sums in some], strict=True))

    def svm_close(self, old: dict[int, Array], new: dict[int, Array]) -> dict[int, tuple[Array, Array, Array]]:
        """Hinges of the old and the new machine (P,) of each problem, and the `dual_parts` of its multipliers."""
        found = {}
        for k, rows in self.svm.items():
            L = self.Z.shape[1]
            hinges = [np.maximum(0.0, 1.0 - rows.y * (v @ rows.Zt)) @ rows.c for v in (old[k], new[k])]
            parts = dual_parts(rows.Zt[:L].T, rows.y[:, None], rows.c[:, None], rows.alpha[:, None])
            found[k] = np.array(hinges), *parts
        self.svm = {}
        return found

    # Learned centres ----------------------------------------------------------------------------------------------

    def misses(self) -> float:
        """Sum of |z - F|^2."""
        R = self.Z - self.F
        return float(np.einsum("nl,nl->", R, R))

    def descend(self, seed: int, batch: int, shift: Array) -> None:
        """Begin gradient steps, of `batch` rows each, with distances around the point shift."""
        reader = None if self.X is not None else lambda i: self.train.read(i)[0]
        self.batches = Batches(self.X, reader, self.sizes, batch, seed, shift, self.Z.astype(np.float32))

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
        X = self.inputs(place + self.offset)[1]
        return misses[rows], X[np.searchsorted(place, rows)]

    # Rows ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(self.sizes)

    def _read(self, source: RowBlocks | None, i: int) -> tuple[Any, Any]:
        assert source is not None
        name = source.blocks[i].name
        X, y = source.read(i)
        try:
            if X.dtype.kind not in "biuf":
                raise ValueError(f"X is of type {X.dtype}, not of numbers")
            if X.dtype.kind == "f":
                check_values(X, source.columns)
            check_labels(y)
        except ValueError as error:
            raise BlockError(f"{name}: {error}") from error
        return X, y

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield consecutive rows and their inputs: all at once where they are kept, else block by block."""
        if self.X is not None:
            yield slice(0, len(self)), self.X
            return
        start = 0
        for i, size in enumerate(self.sizes):
            X = self.train.read(i)[0]
            if len(X) != size:
                raise BlockError(f"{self.train.blocks[i].name}: has {len(X):,} rows where it had {size:,} before.")
            yield slice(start, start + size), X
            start += size

    def _features(self) -> Iterator[tuple[slice, FeatureSums]]:
        if self.kept is not None:
            yield slice(0, len(self)), self.kept
            return
        for rows, X in self._parts():
            exact = isinstance(self.basis, Identity) and X.dtype.kind == "f"
            Phi = X if exact else Computed(self.basis, X, _precision(X))
            yield rows, FeatureSums(Phi, n_threads=self.n_threads)

    def _sum(self, function: Callable[[Array], Array]) -> Array:
        total: Any = 0.0
        for _, X in self._parts():
            for rows in row_blocks(*X.shape):
                total = total + function(X[rows].astype(np.float64))
        return np.asarray(total)

    def _slices(self, width: int) -> Iterator[slice]:
        return row_blocks(len(self), 4 * width)

    def _within(self, numbers: Array, rows: slice) -> Array:
        local = numbers - self.offset
        return (local >= rows.start) & (local < rows.stop)

    def _signs(self, rows: slice) -> tuple[Array, Array]:
        """Signs Y and penalties C of some rows, for all machines."""
        y = self.y[rows]
        Y, part = self.scheme.signs(y)
        return Y, part * self.C[y][:, None]


def _precision(X: Any) -> Any:
    """In which features are computed: in float64 what is float64, so that how rows lie in blocks does not show."""
    return np.float64 if X.dtype == np.float64 else np.float32
