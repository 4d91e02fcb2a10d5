"""MAC against alternating optimisation without auxiliary coordinates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.optimize import minimize

from ldsvm.mac import solve
from ldsvm.maps import Linear
from ldsvm.report.plotting.alternating import Run, progress
from ldsvm.report.studies import alternating, alternating_page, two_step
from ldsvm.report.studies.base import Context, Found
from ldsvm.report.studies.two_step import FStep

TINY = alternating.Params(
    dataset="digits", train=40, validation=50, test=50, sigmas=(1.5, 3.0), C=(0.5, 5.0), starts=("random", "pca"),
    mac_iter=40, two_step_iter=3, solver="osqp",
)  # fmt: skip


def a_step(seed: int = 0) -> FStep:
    rng = np.random.default_rng(seed)
    Phi, y = rng.uniform(size=(15, 6)), np.sign(rng.normal(size=15))
    return FStep(Phi, y, rng.uniform(0.5, 2.0, 15), 0.05, np.array([0.7, -1.4]), 0.3)


def tiny_problem(digits: Any, problem_of: Any) -> tuple[Any, Any]:
    return problem_of(digits[0][:60], digits[1][:60] % 2, C=0.7, L=2)


@pytest.mark.parametrize("seed", [0, 1])
def test_f_step_agrees_with_another_solver_of_another_form(seed: int) -> None:
    # the dual by a quasi-Newton method with bounds; W is unique, since lam |W|^2 is strictly convex
    step = a_step(seed)
    W, alpha = step.solve("osqp")

    def dual(a: Any) -> tuple[float, Any]:
        u = step.Phi.T @ (a * step.y)
        slope = 1.0 - step.y * step.b - (step.v @ step.v) / (2 * step.lam) * step.y * (step.Phi @ u)
        return -step.bound(a), -slope

    other = minimize(dual, step.C / 2, jac=True, bounds=[(0.0, c) for c in step.C], options={"ftol": 1e-15}).x
    np.testing.assert_allclose(W, np.outer(step.Phi.T @ (other * step.y), step.v) / (2 * step.lam), atol=1e-4)
    assert step.objective(W) == pytest.approx(step.bound(alpha), rel=1e-6) == pytest.approx(step.bound(other), rel=1e-6)
    assert ((alpha > 1e-3) & (alpha < step.C - 1e-3)).any()


def test_bound_is_below_every_map_for_any_multipliers() -> None:
    # weak duality, also for multipliers outside of their box
    step, rng = a_step(), np.random.default_rng(1)
    lowest = step.objective(step.solve("osqp")[0])
    assert all(step.bound(rng.normal(size=15, scale=s)) <= lowest + 1e-9 for s in (0.01, 0.1, 1.0, 10.0))
    free = np.linalg.svd(step.Phi.T * step.y)[2][-1]  # Phi'(alpha y) = 0: without the box the bound would have no end
    assert abs(free @ (1.0 - step.y * step.b)) > 0.01
    assert all(step.bound(s * free) <= lowest + 1e-9 for s in (1e3, -1e3))


def test_f_step_of_a_svm_that_is_zero_is_the_zero_map() -> None:
    W, _ = replace(a_step(), v=np.zeros(2)).solve("osqp")
    np.testing.assert_allclose(W, 0.0, atol=1e-6)


def test_objective_is_the_nested_one_and_never_rises(digits: Any, problem_of: Any) -> None:
    # what the F-step lowers, and the SVM's norm, are e:svm-nested of the same W; each step is an exact minimum
    problem, start = tiny_problem(digits, problem_of)
    state = alternating._begin(problem, start, 2.0)
    F_step = FStep(problem.regression.Phi.astype(float), problem.Y[:, 0], problem.C[:, 0], problem.lam,
                   state.V[0], float(state.b[0]))  # fmt: skip
    nested = problem.nested(state.mapping, state.V, state.b, state.F)
    assert F_step.objective(state.mapping.W) + 0.5 * float(state.V[0] @ state.V[0]) == pytest.approx(nested, rel=1e-12)
    history, _ = two_step.alternate(
        replace(problem, validation=alternating.Validation(problem.regression, problem.y)), state, "osqp", 4, 60.0,
        lambda k: None,
    )  # fmt: skip
    values = np.array([row["nested"] for row in history])
    assert values[0] == pytest.approx(nested) and values[1] < 0.9 * nested
    assert (np.diff(values) <= 1e-12 * values[:-1]).all()
    assert max(row["gap_f"] for row in history) < 1e-5 and max(row["gap_g"] for row in history) < 1e-6


def test_a_failed_f_step_keeps_the_old_map(digits: Any, problem_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # a solver's worse answer must not raise the objective, and its gap must tell
    problem, start = tiny_problem(digits, problem_of)
    state = alternating._begin(problem, start, 2.0)
    monkeypatch.setattr(FStep, "solve", lambda self, solver: (np.full((25, 2), 9.0), np.zeros(60)))
    after, info = two_step.step(problem, state, "osqp")
    assert after.mapping.W is state.mapping.W and info["gap_f"] == pytest.approx(1.0)


def test_both_methods_begin_at_the_same_point(digits: Any, problem_of: Any, options: Any) -> None:
    problem, start = tiny_problem(digits, problem_of)
    first = solve(problem, start, options(max_iter=1)).history[0]
    assert two_step.measure(problem, alternating._begin(problem, start, 2.0))["nested"] == first["nested"]


def test_lowest_is_known_where_it_can_be_written_down(problem_of: Any) -> None:
    # x = -1, 1 and a large C: the margin 1 needs |u| = 1, so sqrt(2 lam) |u| is all there is; for lam = 1e-3, 0.0447
    problem, _ = problem_of(np.array([[-1.0], [1.0]]), np.array([0, 1]), C=5.0, family=Linear(1e-3))
    above, below = two_step.lowest(problem, 3.0)
    assert above == pytest.approx(np.sqrt(2e-3), rel=1e-5) and below == pytest.approx(above, rel=1e-4)


@pytest.mark.slow
def test_lowest_is_below_what_both_methods_reach(digits: Any, problem_of: Any, options: Any) -> None:
    problem, start = tiny_problem(digits, problem_of)
    reached = solve(problem, start, options(tol=1e-4)).history[-1]["nested"]
    above, below = two_step.lowest(problem, reached)
    assert 0 < below <= above <= reached and above - below < 1e-3 * above


def test_solver_is_an_interior_point_one_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import qpsolvers

    monkeypatch.setattr(qpsolvers, "available_solvers", ["osqp", "piqp"])
    assert alternating.Params().solver == two_step.solver_here() == "piqp" and two_step.solver_here("osqp") == "osqp"
    monkeypatch.setattr(qpsolvers, "available_solvers", ["osqp"])
    assert two_step.solver_here() == "osqp"
    with pytest.raises(ValueError, match=r"solver='piqp' is not available; allowed: \['osqp'\]"):
        two_step.solver_here("piqp")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return alternating.compute(TINY, Context(0, 1, tmp_path_factory.mktemp("cache")))


@pytest.mark.slow
def test_the_study_runs_and_is_the_same_again_but_for_times(found: Found, tmp_path: Path) -> None:
    told: list[float] = []
    again = alternating.compute(TINY, Context(0, 1, tmp_path, lambda text, share: told.append(share)))
    assert told == sorted(told) and told[0] == 0.0 and told[-1] < 1.0
    for key, values in found.arrays.items():
        if "seconds" not in key:
            np.testing.assert_array_equal(values, again.arrays[key])
    assert {**found.facts, "prepare_s": 0} == {**again.facts, "prepare_s": 0}
    least = min(row[2] for row in found.facts["tried"])
    assert found.facts["valid_error"] == least and len(found.facts["tried"]) == 4
    assert all(least <= min(ours, other) for _, ours, other, least in found.facts["penalties"])
    assert found.arrays["random_mac_nested"][0] != found.arrays["pca_mac_nested"][0]
    for start in TINY.starts:
        assert found.facts["lowest"] <= found.facts["runs"][start]["mac_retrained"]
        assert found.facts["runs"][start]["mac_retrained"] <= found.arrays[f"{start}_mac_nested"][-1] * (1 + 1e-9)
        assert found.arrays[f"{start}_mac_nested"][0] == found.arrays[f"{start}_two_step_nested"][0]


@pytest.mark.slow
def test_the_page_shows_every_start(found: Found) -> None:
    page = alternating_page.show(TINY, found)
    assert [picture.name for picture in page.pictures] == ["alternating-random", "alternating-pca"]
    assert all(picture.drawing.png.startswith(b"\x89PNG") for picture in page.pictures)
    assert all(len(row) == len(table.header) for table in page.tables for row in table.rows)
    assert len(page.claims) == 3 and "osqp through qpsolvers, a first-order solver" in page.protocol
    assert all(word not in repr(page.tables) + page.lede + page.protocol for word in ("nan", "None", "inf,"))


def made_up(slow: float, ours: list[float]) -> Found:
    """MAC takes 10 ms an iteration; the other ``slow`` seconds, and goes 9, 4, 2."""
    arrays = {
        "random_mac_nested": np.array(ours), "random_mac_seconds": np.array([[0.0] * 3, *[[0.002, 0.003, 0.005]] * 3]),
        "random_two_step_nested": np.array([9.0, 4.0, 2.0]),
        "random_two_step_seconds": np.array([[0.0, 0.0], [0.25 * slow, 0.75 * slow], [0.25 * slow, 0.75 * slow]]),
    }  # fmt: skip
    for method, n in (("mac", 4), ("two_step", 3)):
        arrays |= {f"random_{method}_{part}_error": np.full(n, 0.125) for part in ("train", "valid")}
    arrays |= {"random_two_step_gap_g": np.zeros(3), "random_two_step_gap_f": np.full(3, 1e-7)}
    facts = {
        "solver": "piqp", "interior": True, "source": "Made up.", "n_weights": 8, "sigma": 2.0, "C": 3.0,
        "valid_error": 0.125, "tried": [[2.0, 3.0, 0.125]], "prepare_s": 0.5, "lowest": 1.0, "lower_bound": 0.9,
        "penalties": [[3.0, 7.5, 2.5, 1.0]],
    }  # fmt: skip
    run = {"mac_test": 0.25, "two_step_test": 0.5, "mac_end": "so", "two_step_end": "thus", "mac_retrained": 1.25}
    facts["runs"] = {"random": run}
    return Found(facts, arrays)


@pytest.mark.parametrize(
    ("slow", "ours", "holds"),
    [
        (1.6, [9.0, 3.0, 1.9, 1.5], [True, True, True]),  # 160 times as long, lower at 1, 2 and at the end
        (1.4, [9.0, 5.0, 3.0, 1.5], [False, True, False]),  # 140 times; after one iteration 5, not below 4
        (0.015, [9.0, 3.0, 1.9, 2.5], [False, False, True]),  # by 15 ms one iteration, by 30 ms three, at 2.5
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_claims_follow_the_numbers(slow: float, ours: list[float], holds: list[bool]) -> None:
    page = alternating_page.show(alternating.Params(starts=("random",), sigmas=(2.0,), C=(3.0,)), made_up(slow, ours))
    assert [claim.holds for claim in page.claims] == holds
    assert f"{100 * slow:,.0f} times as long" in page.claims[0].measured
    times, equal, ends = page.tables[:3]
    assert times.rows[0][1:5] == ["2", "3", "5", "10"] and times.rows[1][5:7] == [f"{100 * slow:,.0f}", "150"]
    done = "1" if slow == 0.015 else "3"
    assert equal.rows[0] == ["random", "1", f"{slow:.3g}", "4", done, f"{ours[int(done)]:g}", f"{ours[1]:g}"]
    assert (
        ends.rows[1][2:6] == ["2", f"{2 * slow:.3g}", "2", "100.0"]
        and ends.rows[0][6] == "1.25"
        and ends.rows[0][-2:] == ["25.00", "so"]
    )


@pytest.mark.slow
def test_the_figure_is_the_same_bytes_again() -> None:
    runs = [
        Run("MAC", np.array([9.0, 3.0, 2.0]), np.array([0.0, 0.1, 0.2])),
        Run("x", np.array([9.0, 2.5]), np.r_[0, 5]),
    ]
    first, second = progress(runs, 1.0, "title"), progress(runs, 1.0, "title")
    assert first == second and b"lowest possible, 1" in first.svg
    assert progress(runs, 1.5, "title").png != first.png


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigmas": ()}, "sigmas"),
        ({"C": [-1.0]}, "C"),
        ({"starts": ["kmeans"]}, "starts"),
        ({"test": "all"}, "test"),
        ({"L": 2}, "L"),
        ({"solver": "nonesuch"}, r"solver='nonesuch' is not available; allowed: \["),
        ({"dataset": "digits"}, "digits has no official test set"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        alternating.Params.model_validate(wrong)
