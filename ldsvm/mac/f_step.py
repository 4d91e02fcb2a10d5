"""The F-step: regularised regression of the coordinates on the inputs (section "The F step")."""

from __future__ import annotations

from dataclasses import replace

from ldsvm.mac.problem import Problem
from ldsvm.mac.state import Info, State
from ldsvm.mac.z_step import Following


def f_step(problem: Problem, state: State) -> tuple[State, Info]:
    """Minimise the penalised objective over F, or lower it over F and Z where a map has no exact step.

    Info: ``distance`` |Z - F(X)|.
    """
    follower = Following(problem, state.V, state.b, state.mu)
    mapping, Z = problem.regression.fit_along(state.Z, state.mu, state.mapping, follower)
    F = problem.regression.values(mapping)
    return replace(state, mapping=mapping, F=F, Z=Z), {"distance": problem.distance(Z, F)}
