"""Adam: stochastic gradient steps with a separate rate for each number (Kingma & Ba, 2015)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldsvm.solvers.compiled import entry
from ldsvm.typing import Array

MEAN, SQUARE = 0.9, 0.99  # how much of the running means stays with each step
# Of an array's largest gradient: what is smaller moves less. Else a number that the objective hardly depends on,
# such as a centre far from all rows, would move as fast as any other, and without end.
FLOOR = 1e-3


class Adam:
    """Changes contiguous arrays in place; over `steps` steps the rate falls from `rate` to 0 along half a cosine.

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
        assert all(array.flags.c_contiguous for array in arrays)  # else what changes would be copies
        self.scales, self.rate, self.steps = scales, rate, steps
        self._arrays = [array.reshape(-1) for array in arrays]
        self._mean = [np.zeros_like(array) for array in self._arrays]
        self._square = [np.zeros_like(array) for array in self._arrays]
        self._done = 0

    def step(self, gradients: Sequence[Array]) -> None:
        """Take one step."""
        rate = 0.5 * self.rate * (1.0 + np.cos(np.pi * self._done / self.steps))
        self._done += 1
        # corrections for means that began at zero
        grown, root = 1.0 - MEAN**self._done, np.sqrt(1.0 - SQUARE**self._done)
        everything = zip(self._arrays, self.scales, self._mean, self._square, gradients, strict=True)
        for array, scale, mean, square, slope in everything:
            number = array.dtype.type
            _remember(mean, square, slope.reshape(-1), number(1.0 - MEAN), number(1.0 - SQUARE))
            # below the root of the smallest number squares are zero already
            least = max(FLOOR * float(np.sqrt(square.max(initial=0.0))), float(np.sqrt(np.finfo(array.dtype).tiny)))
            _move(array, mean, square, number(rate * scale * root / grown), number(least))


@entry
def _remember(mean, square, slope, fresh, anew):
    """Move the running means of a gradient and of its squares towards the current values by these shares."""
    for i in range(mean.size):
        mean[i] += fresh * (slope[i] - mean[i])
        square[i] += anew * (slope[i] * slope[i] - square[i])


@entry
def _move(array, mean, square, rate, least):
    for i in range(array.size):
        array[i] -= rate * mean[i] / (np.sqrt(square[i]) + least)
