"""The features of one worker's rows, and what a ridge regression needs of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ldsvm.blocks.inputs import Inputs
from ldsvm.blocks.source import BlockError
from ldsvm.mac.scheme import Labels, Scheme
from ldsvm.mac.z_step import solver_by_name
from ldsvm.maps.features import Basis, BasisMap, Computed, FeatureEvaluation, FeatureSums
from ldsvm.maps.linear import Identity
from ldsvm.typing import Array


class Features(Inputs):
    """Maps on one basis, and the coordinates Z (n, L) that they are fitted to."""

    Z: Array
    F: Array
    kept: FeatureSums | None

    def begin(self, offset: int, classes: Any, scheme: Scheme, balance: Array, C: float, z_solver: str) -> None:
        """Learn what all shards know. offset: rows before these. balance (K,): weights of the classes."""
        self.offset, self.scheme, self.C = offset, scheme, C * balance
        self.y: Labels = np.searchsorted(classes, self.labels).astype(np.int32)
        self.z_solver = solver_by_name(z_solver)
        self.valid_y: list[Labels] = []
        for i, block in enumerate(self.valid.blocks if self.valid is not None else ()):
            X, y = self._read(self.valid, i)
            if X.shape[1] != self.width:
                raise BlockError(f"{block.name} has {X.shape[1]} inputs, the training rows have {self.width}.")
            known = set(classes.tolist())
            unknown = [label for label in np.unique(y).tolist() if label not in known]
            if unknown:
                raise BlockError(f"{block.name} has the label {unknown[0]!r}, which is not among the training labels.")
            self.valid_y.append(np.searchsorted(classes, y).astype(np.int32))

    def validation_sums(self) -> tuple[Array, Array]:
        """Validation rows of each class (K,), and sums of squares of their inputs (D,)."""
        counts, squares = np.zeros(self.scheme.n_classes), np.zeros(self.width)
        for i, y in enumerate(self.valid_y):
            counts += np.bincount(y, minlength=len(counts))
            squares += np.square(self._valid_inputs(i).astype(np.float64)).sum(axis=0)
        return counts, squares

    def use(self, basis: Basis) -> None:
        """Take a basis; features are kept if memory allows, first those of the validation rows."""
        self.basis, self.kept = basis, None
        self.left = 0 if isinstance(basis, Identity) else self.free
        self.valid_features = [self._room(len(y)) for y in self.valid_y]
        for i, Phi in enumerate(self.valid_features):
            if Phi is not None:
                self._fill(self._valid_inputs(i), Phi)
        if (Phi := self._room(len(self))) is not None:
            for rows, X in self._parts():
                self._fill(X, Phi[rows])
            self.kept = FeatureSums(Phi, n_threads=self.n_threads)

    def _room(self, rows: int) -> Array | None:
        """Return an array for the features of so many rows, where there is memory for it."""
        size = 4 * rows * self.basis.size
        if size > self.left or not size:
            return None
        self.left -= size
        return np.empty((rows, self.basis.size), np.float32)

    def _fill(self, X: Any, Phi: Array) -> None:
        self.basis.fill(X, Phi, self.n_threads, _precision(X))

    def normal(self) -> tuple[Array, Array]:
        """Phi' Phi (M, M) and Phi' Z (M, L)."""
        M = self.basis.size
        gram, cross = np.zeros((M, M)), np.zeros((M, self.Z.shape[1]))
        for rows, sums in self._features():
            gram, cross = sums.normal(self.Z[rows], gram, cross)
        return gram, cross

    def cross(self) -> Array:
        """Phi' (Z - F) (M, L), from the features of the rows whose Z is not F: the others are beyond every margin."""
        total = np.zeros((self.basis.size, self.Z.shape[1]))
        for rows, sums in self._features():
            moved = self.Z[rows] - self.F[rows]
            at = np.flatnonzero(moved.any(axis=1))
            total += sums.cross(moved[at], at)
        return total

    def map(self, W: Array) -> None:
        """F = Phi W on the rows here."""
        mapping = BasisMap(self.basis, W)
        self.F = np.empty((len(self), W.shape[1]))
        for rows, sums in self._features():
            self.F[rows] = sums.values(mapping)

    def validate(self, W: Array, V: Array, b: Array) -> Array:
        """Validation rows that g(F(x)) gets wrong, and how many there are."""
        out = np.zeros(2)
        for y, scores in self._valid_scores(W, V, b):
            out[0] += np.count_nonzero(self.scheme.classes(scores) != y)
            out[1] += len(y)
        return out

    def judged(self, W: Array, V: Array, b: Array, stride: int) -> list[tuple[Labels, Array]]:
        """Classes (n,) and scores of one of every `stride` validation rows, block by block."""
        return [(y[::stride], scores[::stride]) for y, scores in self._valid_scores(W, V, b)]

    def _valid_scores(self, W: Array, V: Array, b: Array) -> Iterator[tuple[Labels, Array]]:
        mapping = BasisMap(self.basis, W)
        for i, y in enumerate(self.valid_y):
            Phi = self.valid_features[i]
            F = FeatureEvaluation(self._phi(self._valid_inputs(i)) if Phi is None else Phi, self.n_threads).values(
                mapping
            )
            yield y, self.scheme.scores(F @ V.T + b)

    def _features(self) -> Iterator[tuple[slice, FeatureSums]]:
        if self.kept is not None:
            yield slice(0, len(self)), self.kept
            return
        for rows, X in self._parts():
            yield rows, FeatureSums(self._phi(X), n_threads=self.n_threads)

    def _phi(self, X: Any) -> Any:
        """Features of some rows that are not kept: numbers as they are for a linear map."""
        exact = isinstance(self.basis, Identity) and X.dtype.kind == "f"
        return X if exact else Computed(self.basis, X, _precision(X))

    def _valid_inputs(self, i: int) -> Any:
        """Inputs of a block of the validation rows."""
        return self._again(self.valid, i, len(self.valid_y[i]))


def _precision(X: Any) -> Any:
    """In which features are computed: in float64 what is float64, so that how rows lie in blocks does not show."""
    return np.float64 if X.dtype == np.float64 else np.float32
