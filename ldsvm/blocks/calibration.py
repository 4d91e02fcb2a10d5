"""Probabilities of a model that was fitted on blocks of rows; see `ldsvm.calibration`."""

from __future__ import annotations

import numpy as np

from ldsvm.blocks.executors import Team, repaired
from ldsvm.blocks.preparation import drawn_rows
from ldsvm.blocks.regressions import Fixed
from ldsvm.blocks.steps import ShardSteps
from ldsvm.calibration import ROWS, Calibrator, Fitted, Judged, left_out, some_rows, together
from ldsvm.mac.state import Solution
from ldsvm.maps.features import BasisMap


def after_fit(method: str | None, team: Team, steps: ShardSteps, solution: Solution, mu: float) -> Calibrator | None:
    """Calibrate a model as `ldsvm.calibration.after_fit` does in memory; the rows' coordinates are lost."""
    if method is None:
        return None
    judged = repaired(lambda: _validation(team, steps, solution))
    if isinstance(steps.regression, Fixed):
        judged = [*judged, repaired(lambda: _training(team, steps, solution, mu))]
    return together(method, judged)


def _validation(team: Team, steps: ShardSteps, solution: Solution) -> list[Judged]:
    mapping = solution.mapping
    assert isinstance(mapping, BasisMap)
    steps.regression.go(mapping)
    svms = mapping.W, solution.V, solution.b
    stride = max(1, -(-int(team.sum("validate", *svms)[1]) // ROWS[1]))
    blocks = [block for shard in team.call("judged", *svms, stride) for block in shard]
    return [Judged(scores, y, np.ones(len(y))) for y, scores in blocks]


def _training(team: Team, steps: ShardSteps, solution: Solution, mu: float) -> Judged:
    mapping, regression, numbers = solution.mapping, steps.regression, some_rows(steps.rows, solution.mapping.n_basis)
    assert isinstance(mapping, BasisMap)
    regression.go(mapping)
    team.call("start", steps.points)
    first = regression.solve(mapping.basis, mu, mapping)
    X, y = drawn_rows(team, numbers), np.concatenate(team.call("classes_of", numbers))
    F, last = (found(X).astype(np.float64) for found in (first, mapping))
    leverage = regression.ridge.products(mapping.basis(X, np.float64), 2.0 * regression.lam / mu)
    part = steps.scheme.signs(np.arange(steps.scheme.n_classes))[1]
    fitted = Fitted(y, np.ones(len(y)), last, solution.V, solution.b)
    return left_out(steps.scheme, fitted, steps.points, part * steps.penalties[:, None], F, leverage)
