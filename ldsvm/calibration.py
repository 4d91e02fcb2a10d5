"""Probabilities from scores, and the leave-one-out scores that they are fitted to.

A row pulls the map towards its own coordinates, so scores on training rows are too confident. The pull is known in
closed form for the first regression, where the targets of the other rows do not depend on the row: with leverage h and
residual r, the map fitted without the row lies h / (1 - h) r further away. MAC then changes the scale of the decisions,
by the slope of the last decisions over those of the first regression. The last decisions, less the pull times that
slope, calibrate about as well as a cross-validation (`python -m benchmarks calibration`), and nothing is fitted twice.
In the last regression the closed form does not hold, since there the other rows' targets depend on the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, softmax

from ldsvm.mac.problem import Problem
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.state import Solution
from ldsvm.typing import Array

METHODS = ("sigmoid", "temperature", "isotonic")
ROWS = 1_000, 5_000  # that calibrate, where there are so many: for many basis functions, and for few
WORK = 2e9  # multiplications that their leverages may take, beyond the former number
SPREAD = 0.1  # of the logarithms of the classes' temperatures around that of all, as far as is known beforehand
MOST = 0.9  # leverage that counts: beyond it a row is alone, and what the map says without it is no guide


@dataclass(frozen=True)
class Calibrator:
    """A function from scores to probabilities.

    columns: for "temperature" a single array: the factor of all scores, or one factor for each predicted class (K,);
    for "sigmoid" the slope and offset (2,) for each column of scores; for "isotonic" the corners (2, n) of each
    column's curve, as scores and values.
    """

    method: str
    columns: list[Array]

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities (N, K), whose rows sum to 1, for scores as from `decision_function`."""
        scores = scores.astype(np.float64)
        if self.method == "temperature":
            factors = self.columns[0]
            factors = factors[_winners(scores)] if factors.size > 1 else factors
            if scores.ndim == 1:
                return _both(factors * scores)
            return np.asarray(softmax(factors[:, None] * scores, axis=1))
        if self.method == "sigmoid":
            slopes, offsets = np.array(self.columns).T
            if scores.ndim == 1:
                return _both(slopes * scores + offsets)
            # each sigmoid over their sum, also where all of them are too small for a float
            return np.asarray(softmax(log_expit(slopes * scores + offsets), axis=1))
        if scores.ndim == 1:
            likely = _curve(self.columns[0], scores)
            return np.column_stack([1.0 - likely, likely])
        found = np.column_stack([_curve(column, scores[:, k]) for k, column in enumerate(self.columns)])
        total = found.sum(axis=1, keepdims=True)
        return np.divide(found, total, out=np.full_like(found, 1.0 / found.shape[1]), where=total > 0)

    def as_json(self) -> dict[str, Any]:
        """Return the calibrator as lists of numbers and texts."""
        return {"method": self.method, "columns": [column.tolist() for column in self.columns]}

    @classmethod
    def from_json(cls, found: dict[str, Any], K: int) -> Calibrator:
        """Return the calibrator that `as_json` described, for K classes; raise ValueError for an impossible one."""
        method, columns = found["method"], [np.array(column, dtype=np.float64) for column in found["columns"]]
        if method not in METHODS or len(columns) != (1 if method == "temperature" or K == 2 else K):
            raise ValueError(f"{method!r} with {len(columns)} columns calibrates no {K} classes")
        if not all(column.size and np.isfinite(column).all() and _is_right(method, column, K) for column in columns):
            raise ValueError(f"a calibration of {method!r} has numbers that no fit gives")
        return cls(method, columns)


def calibrated(method: str, scores: Array, y: NDArray[np.integer], weight: Array) -> Calibrator:
    """Fit probabilities to scores of rows that the model was not fitted to.

    method: one of METHODS, or "auto": a temperature for each predicted class. scores (n,) or (n, K). y: class indices
    (n,). weight (n,): the number of rows that each row counts for. If their sum is below the number of rows, only their
    ratios matter, since tiny weights would leave almost no evidence.

    Examples
    --------
    >>> scores, y = np.array([-2.0, -1.0, 1.0, -1.0, 2.0]), np.array([0, 0, 0, 1, 1])
    >>> calibrated("temperature", scores, y, np.ones(5))(scores).round(2)[:, 1]
    array([0.28, 0.38, 0.62, 0.38, 0.72])
    """
    weight = _of_rows(weight)
    if method in ("auto", "temperature"):
        logits = (scores if scores.ndim > 1 else np.column_stack([np.zeros_like(scores), scores])).astype(np.float64)
        common = _log_factor(logits, y, weight)
        if method == "temperature":
            return Calibrator(method, [np.exp([common])])
        factors, winners = np.full(logits.shape[1], common), _winners(scores)
        for k in np.unique(winners):
            won = winners == k
            factors[k] = _log_factor(logits[won], y[won], weight[won], common)
        return Calibrator("temperature", [np.exp(factors)])
    fit = _platt if method == "sigmoid" else _isotonic
    each = scores.reshape(len(scores), -1).T.astype(np.float64)
    classes = np.arange(_n_classes(scores))[-len(each) :]
    return Calibrator(method, [fit(score, y == k, weight) for score, k in zip(each, classes, strict=True)])


def _of_rows(weight: Array) -> Array:
    """Return weights (n,) whose sum is at least the number of those that are not zero."""
    largest, rows = float(weight.max()), np.count_nonzero(weight)
    if largest <= 0:
        return weight
    share = weight / largest  # first, as the sum of the smallest floats has no inverse
    mean = float(share.sum()) / rows
    return share / mean if largest * mean < 1 else weight


class Judged(NamedTuple):
    """Scores of rows, (n,) or (n, K), that are honest, with class indices y (n,) and weights (n,)."""

    scores: Array
    y: NDArray[np.integer]
    weight: Array


@dataclass(frozen=True)
class Fitted:
    """A model on some of the rows that it was fitted to: class indices y (n,), weights (n,), coordinates F (n, L), and
    SVMs V (n_svms, L), b (n_svms,).
    """

    y: NDArray[np.integer]
    weight: Array
    F: Array
    V: Array
    b: Array


def left_out(scheme: Scheme, fitted: Fitted, points: Array, penalties: Array, F: Array, leverage: Array) -> Judged:
    """Return the scores of rows, about as of a model that was fitted without them.

    points (K, L), penalties (K, n_svms): the first regression's target for each class, and its hinges' C in all. F
    (n, L), leverage (n,): what that regression says of the rows, see `Regression.left_out`.
    """
    from ldsvm.solvers import linear_svm  # which loads numba

    V, b, _ = linear_svm.solve(points, scheme.signs(np.arange(scheme.n_classes))[0], penalties)
    first, last = F @ V.T + b, fitted.F @ fitted.V.T + fitted.b
    centred, moved = (part - np.average(part, axis=0, weights=fitted.weight) for part in (first, last))
    square = fitted.weight @ np.square(centred)
    slope = np.divide(fitted.weight @ (centred * moved), square, out=np.ones_like(square), where=square > 0)
    h = np.minimum(leverage, MOST)[:, None]
    scores = scheme.scores(last - slope * (h / (1.0 - h)) * ((points[fitted.y] - F) @ V.T))
    return Judged(scores, fitted.y, fitted.weight)


def after_fit(method: str | None, problem: Problem, points: Array, solution: Solution, mu: float) -> Calibrator | None:
    """Calibrate a model on its training rows, as if they were left out, and on its validation rows.

    points (K, L): where the classes begin. mu: of the first regression. None for no method, and where there are no such
    rows: without validation rows, for a map whose regression has no closed form.
    """
    if method is None:
        return None
    judged = []
    if (valid := problem.validation) is not None:
        F = valid.evaluation.values(solution.mapping)
        weight = np.ones(len(valid.y)) if valid.weight is None else valid.weight
        judged.append(Judged(problem.scheme.scores(F @ solution.V.T + solution.b), valid.y, weight))
    rows = some_rows(len(problem.y), solution.mapping.n_basis)
    found = problem.regression.left_out(points[problem.y], mu, rows)
    if found is not None:
        F = problem.regression.values(solution.mapping)[rows]
        penalties = np.zeros((len(points), problem.C.shape[1]))
        np.add.at(penalties, problem.y, problem.C)
        fitted = Fitted(problem.y[rows], problem.weight[rows], F, solution.V, solution.b)
        judged.append(left_out(problem.scheme, fitted, points, penalties, *found))
    return together(method, judged)


def together(method: str, judged: list[Judged]) -> Calibrator | None:
    """Calibrate on the rows of several sets, None where there is none."""
    if not judged:
        return None
    return calibrated(method, *(np.concatenate(parts) for parts in zip(*judged, strict=True)))


def available(model: Any) -> bool:
    """Return whether an estimator has probabilities, or will have them. Raises AttributeError where it has none."""
    fitted = "map_" in vars(model)
    if (getattr(model, "calibrator_", None) if fitted else model.calibration) is not None:
        return True
    name = type(model).__name__
    if not fitted:
        raise AttributeError(f"{name} has no probabilities with calibration=None; set it to 'auto' before the fit.")
    raise AttributeError(
        f"{name} was fitted without probabilities; fit it again with calibration='auto' and, unless map is 'rbf' or "
        "'linear', with an eval_set or early_stopping=True."
    )


def some_rows(N: int, M: int) -> NDArray[np.integer]:
    """Return the numbers of the rows that calibrate, ascending: all of them, or some at random, always the same.

    N: rows. M: basis functions.

    Examples
    --------
    >>> [len(some_rows(N, M)) for N, M in [(300, 50), (10_000, 300), (10_000, 1_000), (10_000, 20_000)]]
    [300, 5000, 2000, 1000]
    """
    size = int(np.clip(WORK / min(N, M) ** 2, *ROWS))
    if size >= N:
        return np.arange(N)
    from sklearn.utils.random import sample_without_replacement

    return np.sort(sample_without_replacement(N, size, random_state=0))


def _is_right(method: str, column: Array, K: int) -> bool:
    """Whether an array of numbers can be a column of a `Calibrator` of K classes."""
    if method == "temperature":
        return column.shape in [(1,), (K,)] and bool((column > 0).all())
    if method == "sigmoid":
        return column.shape == (2,) and bool(column[0] >= 0)
    if column.ndim != 2 or len(column) != 2:
        return False
    return bool((np.diff(column) >= 0).all() and column[1, 0] >= 0 and column[1, -1] <= 1)


def _n_classes(scores: Array) -> int:
    return 2 if scores.ndim == 1 else scores.shape[1]


def _winners(scores: Array) -> NDArray[np.integer]:
    """Class indices (n,) as `Scheme.classes` gives them."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)


def _both(logits: Array) -> Array:
    """Probabilities (n, 2) for logits (n,) of the second class; 1 - p would lose the digits of a small one."""
    return np.column_stack([expit(-logits), expit(logits)])


def _curve(column: Array, score: Array) -> Array:
    return np.interp(score, *column)


def _platt(score: Array, positive: Array, weight: Array) -> Array:
    """Slope, not negative, and offset (2,) of Platt's sigmoid, whose targets are a little inside of 0 and 1."""
    counts = weight @ ~positive, weight @ positive
    target = np.where(positive, (counts[1] + 1.0) / (counts[1] + 2.0), 1.0 / (counts[0] + 2.0))
    share = weight / weight.sum()
    middle, size = float(share @ score), float(np.std(score)) or 1.0
    unit = (score - middle) / size

    def loss(line: Array) -> tuple[float, Array]:
        t = line[0] * unit + line[1]
        miss = share * (expit(t) - target)
        return float(share @ (np.logaddexp(0.0, t) - target * t)), np.array([miss @ unit, miss.sum()])

    rising = [(0.0, None), (None, None)]
    slope, offset = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=rising).x
    return np.array([slope / size, offset - slope * middle / size])


def _log_factor(logits: Array, y: NDArray[np.integer], weight: Array, near: float | None = None) -> float:
    """Return the logarithm of the factor of the logits (n, K) with the lowest log loss.

    near: where it is expected, give or take SPREAD; None for nowhere. Then one row more, of a random class, keeps it
    finite where all rows are right.
    """
    blur = 1.0 / (weight.sum() + 1.0) if near is None else 0.0
    below = logits - logits.max(axis=1, keepdims=True)
    own = weight @ ((1.0 - blur) * below[np.arange(len(y)), y] + blur * below.mean(axis=1))

    def loss(t: float) -> float:
        lost = weight @ np.log(np.exp(np.exp(t) * below).sum(axis=1)) - np.exp(t) * own
        return float(lost + (0.0 if near is None else 0.5 * ((t - near) / SPREAD) ** 2))

    size = float(np.abs(logits).max()) or 1.0
    wide = np.log(1e-3 / size), np.log(1e3 * logits.shape[1] / size)
    bounds = wide if near is None else (near - 5.0 * SPREAD, near + 5.0 * SPREAD)
    return float(minimize_scalar(loss, bounds=bounds, method="bounded").x)


def _isotonic(score: Array, positive: Array, weight: Array) -> Array:
    """Return the corners (2, n) of the rising curve that is nearest to 0 and 1."""
    from sklearn.isotonic import IsotonicRegression

    found = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(score, positive, sample_weight=weight)
    return np.array([found.X_thresholds_, found.y_thresholds_])
