"""Ridge regression from a Gram matrix, factored once per ridge value."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ldsvm import threads
from ldsvm.typing import Array

KEPT = 3  # factors kept at a time: the schedule returns to its first values on every fit along a path of C


class Ridge:
    """Solves (G + ridge I) W = R for one symmetric positive semi-definite G and many ridges and right-hand sides.

    Cholesky in float64; where G + ridge I is not numerically positive definite (no ridge, duplicate features) the
    minimum-norm solution from the eigendecomposition of G, computed at most once. n_threads: of both, whatever the
    caller has limited BLAS to.

    Examples
    --------
    >>> import numpy as np
    >>> Ridge(np.diag([1.0, 3.0])).solve(np.array([[2.0], [8.0]]), ridge=1.0).ravel()
    array([1., 2.])
    """

    def __init__(self, gram: Array, n_threads: int = 1) -> None:
        self.gram, self.n_threads = gram, n_threads
        self._factors: dict[float, Array] = {}
        self._spectrum: tuple[Array, Array] | None = None

    def solve(self, rhs: Array, ridge: float) -> Array:
        """W (M, L) for the right-hand side R (M, L)."""
        if ridge > 0:
            factor = self._factor(ridge)
            if factor is not None:
                W: Array = scipy.linalg.cho_solve((factor, True), rhs, check_finite=False)
                return W
        if self._spectrum is None:
            with threads.limit(self.n_threads):
                self._spectrum = scipy.linalg.eigh(self.gram, check_finite=False)
        values, vectors = self._spectrum
        values = values + ridge
        kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
        U = vectors[:, kept]
        solution: Array = U @ ((U.T @ rhs) / values[kept, None])
        return solution

    def products(self, rows: Array, ridge: float) -> Array:
        """phi' (G + ridge I)^-1 phi for each row phi of an array (n, M): (n,)."""
        factor = self._factor(ridge) if ridge > 0 else None
        if factor is None:
            found: Array = np.einsum("nm,mn->n", rows, self.solve(rows.T, ridge))
            return found
        half = scipy.linalg.solve_triangular(factor, rows.T, lower=True, check_finite=False)
        return np.einsum("mn,mn->n", half, half)

    def _factor(self, ridge: float) -> Array | None:
        if ridge not in self._factors:
            matrix = self.gram.copy()
            matrix[np.diag_indices_from(matrix)] += ridge
            try:
                with threads.limit(self.n_threads):
                    factor, _ = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            except scipy.linalg.LinAlgError:
                return None
            while len(self._factors) >= KEPT:
                self._factors.pop(next(iter(self._factors)))
            self._factors[ridge] = factor
        return self._factors[ridge]
