"""When to end: early stopping on validation error, and the other reasons."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ldsvm.mac.state import Info, Options, Reason, Solution

# What helps where a run ended before it had converged.
REMEDIES = {
    Reason.MAX_ITER: "increase max_iter or mu_factor, loosen tol, or pass an eval_set or early_stopping=True to stop "
    "on validation error.",
    Reason.MU_MAX: "increase mu_max or loosen tol.",
    Reason.TIME_LIMIT: "raise time_limit, or lower max_iter or n_basis.",
}


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
        """What another process needs to continue."""
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


def unfinished(solution: Solution, options: Options) -> str | None:
    """Return a sentence on a run that ended before it had converged, with what helps; None for any other end."""
    reason = solution.reason
    if reason not in REMEDIES:
        return None
    name = reason.name.lower()
    limit = f"{name}={options.last_mu(validated=True) if reason is Reason.MU_MAX else getattr(options, name)}"
    if reason is Reason.TIME_LIMIT and solution.n_iter == 0:
        L, M = solution.V.shape[1], solution.mapping.n_basis
        return (
            f"The start alone took longer than {limit}, so no iteration was done: lower n_components (now {L}) or "
            f"n_basis (now {M}), or raise time_limit."
        )
    return f"MAC stopped at {limit} before converging: {REMEDIES[reason]}"
