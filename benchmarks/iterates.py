"""Real MAC iterates on MNIST, caught on their way into the Z-step and the g-step."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any
from unittest import mock

from ldsvm import LDSVMClassifier
from ldsvm.mac.z_step import z_step
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


def collect(X: Any, y: Any, *, L: int, C: float, iterations: int, n_basis: int = 1000) -> list[Iterate]:
    """Run MAC from the simplex start on X (N, D), y (N,) and keep every Z-step."""
    model = LDSVMClassifier(
        L, n_basis=n_basis, gamma=1 / 32, C=C, max_iter=iterations, tol=0.0, mu_max=3.0, random_state=0
    )
    prepared = model._prepare(X, y, None, None)
    caught: list[Iterate] = []

    def spy(problem: Any, state: Any, solver: str) -> Any:
        upper = 2.0 * problem.C / (state.mu * problem.weight[:, None])
        after, info = z_step(problem, state, solver)
        caught.append(Iterate(state.F, state.V, state.b, problem.Y, upper, state.alpha, after.Z))
        return after, info

    with mock.patch("ldsvm.mac.loop.z_step", spy), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopping at max_iter is the purpose here
        model._solve(prepared, None)
    return caught
