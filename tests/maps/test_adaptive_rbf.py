"""Learned centres and widths: derivatives by finite differences, an objective that only falls, a planted solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from ldsvm import LDSVMClassifier, fit_path
from ldsvm.mac.f_step import f_step
from ldsvm.mac.g_step import g_step
from ldsvm.mac.in_memory import InMemory
from ldsvm.mac.problem import Problem
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.start import simplex_points
from ldsvm.mac.state import Options, Start
from ldsvm.mac.z_step import Following, z_step
from ldsvm.maps import AdaptiveRBF
from ldsvm.maps.adaptive_rbf import AdaptiveRegression, LoweringInMemory
from ldsvm.maps.features import BasisMap
from ldsvm.maps.lowering import RANGE, Slopes
from ldsvm.maps.rbf import Gaussians
from ldsvm.solvers.adam import Adam
from ldsvm.solvers.box_qp import solve
from ldsvm.solvers.svm_problem import hinges

Floats = NDArray[np.float64]
Planted = Callable[[int], tuple[Floats, Floats, Floats]]
LAM, MU = 0.01, 2.0
OPTIONS = Options(MU, 1.5, 1e6, 10, 1e-2, 10, None, "batched", "ipm")


def regression(X: Any, n_basis: int = 4, weight: Any = None, steps: int = 200, **kw: Any) -> AdaptiveRegression:
    family = AdaptiveRBF(n_basis, "kmeans", kw.get("gamma", 1.0), LAM, steps)
    found = family.prepare(X, weight, np.random.RandomState(0), kw.get("n_threads", 1))
    assert isinstance(found, AdaptiveRegression)
    return found


def objective(mapping: Any, problem: AdaptiveRegression, Z: Floats, weight: Floats | None = None) -> float:
    rows = np.square(problem.values(mapping) - Z).sum(axis=1)
    return LAM * mapping.penalty + 0.5 * MU * float(rows.sum() if weight is None else weight @ rows)


def check_slopes(slopes: Slopes, point: list[Floats], value: Callable[[], float]) -> None:
    """Compare the derivatives with differences of the value at the point, whose numbers are moved one by one."""
    for array, slope in zip(point, (slopes.center, slopes.width, slopes.weight), strict=True):
        for place in np.ndindex(array.shape):
            step, at = 1e-6, array[place]
            values = []
            for moved in (at + step, at - step):
                array[place] = moved
                values.append(value())
            array[place] = at
            assert slope[place] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_finite_differences(weighted: bool) -> None:
    rng = np.random.default_rng(1)
    x, z, weight = rng.normal(size=(7, 3)), rng.normal(size=(7, 2)), rng.uniform(0.5, 2, 7) if weighted else None
    point = [rng.normal(size=(4, 3)), rng.normal(size=4) * 0.3 - 1, rng.normal(size=(4, 2))]
    slopes, other = Slopes(7, 4, 3, 2, np.float64), Slopes(7, 4, 3, 2, np.float64)
    other(x + 1.0, z, weight, *point)  # what an earlier batch has left there
    slopes(x, z, weight, *point)
    check_slopes(slopes, point, lambda: other(x, z, weight, *point))


def test_the_gradient_is_that_of_the_objective_whose_coordinates_follow() -> None:
    """By finite differences of min_z 1/2 |z - f|^2 + the hinges at z over mu: its derivative is f - z."""
    rng = np.random.default_rng(3)
    x, Y = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], size=(40, 3))
    V, b, C = rng.normal(size=(3, 2)), rng.normal(size=3), rng.uniform(0, 3, size=(40, 3))
    point = [rng.normal(size=(4, 3)), rng.normal(size=4) * 0.3 - 1, rng.normal(size=(4, 2))]
    seen = []

    def follow(F: Floats) -> Floats:
        Z, alpha = solve(F, V, b, Y, 2 * C / MU)
        seen.append(((alpha > 0) & (alpha < 2 * C / MU)).sum())
        hinge.append(float(hinges(Z, V, b, Y, C).sum()) / MU)
        return Z

    hinge: list[float] = []
    slopes, other = Slopes(40, 4, 3, 2, np.float64), Slopes(40, 4, 3, 2, np.float64)
    slopes(x, follow, None, *point)
    assert seen[0] > 5  # the interesting case: coordinates on a margin
    check_slopes(slopes, point, lambda: other(x, follow, None, *point) + hinge[-1])


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_coordinates_that_follow_lower_the_objective_further_than_those_that_stay(weighted: bool) -> None:
    X, y = load_digits(return_X_y=True)
    scheme, weight = Scheme(10), np.random.default_rng(0).uniform(0.3, 2, len(X)) if weighted else np.ones(len(X))
    Y, _ = scheme.signs(y)
    regression = AdaptiveRBF(20, "random", 0.1, LAM, 1_000, follows=True).prepare(
        (X / 16).astype(np.float32), weight if weighted else None, np.random.RandomState(0), 1
    )
    problem = Problem(regression, y, scheme, Y, np.ones_like(Y) * weight[:, None], weight, LAM)
    steps = InMemory(problem, Start(simplex_points(10, 9)[y]), OPTIONS)
    steps.begin(MU)
    state, _ = g_step(problem, z_step(problem, steps.state)[0])

    def value(mapping: Any, Z: Floats) -> float:
        return problem.penalised(mapping, state.V, state.b, regression.values(mapping), Z, MU)

    before = value(state.mapping, state.Z)
    after, _ = f_step(problem, state)
    still = AdaptiveRegression(regression.X, regression.weight, regression.begin, LAM, 5_000, regression.seed, 1).fit(
        state.Z, MU, state.mapping
    )
    resting = Following(problem, state.V, state.b, MU)(slice(None), regression.values(still))
    assert value(still, state.Z) <= before
    assert before - value(after.mapping, after.Z) > 1.2 * (before - value(still, resting))
    best = Following(problem, state.V, state.b, MU)(slice(None), after.F)
    assert value(after.mapping, best) == pytest.approx(value(after.mapping, after.Z), rel=0.05)


@pytest.mark.parametrize("D", [1, 2, 3, 6])  # NumPy negates columns of rows of four numbers wrongly
def test_the_gradient_in_single_precision_is_that_in_double(D: int) -> None:
    rng = np.random.default_rng(D)
    shapes = (50, D), (50, 3), (50,), (8, D), (8,), (8, 3)
    given = [rng.uniform(-1, 1, size=shape) for shape in shapes]
    single, double = Slopes(50, 8, D, 3), Slopes(50, 8, D, 3, np.float64)
    assert single(*(array.astype(np.float32) for array in given)) == pytest.approx(double(*given), rel=1e-4)
    for name in ("center", "width", "weight"):
        found, right = getattr(single, name), getattr(double, name)
        np.testing.assert_allclose(found, right, atol=1e-4 * np.abs(right).max())


@pytest.mark.slow
def test_centres_and_widths_of_a_planted_network_are_found(planted: Planted) -> None:
    X, Z, centers = planted(400)
    problem = regression(X, steps=1500)
    first = objective(LoweringInMemory(problem, Z, MU, 1).lower(problem.begin).mapping, problem, Z)
    mapping = problem.fit(Z, MU)
    assert isinstance(mapping, BasisMap) and isinstance(mapping.basis, Gaussians)
    assert objective(mapping, problem, Z) < 0.05 * first
    distances = np.linalg.norm(mapping.basis.centers[:, None] - centers, axis=2)
    assert distances.min(axis=0).max() < 0.25
    order = distances.argmin(axis=0)
    assert np.all(np.diff(np.asarray(mapping.basis.gamma)[order]) > 0)  # planted as 0.5, 1, 2 and 4


@pytest.mark.parametrize("weighted", [False, True])
def test_no_step_raises_the_objective_and_its_value_is_right(planted: Planted, weighted: bool) -> None:
    X, Z, _ = planted(300)
    rng = np.random.default_rng(2)
    weight = rng.uniform(0.2, 3, len(X)) if weighted else None
    problem = regression(X, 6, weight, steps=20)
    mapping, targets = problem.fit(Z, MU), Z
    for _ in range(6):  # as in MAC: other coordinates, the last map to begin from
        targets = targets + 0.2 * rng.normal(size=Z.shape)
        assert isinstance(mapping, BasisMap) and isinstance(mapping.basis, Gaussians)
        kept = LoweringInMemory(problem, targets, MU, 20).solve(mapping.basis)
        before = objective(kept.mapping, problem, targets, weight)
        assert kept.value == pytest.approx(before, rel=1e-6)
        mapping = problem.fit(targets, MU, mapping)
        assert objective(mapping, problem, targets, weight) <= before * (1 + 1e-9)


def test_a_weight_of_two_counts_as_two_rows(planted: Planted) -> None:
    X, Z, _ = planted(60)
    weight = np.arange(60) % 3 + 1
    times = np.repeat(np.arange(60), weight)
    one, other = regression(X, weight=weight.astype(float)), regression(X[times])
    basis = Gaussians(X[:4], np.array([0.5, 1.0, 2.0, 3.0]))
    first, second = LoweringInMemory(one, Z, MU, 1).solve(basis), LoweringInMemory(other, Z[times], MU, 1).solve(basis)
    np.testing.assert_allclose(first.mapping.W, second.mapping.W, rtol=1e-8)
    assert first.value == pytest.approx(second.value, rel=1e-9)


def test_what_diverges_is_not_kept(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Z, _ = planted(100)
    problem = regression(X)
    lost = BasisMap(Gaussians(np.full_like(problem.begin.centers, np.nan), 1.0), np.ones((problem.begin.size, 3)))
    monkeypatch.setattr(LoweringInMemory, "descend", lambda *_: lost)
    mapping = problem.fit(Z, MU)
    assert isinstance(mapping, BasisMap) and mapping.basis is problem.begin
    assert np.isfinite(mapping.W).all()


def test_useless_centres_move_to_the_rows_that_are_fitted_worst(planted: Planted) -> None:
    X, Z, _ = planted(200)
    problem = regression(X)
    centers = np.array([[0.0, 0.0], [0.0, 0.0], [500.0, 0.0], [1.0, 1.0]], np.float32)
    step = LoweringInMemory(problem, Z, MU, 1)
    old = step.solve(Gaussians(centers, 1.0))
    worst = np.argsort(-np.square(problem.values(old.mapping) - Z).sum(axis=1))[:2]
    revived = step.revive(old)
    np.testing.assert_array_equal(revived.centers[[0, 3]], centers[[0, 3]])
    np.testing.assert_array_equal(np.sort(revived.centers[[1, 2]], axis=0), np.sort(X[worst], axis=0))
    useful = step.solve(Gaussians(X[:4], 1.0))
    assert step.revive(useful) is useful.mapping.basis


def test_an_offset_of_the_inputs_changes_nothing(planted: Planted) -> None:
    X, Z, _ = planted(200)
    moved = X.astype(np.float64) + 1000.0
    a, b = regression(X.astype(np.float64)), regression(moved)
    np.testing.assert_allclose(a.values(a.fit(Z, MU)), b.values(b.fit(Z, MU)), atol=0.05 * np.abs(Z).max())


def test_widths_stay_in_their_range_and_the_same_seed_gives_the_same_bits(planted: Planted) -> None:
    X, Z, _ = planted(150)
    maps = [regression(X, 8, steps=60, n_threads=n, gamma=0.3).fit(1e3 * Z, MU) for n in (1, 1)]
    for mapping in maps:
        assert isinstance(mapping, BasisMap) and isinstance(mapping.basis, Gaussians)
        assert 0.3 / RANGE * 0.99 <= np.min(mapping.basis.gamma) <= np.max(mapping.basis.gamma) <= 0.3 * RANGE * 1.01
    np.testing.assert_array_equal(maps[0](X), maps[1](X))


@pytest.mark.slow
def test_the_estimator_needs_fewer_basis_functions_and_its_objective_falls_at_fixed_mu() -> None:
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    given = {"n_basis": 20, "gamma": 0.05, "random_state": 0, "n_jobs": 1, "center_steps": 1000}
    errors = {}
    for kind in ("rbf", "adaptive_rbf"):
        model = LDSVMClassifier(map=kind, **given).fit(X[:1200], y[:1200], eval_set=(X[1200:], y[1200:]))
        errors[kind] = model.history_[model.best_iter_]["valid_error"]
        pairs = zip(model.history_, model.history_[1:], strict=False)
        assert all(b["penalised"] <= a["penalised"] * (1 + 1e-9) for a, b in pairs if a["mu"] == b["mu"])
    assert errors["adaptive_rbf"] < 0.75 * errors["rbf"]
    assert model.centers_.shape == (20, 64) and model.gamma_.shape == (20,) and model.n_basis_ == 20
    np.testing.assert_allclose(model.transform(X[:50]), model.map_(X[:50]))


@pytest.mark.slow
def test_a_path_over_C_is_what_single_fits_give() -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    model = LDSVMClassifier(map="adaptive_rbf", n_basis=10, gamma=0.002, center_steps=300, n_jobs=1, random_state=0)
    for one in fit_path(model, X, y, [0.1, 1.0], callback=lambda _, info: info["iteration"] == 3):
        alone = LDSVMClassifier(**one.get_params()).fit(X, y, callback=lambda info: info["iteration"] == 3)
        np.testing.assert_array_equal(one.latent_coef_, alone.latent_coef_)
        np.testing.assert_array_equal(one.centers_, alone.centers_)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_adam_takes_steps_of_its_rate_whatever_the_gradients_size(kind: type) -> None:
    for size in (1e-15, 1.0, 1e15):
        x = np.zeros(3, kind)
        Adam([x], [2.0], 0.1, 10).step([(size * np.array([1.0, -1.0, 0.0])).astype(kind)])
        np.testing.assert_allclose(x, [-0.2, 0.2, 0.0], rtol=2e-3)


def test_adam_leaves_alone_what_the_objective_hardly_depends_on() -> None:
    x = np.zeros(3, np.float32)
    adam = Adam([x], [1.0], 0.1, 100)
    for _ in range(100):
        adam.step([np.array([1.0, 1e-12, 1e-30], np.float32)])
    assert x[0] < -1 and abs(x[1]) < 1e-6 and abs(x[2]) < 1e-20
    alone = np.zeros(1, np.float32)
    Adam([alone], [1.0], 0.1, 10).step([np.array([1e-30], np.float32)])
    assert abs(alone[0]) < 1e-6


@pytest.mark.parametrize("gamma", [1e-6, 0.05, 10.0])
def test_centres_stay_near_the_data_and_the_map_is_the_formula(gamma: float) -> None:
    X, y = load_digits(return_X_y=True)
    X = X[:400] / 16
    model = LDSVMClassifier(map="adaptive_rbf", n_basis=15, gamma=gamma, center_steps=300, random_state=0, n_jobs=1)
    model.fit(X, y[:400], callback=lambda info: info["iteration"] == 4)
    assert np.abs(model.centers_).max() < 10
    squares = np.square(X[:, None] - model.centers_.astype(np.float64)).sum(axis=2)
    np.testing.assert_allclose(model.transform(X), np.exp(-model.gamma_ * squares) @ model.map_.W, atol=1e-6)
