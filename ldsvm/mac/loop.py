"""The only loop over iterations (Algorithm a:drsvm)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ldsvm import threads
from ldsvm.mac.f_step import f_step
from ldsvm.mac.g_step import g_step
from ldsvm.mac.problem import Problem
from ldsvm.mac.schedule import next_mu
from ldsvm.mac.state import Info, Options, Reason, Solution, Start, State
from ldsvm.mac.stopping import Stopping
from ldsvm.mac.z_step import z_step

Callback = Callable[[Info], bool | None]


def solve(problem: Problem, start: Start, options: Options, callback: Callback | None = None) -> Solution:
    """Run MAC from a start until a reason to stop.

    The history has one Info per iteration, the start being iteration 0: ``iteration, mu, nested, penalised, distance,
    train_error, valid_error, kkt, gap, seconds_z, seconds_g, seconds_f``. ``callback(info)`` is called after each;
    a true answer stops the run.
    """
    # The steps bring their own threads. Those of BLAS wait for a next call by running idle, on the same cores.
    with threads.alone():
        return _solve(problem, start, options, callback)


def _solve(problem: Problem, start: Start, options: Options, callback: Callback | None) -> Solution:
    stopping = Stopping(options)
    state, info = _begin(problem, start, options)
    history: list[Info] = []
    best, before = state, None
    while True:
        info |= _measure(problem, state, len(history))
        history.append(info)
        if stopping.improved(info):
            best = state
        mu = next_mu(state.mu, options.mu_factor, options.tol, before, info["penalised"])
        reason = stopping.reason(info, problem.distance(state.F, np.zeros_like(state.F)), settled=mu > state.mu)
        if callback is not None and callback(dict(info)):
            reason = Reason.CALLBACK
        if reason is None and mu > options.mu_max:
            reason = Reason.MU_MAX
        if reason is not None:
            return Solution(best.mapping, best.V, best.b, history, reason, len(history) - 1, stopping.best_iter)
        before = info["penalised"] if mu == state.mu else None
        state, info = _iterate(problem, replace(state, mu=mu), options)


def _begin(problem: Problem, start: Start, options: Options) -> tuple[State, Info]:
    """g and F for the starting coordinates; a warm start keeps its machines and map."""
    K, L = problem.Y.shape[1], start.Z.shape[1]
    clock = time.perf_counter()
    if start.mapping is not None and start.V is not None and start.b is not None:
        state = State(start.Z, start.mapping, problem.regression.values(start.mapping), start.V, start.b, options.mu)
        return state, {"kkt": None, "gap": None, "seconds_z": 0.0, "seconds_g": 0.0, "seconds_f": 0.0}
    mapping = problem.regression.fit(start.Z, options.mu)
    F = problem.regression.values(mapping)
    seconds_f, clock = time.perf_counter() - clock, time.perf_counter()
    state = State(start.Z, mapping, F, np.zeros((K, L)), np.zeros(K), options.mu)
    state, info = g_step(problem, state, options.g_solver)
    return state, info | {
        "kkt": None, "seconds_z": 0.0, "seconds_g": time.perf_counter() - clock, "seconds_f": seconds_f
    }  # fmt: skip


def _iterate(problem: Problem, state: State, options: Options) -> tuple[State, Info]:
    """One pass over Z, g and F, each timed."""
    out: Info = {}
    steps: dict[str, Callable[[State], tuple[State, Info]]] = {
        "z": lambda s: z_step(problem, s, options.z_solver),
        "g": lambda s: g_step(problem, s, options.g_solver),
        "f": lambda s: f_step(problem, s),
    }
    for name, step in steps.items():
        clock = time.perf_counter()
        state, info = step(state)
        out |= info | {f"seconds_{name}": time.perf_counter() - clock}
    return state, out


def _measure(problem: Problem, state: State, iteration: int) -> Info:
    return {
        "iteration": iteration,
        "mu": state.mu,
        "nested": problem.nested(state.mapping, state.V, state.b, state.F),
        "penalised": problem.penalised(state.mapping, state.V, state.b, state.F, state.Z, state.mu),
        "distance": problem.distance(state.Z, state.F),
        "train_error": problem.error(state.V, state.b, state.F),
        "valid_error": problem.validation_error(state.mapping, state.V, state.b),
    }
