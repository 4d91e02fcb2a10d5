"""How an estimator trains on one array of rows: its parameters and data become a problem, which MAC solves.

What depends on C comes last, so that a path over C (`ldsvm.fit_path`) prepares once. Blocks of rows have
`ldsvm.blocks.fitting` instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ldsvm import threads
from ldsvm.calibration import Calibrator, after_fit
from ldsvm.checks import check_class_weight
from ldsvm.mac.loop import Callback, solve
from ldsvm.mac.problem import Problem, Validation
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.start import CLASS_STARTS, dimensions, simplex_points, starting_coordinates
from ldsvm.mac.state import MU_LIMIT, Info, Model, Options, Solution, Start
from ldsvm.maps.base import Map
from ldsvm.maps.families import family_of, size_of
from ldsvm.maps.landmarks import named
from ldsvm.maps.leave_one_out import Sample, sample_rows
from ldsvm.training_set import training_set
from ldsvm.typing import Array

LEARNED = ("n_features_in_", "feature_names_in_")  # what checking X writes onto an estimator


@dataclass(frozen=True)
class Prepared:
    """A problem with relative penalties (C = 1), its start, the classes (K,), and the estimator's ``init``."""

    problem: Problem
    start: Start
    classes: Any
    init: Any

    @property
    def points(self) -> Array:
        """Where the classes begin (K, L), or would with ``init="simplex"``."""
        if self.start.model is None and isinstance(self.init, str) and self.init in CLASS_STARTS:
            return self.start.Z[np.unique(self.problem.y, return_index=True)[1]]
        return simplex_points(len(self.classes), self.start.Z.shape[1])


def options_of(model: Any) -> Options:
    """Return what the loop is to know of an estimator's parameters; the time limit counts from here."""
    mu_max = model.mu_max
    if isinstance(mu_max, str):  # "auto" is twice mu only where the classes are apart from the start
        mu_max = None if isinstance(model.init, str) and model.init in CLASS_STARTS else MU_LIMIT
    return Options(
        model.mu, model.mu_factor, mu_max, model.max_iter, model.tol, model.n_iter_no_change, model.time_limit,
        model.z_solver, model.g_solver,
    )  # fmt: skip


def prepare(model: Any, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> Prepared:
    """Check everything, split off validation rows, and compute what does not depend on C."""
    data = training_set(model, X, y, sample_weight, eval_set, family_of(model))
    X, index, classes, weight, valid = data.X, data.index, data.classes, data.weight, data.validation
    random_state = check_random_state(model.random_state)
    ones = np.ones(len(index)) if weight is None else weight
    size = size_of(model, ones.sum(), len(classes))
    M = min(size or len(index), len(index))
    cores = threads.n_threads(threads.worth(model.n_jobs, len(index) * M * (M + X.shape[1])))
    cost = check_class_weight(model.class_weight, classes, classes[index], ones)[index] * ones
    near, family = earlier_map(model, classes), family_of(model, size)
    if near is None:
        name, L = model.init if data.init is None else data.init, dimensions(model.n_components, len(classes))
        start = Start(starting_coordinates(name, X, index, len(classes), L, random_state))
        if family.automatic:
            rows = sample_rows(len(index), random_state)
            sample = Sample(X[rows], index[rows], start.Z[rows], ones[rows], cost[rows])
            family = family.chosen(sample, family.width(X, weight))
    elif family.automatic:
        family = family_of(model, size, model.alpha_)
    assert not isinstance(family.lam, str)
    regression = family.prepare(X, weight, random_state, cores, near)
    if near is not None:
        start = Start(regression.values(near), Model(near, model.latent_coef_, model.intercept_))
    validation = None if valid is None else Validation(regression.elsewhere(valid[0]), valid[1], valid[2])
    scheme = Scheme(len(classes), model.multi_class)
    Y, part = scheme.signs(index)
    C = part * cost[:, None]
    problem = Problem(regression, index, scheme, Y, C, ones, family.lam, cores, validation)
    return Prepared(problem, start, classes, model.init)


def train(
    model: Any, prepared: Prepared, callback: Callback | None, options: Options
) -> tuple[Solution, Any, Scheme, float, Calibrator | None]:  # fmt: skip
    """Run MAC with the estimator's C; return the solution, the classes, the scheme, the ridge and the calibrator."""
    problem = replace(prepared.problem, C=model.C * prepared.problem.C)
    solution = solve(problem, prepared.start, options, callback)
    with threads.alone():
        calibrator = after_fit(model.calibration, problem, prepared.points, solution, options.mu)
    return solution, prepared.classes, problem.scheme, problem.lam, calibrator


def earlier_map(model: Any, classes: Any) -> Map | None:
    """Return the map of an estimator's last fit where warm_start can use it, else None."""
    if not (model.warm_start and hasattr(model, "map_")):
        return None
    L = dimensions(model.n_components, len(classes))
    same = np.array_equal(classes, model.classes_) and model.n_components_ == L
    found: Map = model.map_
    return found if same and model._shape_fitted == shape_choices(model) else None


def shape_choices(model: Any) -> list[Any]:
    """Return what decides which basis and which SVMs there are: a warm start needs the same."""
    return [model.n_features_in_, model.map, model.n_basis, named(model.centers), model.gamma, model.multi_class]


@contextmanager
def unchanged_by_failure(model: Any) -> Iterator[None]:
    """Leave an estimator as its last complete fit left it, where a fit fails or is interrupted."""
    seen = {name: model.__dict__[name] for name in LEARNED if name in model.__dict__}
    try:
        yield
    except BaseException:
        for name in LEARNED:
            model.__dict__.pop(name, None)
        model.__dict__.update(seen)
        raise


def reported(verbose: Any, callback: Callback | None) -> Callback | None:
    """Return a callback that prints each iteration where ``verbose`` is true, and calls the given one."""
    given = [one for one in (print_iteration if verbose else None, callback) if one is not None]
    return (lambda info: max([bool(one(info)) for one in given])) if given else None


def print_iteration(info: Info) -> None:
    """Print one line about an iteration to standard error."""
    valid = "" if info["valid_error"] is None else f"  validation {100 * info['valid_error']:.2f} %"
    print(
        f"MAC {info['iteration']:3d}  mu {info['mu']:<8.3g} penalised {info['penalised']:<11.5g} "
        f"nested {info['nested']:<11.5g} |Z-F| {info['distance']:<9.3g} train {100 * info['train_error']:.2f} %{valid}",
        file=sys.stderr,
        flush=True,
    )
