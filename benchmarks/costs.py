"""What an iteration on shards costs: work for each row, calls, bytes. Measured on one worker, it predicts others."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ldsvm import RowBlocks
from ldsvm.blocks import OnRay
from ldsvm.blocks.steps import together

CALLS, CLASSES = 300, 10


@dataclass(frozen=True)
class Costs:
    """Means over iterations: seconds of an iteration, those that the slowest worker worked, calls, bytes a worker."""

    rows: int
    workers: int
    seconds: float
    busy: float
    calls: float
    bytes: float

    def predict(self, workers: int, rows: int, base: float, each: float, speed: float = np.inf) -> float:
        """Return the seconds of an iteration on so many workers with so many rows together.

        Work is in proportion to a worker's rows, calls to the groups in which a worker of that size trains the linear
        SVMs, one takes `base` seconds and `each` for every worker, and all bytes go through the driver's link, at
        `speed` bytes a second.
        """
        work = self.busy * self.workers / self.rows * rows / workers
        calls = self.calls * _groups(rows / workers) / _groups(self.rows / self.workers)
        return work + calls * (base + each * workers) + self.bytes * workers / speed


def _groups(rows: float) -> int:
    return -(-CLASSES // together(int(rows), CLASSES))


def latencies() -> tuple[float, float]:
    """Return the seconds of a call that does nothing: those of any call, and those for each worker that is called."""
    X, y = np.zeros((8, 1)), np.arange(8) % 2
    counts, found = (1, 2, 4), []
    for workers in counts:
        rows = RowBlocks.arrays([(X, y)] * workers)
        with OnRay(workers).team(rows, None, None) as team:
            team.tell("look")
            team.call("__len__")
            clock = time.perf_counter()
            for _ in range(CALLS):
                team.call("__len__")
            found.append((time.perf_counter() - clock) / CALLS)
    each, base = np.polyfit(counts, found, 1)
    return max(float(base), 0.0), max(float(each), 0.0)
