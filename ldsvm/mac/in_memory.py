"""The steps of an iteration on one array of rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ldsvm.mac.f_step import f_step
from ldsvm.mac.g_step import g_step
from ldsvm.mac.problem import Problem
from ldsvm.mac.state import Info, Model, Options, Start, State
from ldsvm.mac.steps import Steps
from ldsvm.mac.z_step import z_step


class InMemory(Steps):
    """One problem, from a start; `model` is that of the state."""

    def __init__(self, problem: Problem, start: Start, options: Options) -> None:
        self.problem, self.start, self.options = problem, start, options
        self.state: State

    @property
    def model(self) -> Model:  # type: ignore[override]
        return Model(self.state.mapping, self.state.V, self.state.b)

    def begin(self, mu: float) -> Info:
        problem, start = self.problem, self.start
        K, L = problem.Y.shape[1], start.Z.shape[1]
        idle: Info = {"kkt": None, "gap": None, "seconds_z": 0.0, "seconds_g": 0.0, "seconds_f": 0.0}
        if start.model is not None:
            self.restore(start.model)
            return idle
        clock = time.perf_counter()
        mapping = problem.regression.fit(start.Z, mu)
        F = problem.regression.values(mapping)
        seconds_f, clock = time.perf_counter() - clock, time.perf_counter()
        state = State(start.Z, mapping, F, np.zeros((K, L)), np.zeros(K), mu)
        self.state, info = g_step(problem, state, self.options.g_solver)
        return idle | info | {"seconds_g": time.perf_counter() - clock, "seconds_f": seconds_f}

    def iterate(self, mu: float) -> Info:
        problem, options, out = self.problem, self.options, Info()
        state = replace(self.state, mu=mu)
        steps: dict[str, Callable[[State], tuple[State, Info]]] = {
            "z": lambda s: z_step(problem, s, options.z_solver),
            "g": lambda s: g_step(problem, s, options.g_solver),
            "f": lambda s: f_step(problem, s),
        }
        for name, step in steps.items():
            clock = time.perf_counter()
            state, info = step(state)
            out |= info | {f"seconds_{name}": time.perf_counter() - clock}
        self.state = state
        return out

    def measure(self, mu: float) -> tuple[Info, float]:
        problem, s = self.problem, self.state
        return {
            "nested": problem.nested(s.mapping, s.V, s.b, s.F),
            "penalised": problem.penalised(s.mapping, s.V, s.b, s.F, s.Z, mu),
            "distance": problem.distance(s.Z, s.F),
            "train_error": problem.error(s.V, s.b, s.F),
            "valid_error": problem.validation_error(s.mapping, s.V, s.b),
        }, problem.distance(s.F, np.zeros_like(s.F))

    def restore(self, model: Model) -> None:
        F = self.problem.regression.values(model.mapping)
        self.state = State(self.start.Z, model.mapping, F, model.V, model.b, self.options.mu)
