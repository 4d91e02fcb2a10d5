"""Centres learned by L-BFGS: derivatives by finite differences, a planted network, an objective that only falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.datasets import load_digits

from ldsvm import LDSVMClassifier
from ldsvm.mac.start import simplex_points
from ldsvm.maps import AdaptiveRBF, variable_projection
from ldsvm.maps.adaptive_rbf import AdaptiveRegression
from ldsvm.maps.features import BasisMap
from ldsvm.maps.lowering import RANGE
from ldsvm.maps.rbf import Gaussians
from ldsvm.maps.variable_projection import PARTS, ROWS, Projected

Floats = NDArray[np.float64]
Planted = Callable[[int], tuple[Floats, Floats, Floats]]
LAM, MU = 0.01, 2.0


def regression(X: Any, M: int = 4, weight: Any = None, steps: int | str = "auto", gamma: float = 1.0) -> Any:
    found = AdaptiveRBF(M, "kmeans", gamma, LAM, steps).prepare(X, weight, np.random.RandomState(0), 1)
    assert isinstance(found, AdaptiveRegression)
    return found


def objective(mapping: BasisMap, X: Floats, Z: Floats, weight: Floats | None = None) -> float:
    """J by its definition."""
    squares = np.square(mapping.basis(X, np.float64) @ mapping.W - Z).sum(axis=1)
    return LAM * float(np.square(mapping.W).sum()) + 0.5 * MU * float(
        squares.sum() if weight is None else weight @ squares
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_the_objective_whose_weights_are_the_best_ones(weighted: bool) -> None:
    """In double precision, by differences of the value, in which the weights are solved for anew."""
    rng = np.random.default_rng(1)
    x, z, weight = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.uniform(0.5, 2, 40) if weighted else None
    center, width = rng.normal(size=(4, 3)), rng.normal(size=4) * 0.3 - 1
    J = Projected(x, z, weight, 4, 0.3, dtype=np.float64)
    found = J(center, width)[1:3]
    for array, slopes in zip((center, width), found, strict=True):
        for place in np.ndindex(array.shape):
            at, values = array[place], []
            for array[place] in (at + 1e-5, at - 1e-5):
                values.append(J(center, width)[0])
            array[place] = at
            assert slopes[place] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-6, abs=1e-8)


def test_its_value_is_the_objective_and_its_weights_are_the_best_ones(planted: Planted) -> None:
    X, Z, centers = planted(100)
    weight = np.random.default_rng(0).uniform(0.5, 2, 100)
    value, _, _, W = Projected(X, Z, weight, 4, 2 * LAM / MU)(centers, np.zeros(4))
    mapping = BasisMap(Gaussians(centers, 1.0), W)
    assert MU * value == pytest.approx(objective(mapping, X, Z, weight), rel=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(10):
        other = BasisMap(mapping.basis, W + 0.01 * rng.normal(size=W.shape))
        assert objective(other, X, Z, weight) > objective(mapping, X, Z, weight)


def test_centres_and_widths_of_a_planted_network_are_found(planted: Planted) -> None:
    X, Z, centers = planted(400)
    problem = regression(X)
    first = objective(problem.on(problem.begin).fit(Z, MU), X, Z)
    mapping = problem.fit(Z, MU)
    assert objective(mapping, X, Z) < 0.02 * first
    distances = np.linalg.norm(mapping.basis.centers[:, None] - centers, axis=2)
    assert distances.min(axis=0).max() < 0.05
    order = distances.argmin(axis=0)
    assert np.all(np.diff(np.asarray(mapping.basis.gamma)[order]) > 0)  # planted as 0.5, 1, 2 and 4


def test_weights_of_two_count_as_two_rows(planted: Planted) -> None:
    X, Z, _ = planted(60)
    weight = np.arange(60) % 3 + 1
    times = np.repeat(np.arange(60), weight)
    point = X[:4], np.log(np.array([0.5, 1.0, 2.0, 3.0], np.float32))
    some = Projected(X, Z, weight.astype(float), 4, 0.1)(*point)
    repeated = Projected(X[times], Z[times], None, 4, 0.1)(*point)
    for one, other in zip(some, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_parts_blocks_and_threads_of_rows_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_digits(return_X_y=True)
    X, Z = (X / 16).astype(np.float32), simplex_points(10, 9)[y]
    weight, point = np.random.default_rng(0).uniform(0.5, 2, len(X)), (X[:30], np.full(30, -2.0, np.float32))
    whole = Projected(X, Z, weight, 30, 0.1)(*point)
    monkeypatch.setattr(variable_projection, "PART", 100)
    with config_context(working_memory=0.05):
        found = []
        for n_threads in (1, 3):
            with Projected(X, Z, weight, 30, 0.1, n_threads) as J:
                assert len(J.parts) == PARTS and all(len(part.blocks) > 1 for part in J.parts)
                found.append(J(*point))
    for one, other, first in zip(*found, whole, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, first, rtol=1e-3, atol=1e-3 * np.abs(first).max())


@pytest.mark.slow
def test_it_leads_lower_than_gradient_steps_on_batches() -> None:
    X, y = load_digits(return_X_y=True)
    X, Z = (X[:600] / 16).astype(np.float32), simplex_points(10, 9)[y[:600]]
    values = [objective(regression(X, 20, None, steps, 0.05).fit(Z, MU), X, Z) for steps in ("auto", 1_000)]
    assert values[0] < 0.95 * values[1]


def test_later_steps_keep_the_centres_and_solve_for_the_weights(planted: Planted) -> None:
    X, Z, _ = planted(300)
    problem = regression(X)
    first = problem.fit(Z, MU)
    moved = Z + 0.2 * np.random.default_rng(2).normal(size=Z.shape)
    later = problem.fit(moved, MU, first)
    assert later.basis is first.basis
    assert objective(later, X, moved) < objective(first, X, moved)
    scaled = problem.on(first.basis).normal(moved)
    W = np.linalg.solve(scaled[0] + 2 * LAM / MU * np.eye(4), scaled[1])
    np.testing.assert_allclose(later.W, W, rtol=1e-6)


def test_a_warm_start_moves_the_centres_of_the_earlier_fit() -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    X = (X / 16).astype(np.float32)
    model = LDSVMClassifier(map="adaptive_rbf", n_basis=10, random_state=0, n_jobs=1, warm_start=True, gamma=0.05)
    first = model.fit(X[:300], y[:300]).map_
    second = model.fit(X[300:] + 0.2, y[300:]).map_
    assert np.abs(first.basis.centers - second.basis.centers).max() > 0.01
    assert model.n_iter_ > 1


def test_duplicate_and_distant_centres_without_a_ridge_do_no_harm(planted: Planted) -> None:
    X, Z, _ = planted(200)
    J = Projected(X, Z, None, 4, 0.0)
    center = np.array([[0.0, 0.0], [0.0, 0.0], [500.0, 0.0], [1.0, 1.0]], np.float32)
    value, by_center, by_width, W = J(center, np.zeros(4, np.float32))
    assert all(np.isfinite(part).all() for part in (value, by_center, by_width, W))


def test_an_offset_of_the_inputs_changes_nothing(planted: Planted) -> None:
    X, Z, _ = planted(200)
    near, far = (regression(X.astype(np.float64) + offset) for offset in (0.0, 1000.0))
    np.testing.assert_allclose(near.values(near.fit(Z, MU)), far.values(far.fit(Z, MU)), atol=0.05 * np.abs(Z).max())


def test_widths_stay_in_their_range_and_bits_are_the_same(planted: Planted) -> None:
    X, Z, _ = planted(150)
    maps = [regression(X, 8, gamma=0.3).fit(1e3 * Z, MU) for _ in range(2)]
    gamma = np.asarray(maps[0].basis.gamma)
    assert 0.3 / RANGE * 0.99 <= gamma.min() <= gamma.max() <= 0.3 * RANGE * 1.01
    np.testing.assert_array_equal(maps[0](X), maps[1](X))


@pytest.mark.parametrize(
    ("rows", "given", "steps"),
    [(50, {}, None), (ROWS, {}, None), (ROWS + 1, {}, 50_000), (50, {"steps": 7}, 7),
     (50, {"follows": True}, 1_000)],
)  # fmt: skip
def test_it_is_used_unless_rows_abound_or_a_number_of_steps_is_given(
    rows: int, given: dict[str, Any], steps: int | None
) -> None:
    X = np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32)
    family = AdaptiveRBF(3, "random", 1.0, LAM, **{"steps": "auto", **given})
    found = family.prepare(X, None, np.random.RandomState(0), 1)
    assert isinstance(found, AdaptiveRegression) and found.steps == steps


@pytest.mark.slow
def test_the_estimator_needs_fewer_basis_functions_and_its_objective_falls_at_fixed_mu() -> None:
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    errors = {}
    for kind in ("rbf", "adaptive_rbf"):
        model = LDSVMClassifier(map=kind, n_basis=20, gamma=0.05, random_state=0, n_jobs=1)
        model.fit(X[:1200], y[:1200], eval_set=(X[1200:], y[1200:]))
        errors[kind] = model.history_[model.best_iter_]["valid_error"]
        pairs = zip(model.history_, model.history_[1:], strict=False)
        assert all(b["penalised"] <= a["penalised"] * (1 + 1e-9) for a, b in pairs if a["mu"] == b["mu"])
    assert errors["adaptive_rbf"] < 0.75 * errors["rbf"]
