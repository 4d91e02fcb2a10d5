"""`LDSVMClassifier.fit` on blocks of rows: checks, preparation, the loop."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ldsvm import threads
from ldsvm.blocks.calibration import after_fit
from ldsvm.blocks.checkpoint import Checkpoint
from ldsvm.blocks.executors import Team, chosen, repaired
from ldsvm.blocks.preparation import Facts, Moments, drawn_rows, gaussians, look, moments_of
from ldsvm.blocks.regressions import Fixed, Learned, ShardRegression
from ldsvm.blocks.row_blocks import RowBlocks
from ldsvm.blocks.steps import ShardSteps
from ldsvm.calibration import Calibrator
from ldsvm.checks import check_class_weight, check_classes
from ldsvm.mac.loop import Callback, run
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.start import CLASS_STARTS, class_points, dimensions
from ldsvm.mac.state import Options, Reason, Solution
from ldsvm.maps import RBF, AdaptiveRBF, Linear
from ldsvm.maps.families import family_of, size_of
from ldsvm.maps.leave_one_out import Sample, sample_rows
from ldsvm.maps.linear import Identity
from ldsvm.maps.lowering import steps_for
from ldsvm.typing import Array

Known = RBF | AdaptiveRBF | Linear
UNFINISHED = (Reason.TIME_LIMIT, Reason.MAX_ITER)  # after which one may want to go on


def fit(
    model: Any, X: Any, y: Any, sample_weight: Any, eval_set: Any, options: Options, callback: Callback | None,
    executor: Any, checkpoint: str | os.PathLike[str] | None,
) -> tuple[Solution, Any, Scheme, float, Calibrator | None]:  # fmt: skip
    """Train on blocks X, or on arrays X and y as one block; return the solution, the classes, the scheme, the ridge and
    the calibrator.

    Raises ValueError for what needs all rows in one place.
    """
    if sample_weight is not None:
        raise ValueError("sample_weight is not supported with blocks of rows; repeat rows instead.")
    if isinstance(X, RowBlocks) and y is not None:
        raise ValueError("y must be left out when X is RowBlocks, which contain the labels.")
    rows = X if isinstance(X, RowBlocks) else blocks((X, y), "X and y")
    largest, executor = check(model).largest, chosen(executor)
    valid = None if eval_set is None else blocks(eval_set, "eval_set")
    if valid is not None:
        _check_alike(rows, valid, isinstance(eval_set, RowBlocks))
    with executor.team(rows, valid, model.n_jobs) as team:
        team.report = executor.report
        facts = repaired(lambda: look(team, largest))
        check_classes(facts.classes, facts.N)
        scheme = Scheme(len(facts.classes), model.multi_class)
        weights = check_class_weight(model.class_weight, facts.classes, facts.classes, facts.counts.astype(np.float64))
        shared = facts.classes, scheme, weights, model.C, model.z_solver
        repaired(lambda: team.tell_each("begin", [(offset, *shared) for offset in facts.offsets]))
        K = len(facts.classes)
        family = check(model, size_of(model, facts.N, K))
        L = dimensions(model.n_components, K)
        kept = None
        if checkpoint is not None:
            sizes = scheme.n_svms, L, facts.D
            named = repaired(lambda: _named(model, team, facts))
            kept = Checkpoint(checkpoint, named, sizes, linear=isinstance(family, Linear))
        random_state = check_random_state(model.random_state)
        points = class_points(model.init, K, L, random_state)
        numbers = random_state.get_state()

        def prepared() -> ShardRegression:
            moments = None if isinstance(family, Linear) else moments_of(team, facts)
            found = _chosen(team, facts, family, points, weights, random_state, moments) if family.automatic else family
            return _regression(team, facts, found, threads.n_threads(model.n_jobs), random_state, kept, moments)

        regression = repaired(prepared, lambda: random_state.set_state(numbers))
        penalties = model.C * weights * facts.counts
        steps = ShardSteps(team, regression, points, scheme, penalties, max(facts.sizes), facts.N)
        with threads.alone():  # as `solve` does: the steps bring their own
            solution = run(steps, options, callback, kept)
            calibrator = after_fit(model.calibration, team, steps, solution, options.mu)
    if kept is not None and solution.reason not in UNFINISHED:
        kept.done()
    model.__dict__.pop("feature_names_in_", None)  # of an earlier fit
    model.n_features_in_ = facts.D
    if rows.columns is not None and not rows.steps:
        model.feature_names_in_ = np.array(rows.columns, dtype=object)
    return solution, facts.classes, scheme, regression.lam, calibrator


def _check_alike(rows: RowBlocks, valid: RowBlocks, by_blocks: bool) -> None:
    """Raise ValueError for validation rows whose inputs are not those of the training rows."""
    if by_blocks and [id(step) for step in rows.steps] != [id(step) for step in valid.steps]:
        raise ValueError("eval_set must have the steps of the training rows; add each with rows.then(step).")
    if not rows.steps and None not in (rows.columns, valid.columns) and rows.columns != valid.columns:
        raise ValueError(
            "eval_set has different columns from the training rows, or in another order; name them with columns=, or "
            "reorder the table."
        )


def blocks(data: Any, name: str) -> RowBlocks:
    """Return data as blocks: blocks as they are, a pair (X, y) of arrays as one."""
    if isinstance(data, RowBlocks):
        return data
    if isinstance(data, tuple | list) and len(data) == 2:
        return RowBlocks.arrays([(data[0], data[1])])
    raise ValueError(f"{name} must be RowBlocks, or a pair (X, y), got {type(data).__name__}.")


def check(model: Any, size: int | None = None) -> Known:
    """Return the map's family. Raises ValueError, one sentence, for parameters that want all rows in one place."""
    family = family_of(model, size)
    if not isinstance(family, Known):
        raise ValueError(_needs_all("map", model.map, "'rbf', 'adaptive_rbf' and 'linear'"))
    if model.n_basis in (None, "auto") and not isinstance(family, Linear):
        raise ValueError(_needs_all("n_basis", model.n_basis, "'scale' and whole numbers"))
    if hasattr(model.centers, "fit") and not isinstance(family, Linear):
        raise ValueError(_needs_all("centers", model.centers, "'kmeans', 'random' and an array"))
    if not isinstance(model.init, str) or model.init not in CLASS_STARTS:
        what = model.init if isinstance(model.init, str) else "an array"
        raise ValueError(_needs_all("init", what, "'simplex' and 'random'"))
    for name, allowed in {"early_stopping": False, "warm_start": False, "g_solver": "ipm"}.items():
        if getattr(model, name) != allowed:
            advice = ", with validation rows as eval_set" if name == "early_stopping" else ""
            raise ValueError(_needs_all(name, getattr(model, name), f"{allowed!r}{advice}"))
    return family


def _needs_all(name: str, value: Any, allowed: str) -> str:
    return f"{name}={value!r} needs all rows in one array; allowed with blocks of rows: {allowed}."


def _chosen(
    team: Team, facts: Facts, family: Known, points: Array, weights: Array, random_state: np.random.RandomState,
    moments: Moments | None,
) -> Known:  # fmt: skip
    """The family with numbers for what is "auto", by the rows that a fit in memory looks at."""
    numbers = sample_rows(facts.N, random_state)
    y = np.concatenate(team.call("classes_of", numbers))
    sample = Sample(drawn_rows(team, numbers), y, points[y], np.ones(len(y)), weights[y])
    if isinstance(family, Linear):
        return family.chosen(sample, 1.0)
    assert moments is not None
    begin = family.begin if isinstance(family, AdaptiveRBF) else family
    return family.chosen(sample, begin.width_of(*moments))


def _regression(
    team: Team, facts: Facts, family: Known, cores: int, random_state: np.random.RandomState, kept: Checkpoint | None,
    moments: Moments | None,
) -> ShardRegression:  # fmt: skip
    """The F-step with its basis: that of the checkpoint where it does not move."""
    assert not isinstance(family.lam, str)
    if isinstance(family, Linear):
        return Fixed(team, Identity(facts.D), family.lam, cores)
    assert moments is not None
    if isinstance(family, AdaptiveRBF):
        basis, spread = gaussians(team, facts, family.begin, random_state, moments)
        steps, seed = steps_for(family.steps, facts.N), random_state.randint(2**31 - 1)
        return Learned(team, basis, family.lam, cores, spread, steps, seed, facts.sizes, family.follows)
    progress = None if kept is None else kept.load()
    if progress is not None:
        return Fixed(team, progress.now.mapping.basis, family.lam, cores)  # type: ignore[attr-defined]
    return Fixed(team, gaussians(team, facts, family, random_state, moments)[0], family.lam, cores)


def _named(model: Any, team: Team, facts: Facts) -> dict[str, Any]:
    """What identifies a fit: its parameters, and sums over the rows, which do not depend on how blocks divide them."""
    ignored = ("verbose", "n_jobs", "time_limit", "max_iter", "calibration")
    params = {name: _plain(value) for name, value in model.get_params(deep=False).items() if name not in ignored}
    counts, squares = team.sum("validation_sums")
    return {
        "params": params,
        "labels": {str(label): int(count) for label, count in zip(facts.classes, facts.counts, strict=True)},
        "inputs": [*team.sum("column_squares", np.zeros(facts.D)), *team.sum("column_squares", np.ones(facts.D))],
        "eval_set": [*counts, *squares],
    }


def _plain(value: Any) -> str:
    """A parameter in words that are the same for equal values in any process."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        value = sorted((str(key), str(_plain(weight))) for key, weight in value.items())
    if isinstance(value, np.random.RandomState):
        return hashlib.sha256(repr(value.get_state()).encode()).hexdigest()
    return repr(value)
