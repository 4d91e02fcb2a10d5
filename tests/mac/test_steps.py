"""Each step minimises the penalised objective over its own block, on real digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ldsvm.mac.f_step import f_step
from ldsvm.mac.g_step import SOLVERS, g_step
from ldsvm.mac.problem import Problem
from ldsvm.mac.state import State
from ldsvm.mac.z_step import z_step
from ldsvm.maps import Linear

Z_SOLVERS = ["batched", "osqp", "qpsolvers:osqp"]
# qpsolvers calls osqp without an argument it will need, and repeats osqp's status; the residual is asserted instead
pytestmark = [
    pytest.mark.filterwarnings("ignore:The default value of raise_error:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:OSQP exited with status:UserWarning"),
]


def penalised(problem: Problem, s: State) -> float:
    return problem.penalised(s.mapping, s.V, s.b, s.F, s.Z, s.mu)


def begin(problem: Problem, Z: Any, mu: float = 2.0) -> State:
    mapping = problem.regression.fit(Z, mu)
    K = problem.Y.shape[1]
    state = State(Z, mapping, problem.regression.values(mapping), np.zeros((K, Z.shape[1])), np.zeros(K), mu)
    return g_step(problem, state)[0]


def test_objectives_equal_a_slow_loop(problem_of: Callable[..., Any]) -> None:
    # e:svm-nested and e:svm-qp term by term, one-vs-one with weights, at a point that is not optimal
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(17, 4)), np.arange(17) % 3
    weight = rng.uniform(0.5, 2.0, 17)
    problem, _ = problem_of(X, y, C=0.7, kind="ovo", weight=weight, family=Linear(1e-3))
    Z, V, b = rng.normal(size=(17, 2)), rng.normal(size=(3, 2)), rng.normal(size=3)
    mapping = problem.regression.fit(Z, 2.0)
    W = mapping.W
    F = X @ W

    def slow(at: Any) -> float:
        value = 1e-3 * float((W**2).sum()) + 0.5 * float((V**2).sum())
        for n in range(17):
            for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
                if y[n] in (i, j):
                    sign = 1 if y[n] == i else -1
                    value += 0.7 * weight[n] * max(0.0, 1.0 - sign * (V[k] @ at[n] + b[k]))
        return value

    quadratic = sum(weight[n] * float(((Z[n] - F[n]) ** 2).sum()) for n in range(17))
    assert problem.nested(mapping, V, b, F) == pytest.approx(slow(F), rel=1e-12)
    assert problem.penalised(mapping, V, b, F, Z, 3.0) == pytest.approx(slow(Z) + 1.5 * quadratic, rel=1e-12)
    assert problem.distance(Z, F) == pytest.approx(np.sqrt(quadratic), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ovr", "ovo"])
@pytest.mark.parametrize("g_solver", SOLVERS)
@pytest.mark.parametrize("z_solver", Z_SOLVERS)
def test_every_step_lowers_the_penalised_objective(
    digits: Any, problem_of: Callable[..., Any], z_solver: str, g_solver: str, kind: str
) -> None:
    # block coordinate descent at fixed mu: no step may raise it (1e-6 for solvers that stop at a tolerance)
    X, y = digits[0][digits[1] < 4][:80], digits[1][digits[1] < 4][:80]
    problem, start = problem_of(X, y, C=0.3, kind=kind)
    state = begin(problem, start.Z)
    values = [penalised(problem, state)]
    for _ in range(3):
        for step in (
            lambda s: z_step(problem, s, z_solver),
            lambda s: g_step(problem, s, g_solver),
            lambda s: f_step(problem, s),
        ):
            state, info = step(state)
            if "kkt" in info:
                assert info["kkt"] < 1e-5
            values.append(penalised(problem, state))
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert values[-1] < 0.9 * values[0]


@pytest.mark.parametrize("step", [z_step, g_step, f_step])
def test_no_perturbation_beats_a_step(digits: Any, problem_of: Callable[..., Any], step: Callable[..., Any]) -> None:
    # each step's answer is the minimum over its block: random moves of every size only raise the objective
    X, y = digits[0][:150], digits[1][:150] % 3
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 150)
    problem, start = problem_of(X, y, C=0.3, weight=weight)
    state, _ = step(problem, begin(problem, start.Z))
    least = penalised(problem, state)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        moved = state
        if step is z_step:
            moved = replace(state, Z=state.Z + size * rng.normal(size=state.Z.shape))
        elif step is g_step:
            moved = replace(state, V=state.V + size * rng.normal(size=state.V.shape), b=state.b - size)
        else:
            W = state.mapping.W + size * rng.normal(size=state.mapping.W.shape)
            mapping = type(state.mapping)(state.mapping.basis, W)
            moved = replace(state, mapping=mapping, F=problem.regression.values(mapping))
        assert penalised(problem, moved) > least * (1 - 1e-12)


def test_z_step_with_weights_equals_repeated_rows(digits: Any, problem_of: Callable[..., Any]) -> None:
    # a weight multiplies hinge and distance alike, so a row's coordinates do not depend on its weight
    X, y = digits[0][:60], digits[1][:60] % 3
    plain, start = problem_of(X, y, C=0.3)
    heavy = replace(plain, weight=np.full(60, 3.0), C=3.0 * plain.C)
    state = begin(plain, start.Z)
    np.testing.assert_allclose(z_step(plain, state)[0].Z, z_step(heavy, state)[0].Z, atol=1e-9)


def test_g_step_keeps_the_better_svm(problem_of: Callable[..., Any], digits: Any) -> None:
    # per problem: an SVM better than the solver's (LIBLINEAR is inexact) survives, a worse one is replaced
    X, y = digits[0][:100], digits[1][:100] % 3
    problem, start = problem_of(X, y, C=10.0)
    state = begin(problem, start.Z + 0.3 * np.random.default_rng(0).normal(size=start.Z.shape))
    spoiled = replace(state, V=state.V * np.array([[1.0], [0.0], [1.0]]))
    after, info = g_step(problem, spoiled, "liblinear")
    np.testing.assert_array_equal(after.V[[0, 2]], state.V[[0, 2]])
    assert after.V[1].any() and info["gap"] > 0


def test_gap_reported_is_that_of_the_new_svms(problem_of: Callable[..., Any], digits: Any) -> None:
    problem, start = problem_of(digits[0][:100], digits[1][:100] % 3, C=1.0)
    assert g_step(problem, begin(problem, start.Z))[1]["gap"] < 1e-8
