"""Which centre is nearest to a row, exactly and mostly in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldsvm.typing import Array

# By precision: relative rounding, what the smallest numbers are off by, and sizes between which it is good enough.
ROUNDING: dict[Any, tuple[float, float, float, float]] = {
    np.float32: (2.0**-24, 2.0**-126, 2.0**-60, 2.0**60),
    np.float64: (2.0**-53, 2.0**-1022, -1.0, np.inf),
}


class Nearest:
    """The first of the centres that float64 arithmetic cannot tell from the nearest, however rows lie in blocks.

    By |x - c|^2 / 2 = |x|^2 / 2 - x'c + |c|^2 / 2, around the centres' mean, the nearest centre has the least
    |c|^2 / 2 - x'c. With a relative rounding u that is off by (D + 6) u (|x| + |c|/2) |c| at most. In float32 a row is
    done where the two least lie farther apart than twice that, the others are done again in float64.

    Examples
    --------
    >>> Nearest(np.array([[0.0, 0.0], [4.0, 0.0]]))(np.array([[1.0, 7.0], [2.1, 0.0], [2.0 + 1e-12, 0.0]]))
    array([0, 1, 1])
    """

    def __init__(self, centers: Array) -> None:
        self.shape = centers.shape
        with np.errstate(over="ignore", invalid="ignore"):  # infinity, and then no row is sure
            self.shift = centers.mean(axis=0).astype(np.float32)
            if not np.isfinite(self.shift).all():
                self.shift = centers.mean(axis=0)
            centers = centers - self.shift
            half = 0.5 * np.einsum("md,md->m", centers, centers)
            self.reach = float(np.sqrt(2.0 * half.max()))
            rows = np.vstack([-centers.T, half])
            self.operands = {dtype: np.ascontiguousarray(rows, dtype=dtype) for dtype in ROUNDING}

    def __call__(self, x: Array) -> Array:
        """Numbers (n,) of the centres nearest to rows x (n, D), float32 or float64."""
        value, error = self._values(x, np.float32)
        place = value.argmin(axis=1)
        every = np.arange(len(x))
        least = value[every, place]
        value[every, place] = np.inf
        with np.errstate(invalid="ignore"):
            unsure = np.flatnonzero(~(value.min(axis=1) - least > 2.0 * error))
        if len(unsure):
            value, error = self._values(x[unsure], np.float64)
            place[unsure] = (value <= (value.min(axis=1) + 2.0 * error)[:, None]).argmax(axis=1)
        return place

    def _values(self, x: Array, dtype: Any) -> tuple[Array, Array]:
        """|c|^2 / 2 - x'c (n, M), and how far they may be off (n,): infinity where the precision is not good enough."""
        unit, tiny, small, large = ROUNDING[dtype]
        moved = np.ones((len(x), x.shape[1] + 1), dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            # in the precision of x and the shift: of two float32 numbers the difference is rounded once
            kind = np.result_type(x, self.shift, dtype)
            np.subtract(x, self.shift, out=moved[:, :-1], casting="same_kind", dtype=kind)
            size = np.sqrt(np.einsum("nd,nd->n", moved[:, :-1], moved[:, :-1])).astype(np.float64)
            error = (x.shape[1] + 6) * (unit * (size + 0.5 * self.reach) * self.reach + tiny)
            value = moved @ self.operands[dtype]
        return value, np.where((size < large) & (small < self.reach < large), error, np.inf)
