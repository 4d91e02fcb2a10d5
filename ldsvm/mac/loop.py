"""The only loop over iterations (Algorithm a:drsvm)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ldsvm import threads
from ldsvm.mac.in_memory import InMemory
from ldsvm.mac.problem import Problem
from ldsvm.mac.schedule import next_mu
from ldsvm.mac.state import Info, Options, Progress, Reason, Solution, Start
from ldsvm.mac.steps import Steps
from ldsvm.mac.stopping import Stopping

Callback = Callable[[Info], bool | None]


class Keeper(Protocol):
    """Where a run's progress is kept, for another process to go on from."""

    def load(self) -> Progress | None:
        """Return what was kept last, None when there is nothing."""

    def save(self, progress: Progress) -> None:
        """Keep it, whole or not at all."""


def solve(problem: Problem, start: Start, options: Options, callback: Callback | None = None) -> Solution:
    """Run MAC from a start until a reason to stop, on rows in memory; see `run`."""
    # The steps bring their own threads. Those of BLAS wait for a next call by running idle, on the same cores.
    with threads.alone():
        return run(InMemory(problem, start, options), options, callback)


def run(
    steps: Steps, options: Options, callback: Callback | None = None, keeper: Keeper | None = None
) -> Solution:  # fmt: skip
    """Alternate the steps until a reason to stop.

    The history has one Info per iteration, the start being iteration 0: ``iteration, mu, nested, penalised, distance,
    train_error, valid_error, kkt, gap, seconds_z, seconds_g, seconds_f``. ``callback(info)`` is called after each;
    a true answer stops the run. ``keeper`` is told after each how to go on; where it knows already, the run goes on
    from there.
    """
    kept = None if keeper is None else keeper.load()
    if kept is None:
        stopping, history, before, mu = Stopping(options), [], None, options.mu
        info = steps.begin(mu)
        best = steps.model
    else:
        stopping, history, before, mu = Stopping(options, **kept.watched), kept.history, kept.before, kept.mu
        best = kept.best
        if len(history) > options.max_iter:
            return Solution(*best, history, Reason.MAX_ITER, len(history) - 1, stopping.best_iter)
        steps.restore(kept.now)
        info = steps.iterate(mu)
    while True:
        measured, size = steps.measure(mu)
        info |= {"iteration": len(history), "mu": mu} | measured
        history.append(info)
        if stopping.improved(info):
            best = steps.model
        following = next_mu(mu, options.mu_factor, options.tol, before, info["penalised"])
        reason = stopping.reason(info, size, settled=following > mu)
        if callback is not None and callback(dict(info)):
            reason = Reason.CALLBACK
        if reason is None and following > options.last_mu(info["valid_error"] is not None):
            planned = options.mu_max is None and info["valid_error"] is None
            reason = Reason.SETTLED if planned else Reason.MU_MAX
        before, mu = info["penalised"] if following == mu else None, following
        if keeper is not None:
            keeper.save(Progress(history, best, steps.model, mu, before, stopping.watched))
        if reason is not None:
            return Solution(*best, history, reason, len(history) - 1, stopping.best_iter)
        info = steps.iterate(mu)
