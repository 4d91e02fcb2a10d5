"""When to end: early stopping on validation error, and the other reasons."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ldsvm.mac.state import Info, Options, Reason


@dataclass
class Stopping:
    """Watches the history of one run and remembers the best iteration.

    Best is the lowest validation error, ties to the lower nested objective; without validation rows the last.
    """

    options: Options
    best: tuple[float, float] = (float("inf"), float("inf"))
    best_iter: int = 0
    waited: int = 0

    @property
    def watched(self) -> dict[str, Any]:
        """What another process needs to watch on."""
        return {"best": self.best, "best_iter": self.best_iter, "waited": self.waited}

    def improved(self, info: Info) -> bool:
        """Take note of an iteration; True when it is the best so far."""
        error = info["valid_error"]
        if error is None:
            self.best_iter = info["iteration"]
            return True
        self.waited = 0 if error < self.best[0] else self.waited + 1
        if (error, info["nested"]) >= self.best:
            return False
        self.best, self.best_iter = (error, info["nested"]), info["iteration"]
        return True

    def reason(self, info: Info, scale: float, settled: bool) -> Reason | None:
        """Why to end after this iteration, or None.

        ``scale`` is |F(X)|, which |Z - F(X)| is compared with; ``settled`` tells that the alternation at fixed mu has
        converged, without which a small distance only means that the steps are short.
        """
        options = self.options
        if info["valid_error"] is not None and self.waited >= options.patience:
            return Reason.EARLY_STOPPING
        if settled and info["distance"] <= options.tol * scale:
            return Reason.CONVERGED
        if options.time_limit is not None and time.perf_counter() - options.begun >= options.time_limit:
            return Reason.TIME_LIMIT
        if info["iteration"] >= options.max_iter:
            return Reason.MAX_ITER
        return None
