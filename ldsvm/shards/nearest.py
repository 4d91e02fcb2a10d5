"""Which centre is nearest to a row, exactly and mostly in single precision."""

from __future__ import annotations

import numpy as np

from ldsvm.typing import Array

# Of float32: relative rounding, what the smallest numbers are off by, and a size well below the largest.
UNIT, TINY, LARGE = 2.0**-24, 2.0**-126, 2.0**120


class Nearest:
    """The answer of float64 arithmetic, so that it does not depend on how rows lie in blocks.

    By |x - c|^2 / 2 = |x|^2 / 2 - x'c + |c|^2 / 2, around the centres' mean, the nearest centre has the least
    |c|^2 / 2 - x'c. In float32 that is off by (D + 4) UNIT (|x| + |c|/2) |c| at most. A row is done again in float64
    only where the two least lie closer than twice that.

    Examples
    --------
    >>> Nearest(np.array([[0.0, 0.0], [4.0, 0.0]]))(np.array([[1.0, 7.0], [2.1, 0.0], [2.0 + 1e-12, 0.0]]))
    array([0, 1, 1])
    """

    def __init__(self, centers: Array) -> None:
        self.shift = centers.mean(axis=0)
        self.centers = centers - self.shift
        self.half = 0.5 * np.einsum("md,md->m", self.centers, self.centers)
        with np.errstate(over="ignore"):  # then no row is sure
            self._columns = np.ascontiguousarray(self.centers.T, dtype=np.float32)
            self._half = self.half.astype(np.float32)
        self._reach = float(np.sqrt(2.0 * self.half.max()))

    def __call__(self, x: Array) -> Array:
        """Numbers (n,) of the centres nearest to rows x (n, D) float64; the first of equals."""
        x = x - self.shift
        with np.errstate(over="ignore", invalid="ignore"):
            value = x.astype(np.float32) @ self._columns
            np.subtract(self._half, value, out=value)
            place = value.argmin(axis=1)
            every = np.arange(len(x))
            least = value[every, place]
            value[every, place] = np.inf
            apart = value.min(axis=1) - least
        size = np.sqrt(np.einsum("nd,nd->n", x, x))
        size = (size + 0.5 * self._reach) * self._reach
        error = (x.shape[1] + 4) * (UNIT * size + TINY)
        unsure = np.flatnonzero(~((apart > 2.0 * error) & (size < LARGE)))
        place[unsure] = (self.half - x[unsure] @ self.centers.T).argmin(axis=1)
        return place
