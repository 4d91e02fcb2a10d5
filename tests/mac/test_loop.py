"""The loop: what it converges to, the order of its history, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ldsvm.mac.loop import solve
from ldsvm.mac.problem import Validation
from ldsvm.mac.state import Reason, Start
from ldsvm.maps import RBF, Linear
from ldsvm.solvers import linear_svm
from ldsvm.solvers.svm_problem import objective


@pytest.mark.parametrize("kind", ["ovr", "ovo"])
def test_z_reaches_the_map_and_the_objectives_meet(digits: Any, problem_of: Any, options: Any, kind: str) -> None:
    # as mu grows the quadratic-penalty method forces Z = F(X), and then both objectives are the same function
    X, y = digits[0][:90], digits[1][:90] % 3
    problem, start = problem_of(X, y, C=1.0, kind=kind)
    solution = solve(problem, start, options(tol=2e-3, mu_factor=4.0, mu_max=1e9))
    first, last = solution.history[0], solution.history[-1]
    assert solution.reason is Reason.CONVERGED
    assert last["distance"] < 1e-2 * first["distance"]
    assert last["penalised"] == pytest.approx(last["nested"], rel=5e-2)
    assert abs(first["penalised"] / first["nested"] - 1) > 0.1


def test_history_is_true(digits: Any, problem_of: Any, options: Any) -> None:
    # the last entry is recomputed from the model returned; mu only grows; at one mu the penalised objective only falls
    X, y = digits[0][:150], digits[1][:150] % 3
    problem, start = problem_of(X, y, C=1.0)
    out = solve(problem, start, options())
    F = out.mapping(X)
    last = out.history[-1]
    assert last["nested"] == pytest.approx(problem.nested(out.mapping, out.V, out.b, F), rel=1e-4)
    assert last["train_error"] == pytest.approx(np.mean(np.argmax(F @ out.V.T + out.b, axis=1) != y), abs=1e-9)
    assert [h["iteration"] for h in out.history] == list(range(out.n_iter + 1)) and out.best_iter == out.n_iter
    for a, b in zip(out.history[:-1], out.history[1:], strict=True):
        assert b["mu"] in (a["mu"], 1.5 * a["mu"])
        if a["mu"] == b["mu"]:
            assert b["penalised"] <= a["penalised"] * (1 + 1e-9)
        assert b["kkt"] < 1e-6 and b["gap"] < 1e-6


def test_linear_map_of_full_rank_is_no_worse_than_the_linear_svm(problem_of: Any, options: Any) -> None:
    # from Z = X, F = identity, MAC starts at the linear SVM itself and can only improve the nested objective
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) * [1.0, 2.0, 0.5]
    y = (X @ [1.0, -1.0, 2.0] + rng.normal(size=120) > 0.4).astype(np.intp)
    problem, _ = problem_of(X, y, C=0.5, family=Linear(0.0))
    V, b, _ = linear_svm.solve(X, problem.Y, problem.C)
    svm = float(objective(X, V, b, problem.Y, problem.C).sum())
    # the ridge term of the objective is not part of the linear SVM: lam = 1e-3 times |W|^2
    out = solve(problem, Start(X), options())
    hinge = [h["nested"] for h in out.history]
    assert hinge[0] == pytest.approx(svm + 1e-3 * 3, rel=1e-8)
    assert hinge[-1] <= hinge[0] * (1 + 1e-9)
    errors = np.mean((X @ V.T + b > 0).ravel() != y)
    assert out.history[-1]["train_error"] <= errors + 0.02


def test_two_classes_as_one_vs_all_are_two_opposite_svms(digits: Any, problem_of: Any, options: Any) -> None:
    # K = 2 written out as two SVMs: by symmetry V_1 = -V_0; the same as one SVM with twice the penalty terms
    X, y = digits[0][digits[1] < 2], digits[1][digits[1] < 2]
    one, start = problem_of(X, y, C=0.5)
    two = replace(one, Y=np.hstack([-one.Y, one.Y]), C=np.hstack([one.C, one.C]))
    changes = {"max_iter": 6, "tol": 1e-9}
    both, single = (solve(p, start, options(**changes)) for p in (two, one))
    np.testing.assert_allclose(both.V[0], -both.V[1], atol=1e-4)
    # one SVM with half the mu: E = R + 2 (1/2 v^2 + C hinge) + mu/2 q is twice 1/2 v^2 + C hinge + mu/4 q
    half, _ = problem_of(X, y, C=0.5, family=RBF(25, "random", "scale", 0.5e-3))
    half = replace(half, lam=0.5e-3)
    same = solve(half, start, options(mu=1.0, **changes))
    np.testing.assert_allclose(both.mapping(X), same.mapping(X), atol=1e-4)
    np.testing.assert_array_equal(
        both.mapping(X) @ both.V[1] + both.b[1] > 0, single.mapping(X) @ single.V[0] + single.b[0] > 0
    )


def test_validation_keeps_the_best_iteration(digits: Any, problem_of: Any, options: Any) -> None:
    # the model returned has the lowest error of the history on the held-out rows, recomputed with weights
    X, y = digits[0], digits[1]
    problem, start = problem_of(X[:200], y[:200], C=0.1)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 200)
    held = Validation(problem.regression.elsewhere(X[200:]), y[200:], weight)
    out = solve(replace(problem, validation=held), start, options(patience=4))
    wrong = np.argmax(out.mapping(X[200:]) @ out.V.T + out.b, axis=1) != y[200:]
    errors = [h["valid_error"] for h in out.history]
    assert out.reason is Reason.EARLY_STOPPING and out.n_iter > out.best_iter
    assert errors[out.best_iter] == min(errors) == pytest.approx(np.average(wrong, weights=weight), abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "callback", "reason", "n_iter"),
    [
        ({"max_iter": 3}, None, Reason.MAX_ITER, 3),
        ({"mu_max": 1.0}, None, Reason.MU_MAX, 0),
        ({"mu_max": 2.0, "tol": 0.1}, None, Reason.MU_MAX, None),
        ({"time_limit": 1e-9}, None, Reason.TIME_LIMIT, 0),
        ({}, lambda info: info["iteration"] == 2, Reason.CALLBACK, 2),
        ({"max_iter": 3}, lambda info: None, Reason.MAX_ITER, 3),
    ],
)
def test_reasons_to_end(
    digits: Any, problem_of: Any, options: Any, changes: Any, callback: Callable[..., Any], reason: Reason, n_iter: int
) -> None:
    problem, start = problem_of(digits[0][:100], digits[1][:100] % 3)
    out = solve(problem, start, options(**changes), callback)
    assert out.reason is reason
    assert n_iter is None or out.n_iter == n_iter
    assert all(h["mu"] <= max(2.0, changes.get("mu_max", np.inf)) for h in out.history)


def test_a_callback_cannot_change_the_history(digits: Any, problem_of: Any, options: Any) -> None:
    problem, start = problem_of(digits[0][:60], digits[1][:60] % 3)
    out = solve(problem, start, options(max_iter=2), lambda info: bool(info.clear()))
    assert [h["iteration"] for h in out.history] == [0, 1, 2]


def test_a_map_that_fits_any_coordinates_is_not_converged_at_the_start(
    digits: Any, problem_of: Any, options: Any
) -> None:
    # an interpolating F has Z = F(X) after every F-step, the first included, while the nested objective still falls
    X, y = digits[0][:40], digits[1][:40] % 3
    problem, start = problem_of(X, y, C=1.0, family=Linear(1e-6))
    start = Start(start.Z + 0.3 * np.random.default_rng(0).normal(size=start.Z.shape))
    out = solve(problem, start, options())
    assert out.history[0]["distance"] < 1e-2
    assert out.n_iter > 0 and out.history[-1]["nested"] < 0.9 * out.history[0]["nested"]


def test_converged_means_that_the_alternation_has_settled(digits: Any, problem_of: Any, options: Any) -> None:
    # a small |Z - F(X)| alone is no optimum: with a small C every Z-step is short while the objective still falls
    X, y = digits[0][:200], digits[1][:200]
    problem, start = problem_of(X, y, C=1e-3, family=RBF(60, "random", "scale", 1e-3))
    out = solve(problem, start, options())
    assert out.reason is Reason.CONVERGED
    before, last = out.history[-2:]
    assert before["mu"] == last["mu"] and before["penalised"] - last["penalised"] <= 1e-2 * before["penalised"]
