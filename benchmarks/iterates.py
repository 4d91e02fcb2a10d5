"""Real MAC iterates on MNIST, caught on their way into the Z-step and the g-step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ldsvm import LDSVMClassifier, threads
from ldsvm.mac.in_memory import InMemory
from ldsvm.mac.loop import run
from ldsvm.mac.problem import Problem
from ldsvm.mac.state import Info, Options, Start
from ldsvm.mac.z_step import penalties, z_step
from ldsvm.training import options_of, prepare
from ldsvm.typing import Array


@dataclass(frozen=True)
class Iterate:
    """Inputs of one Z-step (F, V, b, Y, upper, start) and its output Z."""

    F: Array
    V: Array
    b: Array
    Y: Array
    upper: Array
    start: Array | None
    Z: Array

    @property
    def z_problem(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.F, self.V, self.b, self.Y, self.upper


class Watched(InMemory):
    """The steps as they are, with a look at the state before each iteration."""

    def __init__(self, problem: Problem, start: Start, options: Options) -> None:
        super().__init__(problem, start, options)
        self.caught: list[Iterate] = []

    def iterate(self, mu: float) -> Info:
        problem, before = self.problem, replace(self.state, mu=mu)
        upper = penalties(problem.C, mu, problem.weight)
        Z = z_step(problem, before, self.options.z_solver)[0].Z
        self.caught.append(Iterate(before.F, before.V, before.b, problem.Y, upper, before.alpha, Z))
        return super().iterate(mu)


def collect(X: Any, y: Any, *, L: int, C: float, iterations: int, n_basis: int = 1000) -> list[Iterate]:
    """Run MAC from the simplex start on X (N, D), y (N,) and keep every Z-step."""
    model = LDSVMClassifier(
        L, n_basis=n_basis, gamma=1 / 32, alpha=1e-3, C=C, max_iter=iterations, tol=0.0, mu_max=3.0, random_state=0
    )
    prepared = prepare(model, X, y, None, None)
    problem = replace(prepared.problem, C=C * prepared.problem.C)
    steps = Watched(problem, prepared.start, options_of(model))
    with threads.alone():
        run(steps, steps.options)
    return steps.caught
