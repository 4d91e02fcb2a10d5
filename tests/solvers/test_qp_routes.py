"""The Z-step by general QP solvers agrees with the exact one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ldsvm.mac.z_step import solver_by_name
from ldsvm.solvers.box_qp import residual, solve
from ldsvm.solvers.qp_routes import solve_any, solve_osqp

ROUTES = {"osqp": solve_osqp, "qpsolvers": partial(solve_any, solver="osqp")}
# qpsolvers calls osqp without the argument that osqp will make explicit
pytestmark = pytest.mark.filterwarnings("ignore:The default value of raise_error:PendingDeprecationWarning")


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("L", "K", "kind"), [(3, 1, "all"), (2, 4, "all"), (4, 3, "all"), (2, 3, "pairs")])
def test_agrees_with_the_exact_solver(route: str, L: int, K: int, kind: str) -> None:
    # two solvers, one strictly convex problem: closed form (K = 1), more SVMs than dimensions, one-vs-one
    rng = np.random.default_rng(K + L)
    N = 40
    V, b, F = rng.normal(size=(K, L)) * (1.0 + np.arange(K))[:, None], rng.normal(size=K), rng.normal(size=(N, L))
    Y = np.where(np.arange(N)[:, None] % K == np.arange(K), 1.0, -1.0) if K > 1 else np.sign(rng.normal(size=(N, 1)))
    upper = rng.uniform(0.1, 2.0, size=(N, K))
    if kind == "pairs":
        upper[np.arange(N), (np.arange(N) + 1) % K] = 0.0
    Z, _ = solve(F, V, b, Y, upper)
    Z2, alpha2 = ROUTES[route](F, V, b, Y, upper)
    np.testing.assert_allclose(Z2, Z, atol=1e-6)
    assert residual(Z2, alpha2, V, b, Y, upper).max() < 1e-5
    assert np.abs(Z - F).max() > 0.1


@pytest.mark.parametrize("route", ROUTES)
def test_rows_without_svms_stay(route: str) -> None:
    # no SVM takes part: the optimum is z = f
    F = np.array([[1.5, -2.0], [0.5, 3.0]])
    Z, alpha = ROUTES[route](F, np.eye(2), np.zeros(2), np.ones((2, 2)), np.zeros((2, 2)))
    np.testing.assert_array_equal(Z, F)
    assert not alpha.any()


def test_unknown_name_lists_the_choices() -> None:
    with pytest.raises(ValueError, match=r"z_solver='nonesuch' is not available; allowed: \['batched', 'osqp'"):
        solver_by_name("nonesuch")
