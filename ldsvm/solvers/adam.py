"""Stochastic gradient steps with a rate of their own for every number (Kingma & Ba, 2015)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldsvm.typing import Array

MEAN, SQUARE = 0.9, 0.99  # how much of the running means stays with each step
# Of an array's largest gradient: what is smaller moves less. Else a number that the objective hardly depends on,
# such as a centre far from all rows, would move as fast as any other, and without end.
FLOOR = 1e-3


class Adam:
    """Changes arrays in place, step by step; the rate falls from `rate` to 0 along half a cosine over `steps` steps.

    scales: of each array, multiplied with the rate: about so much a number changes in a step at the beginning.

    Examples
    --------
    >>> x = np.array([3.0, -2.0])
    >>> adam = Adam([x], [1.0], 0.1, 200)
    >>> for _ in range(200):
    ...     adam.step([2 * x])
    >>> bool(np.abs(x).max() < 1e-2)
    True
    """

    def __init__(self, arrays: Sequence[Array], scales: Sequence[float], rate: float, steps: int) -> None:
        self.arrays, self.scales, self.rate, self.steps = arrays, scales, rate, steps
        self._mean = [np.zeros_like(array) for array in arrays]
        self._square = [np.zeros_like(array) for array in arrays]
        self._done = 0

    def step(self, gradients: Sequence[Array]) -> None:
        """Take one step; the gradients are used as memory."""
        rate = 0.5 * self.rate * (1.0 + np.cos(np.pi * self._done / self.steps))
        self._done += 1
        # corrections for means that began at zero
        grown, root = 1.0 - MEAN**self._done, np.sqrt(1.0 - SQUARE**self._done)
        everything = zip(self.arrays, self.scales, self._mean, self._square, gradients, strict=True)
        for array, scale, mean, square, slope in everything:
            mean *= MEAN
            mean += (1.0 - MEAN) * slope
            square *= SQUARE
            np.square(slope, out=slope)
            slope *= 1.0 - SQUARE
            square += slope
            np.sqrt(square, out=slope)
            # below the root of the smallest number squares are zero already
            slope += max(FLOOR * float(slope.max(initial=0.0)), float(np.sqrt(np.finfo(slope.dtype).tiny)))
            np.divide(mean, slope, out=slope)
            slope *= rate * scale * root / grown
            array -= slope
