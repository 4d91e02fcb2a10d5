"""MAC against alternating optimisation without auxiliary coordinates, on the objective that both mean to lower."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from ldsvm import threads
from ldsvm.datasets import balanced, load, relabel
from ldsvm.mac import Problem, Start, Validation, solve
from ldsvm.mac.g_step import g_step
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.start import starting_coordinates
from ldsvm.mac.state import Info, Options, Solution, State
from ldsvm.maps import RBF
from ldsvm.report.studies import base, two_step
from ldsvm.typing import Array

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
METHODS = ("mac", "two_step")


class Params(base.Params):
    """The paper's protocol: odd against even digits, every training row a centre, two latent dimensions.

    train, validation, test: rows, equally many of every digit; test "official" is the official test set. sigmas, C:
    widths and penalties to choose from by MAC's validation error from the first start; lam stays. starts: coordinates
    to begin with, "random" is normal row by row (the paper's), "pca" and "simplex" as in `LDSVMClassifier`, as are mu
    and mu_factor. tol: as there, but small, so that MAC goes on until little changes. mac_iter: its iterations at
    most. two_step_iter, two_step_s: of the other method, iterations and seconds at most, for each start.
    solver: of its QP, a back end of qpsolvers; None: the first interior-point one that is installed, else OSQP.
    """

    dataset: Literal["mnist", "digits"] = "mnist"
    train: Count = 500
    validation: Count = 10_000
    test: Annotated[Literal["official"] | Count, Field(validate_default=True)] = "official"
    n_components: Count = 2
    sigmas: Annotated[tuple[Positive, ...], Field(min_length=1)] = (2.0, 2.8, 4.0, 5.7, 8.0)
    C: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
    lam: Positive = 1e-3
    starts: Annotated[tuple[Literal["random", "pca", "simplex"], ...], Field(min_length=1)] = (
        "random",
        "pca",
        "simplex",
    )
    mu: Positive = 2.0
    mu_factor: Annotated[float, Field(gt=1)] = 1.5
    tol: Positive = 1e-4
    mac_iter: Count = 1000
    two_step_iter: Count = 3
    two_step_s: Positive = 90.0
    solver: Annotated[str | None, Field(validate_default=True)] = None

    @field_validator("solver")
    @classmethod
    def _here(cls, value: str | None) -> str:
        return two_step.solver_here(value)  # named, so that a result is known by the solver it came from

    @field_validator("test")
    @classmethod
    def _exists(cls, value: str | int, others: ValidationInfo) -> str | int:
        if value == "official" and others.data.get("dataset") == "digits":
            raise ValueError("digits has no official test set; allowed: a number of rows")
        return value


@dataclass(frozen=True)
class _Rows:
    """Inputs (n, D) and classes (n,), 1 for odd, of the three parts, and a sentence on their source."""

    X: Array
    y: Array
    X_valid: Array
    y_valid: Array
    X_test: Array
    y_test: Array
    source: str


def compute(params: Params, context: base.Context) -> base.Found:
    """Choose width and penalty, then run both methods from every start, one thread each."""
    solver = two_step.solver_here(params.solver)
    rows = _rows(params, context)
    facts: dict[str, Any] = {"solver": solver, "interior": solver in two_step.INTERIOR, "source": rows.source}
    facts["n_weights"] = len(rows.y) * params.n_components
    arrays: dict[str, Array] = {}
    with threads.limit(1):
        chosen, facts["tried"] = _choose(params, rows, context)
        clock = time.perf_counter()
        problem = _problem(params, rows, chosen["sigma"], chosen["C"])
        facts |= chosen | {"prepare_s": time.perf_counter() - clock, "runs": {}}
        for i, name in enumerate(params.starts):
            start = _start(params, rows, name, context.seed)
            facts["runs"][name], found = _both(params, rows, problem, start, solver, _teller(params, context, i))
            arrays |= {f"{name}_{key}": values for key, values in found.items()}
        nested = [arrays[f"{name}_{method}_nested"][-1] for name in params.starts for method in METHODS]
        facts["lowest"], facts["lower_bound"] = two_step.lowest(problem, min(nested))
        context.tell("the other penalties", 0.8)
        facts["penalties"] = [_end(params, rows, problem, C, solver, context.seed) for C in params.C]
    return base.Found(facts, arrays)


def _end(params: Params, rows: _Rows, problem: Problem, C: float, solver: str, seed: int) -> list[float]:
    """Return C and, from the first start, MAC's last objective, the other's after two iterations, and the least."""
    problem = replace(problem, C=C * np.ones_like(problem.C), validation=None)
    start = _start(params, rows, params.starts[0], seed)
    ours = float(_mac(params, problem, start).history[-1]["nested"])
    state = _begin(problem, start, params.mu)
    for _ in range(2):
        state, _info = two_step.step(problem, state, solver)
    other = two_step.measure(problem, state)["nested"]
    return [C, ours, other, two_step.lowest(problem, min(ours, other))[0]]


def _teller(params: Params, context: base.Context, i: int) -> Callable[[int], None]:
    def tell(k: int) -> None:
        share = (i + (k - 1) / params.two_step_iter) / len(params.starts)
        context.tell(f"start {params.starts[i]}, without Z: iteration {k}", 0.1 + 0.7 * share)

    return tell


def _both(
    params: Params, rows: _Rows, problem: Problem, start: Start, solver: str, tell: Callable[[int], None]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Run both methods from one start: facts about their models, and their histories."""
    ours = _mac(params, problem, start)
    state = _begin(problem, start, params.mu)
    history, best = two_step.alternate(problem, state, solver, params.two_step_iter, params.two_step_s, tell)
    done = len(history) - 1
    end = f"{done} iterations were done" if done == params.two_step_iter else "the time limit was reached"
    retrained = _retrained(problem, _mac(params, replace(problem, validation=None), start))
    facts: dict[str, Any] = {"mac_end": ours.reason.value, "two_step_end": end, "mac_retrained": retrained}
    facts |= {"mac_test": _error(problem, rows, ours), "two_step_test": _error(problem, rows, best)}
    return facts, _arrays("mac", ours.history, "zgf") | _arrays("two_step", history, "gf")


def _rows(params: Params, context: base.Context) -> _Rows:
    data = load(params.dataset, cache_dir=context.cache)
    sizes: dict[str, int] = {} if params.test == "official" else {"test": params.test}
    if params.test == "official" and data.test is not None:
        sizes = {"official": len(data.test)}
    split = balanced(data.y, train=params.train, validation=params.validation, **sizes, seed=context.seed)
    parts = [data.train.take(rows) for rows in (split.train, split.validation)]
    whole = data.test if split.official_test else data.train.take(split.test)
    assert whole is not None
    (X, y), (X_valid, y_valid), (X_test, y_test) = ((p.X, relabel(p.y, "parity")) for p in (*parts, whole))
    return _Rows(X, y, X_valid, y_valid, X_test, y_test, data.source)


def _problem(params: Params, rows: _Rows, sigma: float, C: float) -> Problem:
    """Return the problem with every training row a centre."""
    family = RBF(None, "random", 0.5 / sigma**2, params.lam)
    regression = family.prepare(rows.X, None, np.random.RandomState(0), 1)
    scheme = Scheme(2)
    Y, part = scheme.signs(rows.y)
    validation = Validation(regression.elsewhere(rows.X_valid), rows.y_valid)
    return Problem(regression, rows.y, scheme, Y, C * part, np.ones(len(Y)), params.lam, 1, validation)


def _start(params: Params, rows: _Rows, name: str, seed: int) -> Start:
    """Return the starting coordinates of this name."""
    random_state, L = np.random.RandomState(seed), params.n_components
    if name == "random":
        return Start(random_state.standard_normal((len(rows.y), L)))
    return Start(starting_coordinates(name, rows.X, rows.y, 2, L, random_state))


def _begin(problem: Problem, start: Start, mu: float) -> State:
    """Return the state that MAC begins with: F fitted to the coordinates, g trained on them."""
    mapping = problem.regression.fit(start.Z, mu)
    L = start.Z.shape[1]
    state = State(start.Z, mapping, problem.regression.values(mapping), np.zeros((1, L)), np.zeros(1), mu)
    return g_step(problem, state)[0]


def _mac(params: Params, problem: Problem, start: Start, patience: int | None = None) -> Solution:
    """Run MAC; without patience to the end. The model is that of the lowest validation error either way."""
    n = params.mac_iter
    options = Options(
        params.mu, params.mu_factor, 1e6, n, params.tol, patience or n + 1, None, "batched", "ipm"
    )  # fmt: skip
    return solve(problem, start, options)


def _retrained(problem: Problem, last: Solution) -> float:
    """Return the nested objective of MAC's last model, once g is trained on F(X) instead of Z."""
    F = problem.regression.values(last.mapping)
    state, _ = g_step(problem, State(F, last.mapping, F, last.V, last.b, 1.0))
    return problem.nested(last.mapping, state.V, state.b, F)


def _choose(params: Params, rows: _Rows, context: base.Context) -> tuple[dict[str, float], list[list[float]]]:
    """Return the width and penalty of MAC's lowest validation error, stopped early, and all errors."""
    tried: list[list[float]] = []
    start = _start(params, rows, params.starts[0], context.seed)
    for i, sigma in enumerate(params.sigmas):
        context.tell(f"choosing C for width {sigma:g}", 0.1 * i / len(params.sigmas))
        problem = _problem(params, rows, sigma, 1.0)
        for C in params.C:
            ours = _mac(params, replace(problem, C=C * problem.C), start, patience=10)
            tried.append([sigma, C, ours.history[ours.best_iter]["valid_error"]])
    sigma, C, error = min(tried, key=lambda row: row[2])
    return {"sigma": sigma, "C": C, "valid_error": error}, tried


def _error(problem: Problem, rows: _Rows, model: Solution | State) -> float:
    """Return the test error of a model."""
    F = problem.regression.elsewhere(rows.X_test).values(model.mapping)
    return float(np.mean(problem.scheme.classes(problem.scheme.scores(F @ model.V.T + model.b)) != rows.y_test))


def _arrays(name: str, history: list[Info], steps: str) -> dict[str, Array]:
    """Return the history as arrays (iterations + 1,); seconds (…, steps) are those of each step."""
    keys = ["nested", "train_error", "valid_error", *(["gap_g", "gap_f"] if name == "two_step" else ["mu", "kkt"])]
    found = {key: np.array([row[key] or 0.0 for row in history]) for key in keys}
    found["seconds"] = np.array([[row[f"seconds_{s}"] if k else 0.0 for s in steps] for k, row in enumerate(history)])
    return {f"{name}_{key}": values for key, values in found.items()}
