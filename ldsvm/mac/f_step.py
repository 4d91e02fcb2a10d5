"""The F-step: regularised regression of the coordinates on the inputs (section "The F step")."""

from __future__ import annotations

from dataclasses import replace

from ldsvm.mac.problem import Problem
from ldsvm.mac.state import Info, State


def f_step(problem: Problem, state: State) -> tuple[State, Info]:
    """Minimise the penalised objective over F. Info: ``distance`` |Z - F(X)|."""
    mapping = problem.regression.fit(state.Z, state.mu, state.mapping)
    F = problem.regression.values(mapping)
    return replace(state, mapping=mapping, F=F), {"distance": problem.distance(state.Z, F)}
