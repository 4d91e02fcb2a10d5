"""Metrics by name: scikit-learn's scorers, a few losses for which it has no scorer, and the user's own by import path.

A model predicts once; every metric, and every resample of the bootstrap, then works on its `Answers`. Only this module
knows whether more or less is better: all others minimise `Metric.loss`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.transformers import imported, is_path
from ldsvm.datasets.words import shown, unknown
from ldsvm.model_answers import ask, labels_of, probabilities_of

DEFAULT = "error"
BINS = 15  # of confidence, for the expected calibration error
RESAMPLES = 200  # a scorer of scikit-learn takes some milliseconds, however few rows
UNDEFINED = 0.5  # an interval needs at least this share of resamples on which the metric is defined
OTHER_AREAS = "it is for two classes; use roc_auc_ovr or roc_auc_ovo for more"
NO_SCORES = "the method gives neither probabilities nor decision values"
Array = NDArray[Any]


class Undefined(ValueError):
    """A metric has no value for these rows; the message is a clause that says why."""


class Costs(NamedTuple):
    """The costs of mistakes for two classes; the positive class is the one whose label sorts last."""

    missed: float
    false_alarm: float

    @property
    def threshold(self) -> float:
        """The probability of the positive class from which predicting it costs less.

        Examples
        --------
        >>> Costs(missed=4.0, false_alarm=1.0).threshold
        0.2
        """
        most = max(self)  # the sum of large numbers may be none
        return (self.false_alarm / most) / (self.false_alarm / most + self.missed / most)

    def each(self, true: Array, found: Array) -> Array:
        """Return the cost of each row (n,). true: whether it is positive (n,); found: whether it is predicted to be."""
        return np.where(true & ~found, self.missed, np.where(found & ~true, self.false_alarm, 0.0))

    def mean(self, true: Array, found: Array) -> float:
        """Return the mean cost of a row."""
        return float(self.each(true, found).mean())


@dataclass(frozen=True)
class Answers:
    """The predictions of a model for n rows.

    classes: the K labels of model and rows, sorted. codes: the true labels (n,) as places in `classes`; predicted: the
    same for the predicted labels (n,). probabilities: (n, K), zero for classes that the model does not know; decisions:
    (n,) for two classes, (n, K) for more. Either is None if the model has none. costs: of mistakes, None if all cost
    the same.
    """

    classes: Array
    codes: Array
    predicted: Array
    probabilities: Array | None = None
    decisions: Array | None = None
    costs: Costs | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Array) -> Answers:
        """Return the predictions of some rows; a row may be repeated."""
        names = ("codes", "predicted", "probabilities", "decisions")
        parts = {name: part[rows] for name in names if (part := getattr(self, name)) is not None}
        return replace(self, **parts)

    @property
    def needed(self) -> Array:
        """The probabilities; raises Undefined where there are none."""
        if self.probabilities is None:
            raise Undefined("the method gives no probabilities")
        return self.probabilities


@dataclass(frozen=True)
class Measured:
    """The value of a metric and its 95 % interval; None, and the reason, where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Metric:
    """A measure by its name. function: from answers to the value; less: whether less is better.

    each: where the value is a mean over rows, from answers to what is averaged (n,).
    """

    name: str
    function: Callable[[Answers], float]
    less: bool
    each: Callable[[Answers], Array] | None = None

    def value(self, answers: Answers) -> float:
        """Return the value, a finite number; raises Undefined where there is none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as precision without predictions, which is 0
            try:
                found = float(self.function(answers))
            except Undefined:
                raise
            except Exception as error:  # whatever a scorer refuses, it does so in its own words
                raise Undefined(_why(error)) from error
        if not np.isfinite(found):
            raise Undefined("it is not defined on these rows")
        return found

    def loss(self, value: float) -> float:
        """Return the value with the sign for which less is better; for a loss, the value itself."""
        return value if self.less else -value


def answers_of(model: Any, X: Any, y: Array, costs: Costs | None = None) -> Answers:
    """Return a fitted classifier's predictions for the rows X (n, D) with labels y (n,). costs: of its mistakes."""
    said, known = labels_of(model, X), np.asarray(model.classes_)
    classes = np.unique(np.concatenate([known, y]))
    codes, predicted = (np.searchsorted(classes, labels) for labels in (y, said))
    places = np.searchsorted(classes, known)
    probabilities = None
    if (given := probabilities_of(model, X)) is not None:
        probabilities = np.zeros((len(y), len(classes)))
        probabilities[:, places] = given
    decisions = ask(model, "decision_function", X) if len(known) == len(classes) else None
    expected = (len(y),) if len(classes) == 2 else (len(y), len(classes))
    if decisions is not None and decisions.shape != expected:  # such as one against one, a column for each pair
        decisions = None
    return Answers(classes, codes, predicted, probabilities, decisions, costs)


def metric(name: str) -> Metric:
    """Return a metric by its name.

    Names: ``error``, ``cost``, ``log_loss``, ``brier`` and ``ece`` are losses, for which less is better. The names of
    scikit-learn's scorers (``sklearn.metrics.get_scorer_names``) give the scorer's value, for which more is better. A
    name with a dot is the import path of a scorer, or of a function of true and predicted labels for which more is
    better. Of two classes, the positive one is the one that sorts last.

    Raises DataError for an unknown name, and for an import path that is not allowed, see
    `ldsvm.datasets.transformers`.

    Examples
    --------
    >>> import numpy as np
    >>> answers = Answers(np.array(["no", "yes"]), np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0]))
    >>> metric("error").value(answers), metric("recall").value(answers)
    (0.25, 0.6666666666666666)
    """
    if name in MEANS:
        return Metric(name, lambda answers: float(MEANS[name](answers).mean()), less=True, each=MEANS[name])
    if name in OTHERS:
        return Metric(name, OTHERS[name], less=True)
    if name in QUICK:
        return Metric(name, QUICK[name], less=False)
    if is_path(name):
        return _from_path(name)
    from sklearn.metrics import get_scorer, get_scorer_names

    if name not in (known := get_scorer_names()):
        raise DataError(unknown(f'metric "{name}"', name, [*OURS, *known]))
    return Metric(name, _scored(get_scorer(name), by_code=True), less=False)


def paths(names: Sequence[str]) -> list[str]:
    """Return the import paths among names."""
    return [name for name in dict.fromkeys(names) if is_path(name)]


def measure(names: Sequence[str], answers: Answers, seed: int, resamples: int = RESAMPLES) -> dict[str, Measured]:
    """Return the metrics by name with 95 % intervals: percentiles over resamples of the rows, the same for all."""
    metrics, found = [metric(name) for name in names], {}
    for one in metrics:
        try:
            found[one.name] = Measured(one.value(answers))
        except Undefined as error:
            found[one.name] = Measured(None, reason=str(error))
    there = [one for one in metrics if found[one.name].value is not None]
    rng, values = np.random.default_rng(seed), np.full((resamples if there else 0, len(there)), np.nan)
    means = {k: one.each(answers) for k, one in enumerate(there) if one.each is not None}
    with unchecked():
        for row in values:
            drawn = rng.integers(len(answers), size=len(answers))
            again = answers.take(drawn) if len(means) < len(there) else answers
            row[:] = [means[k][drawn].mean() if k in means else _or_nan(one, again) for k, one in enumerate(there)]
    for one, column in zip(there, values.T, strict=True):
        good = column[~np.isnan(column)]
        if len(good) >= UNDEFINED * resamples:
            low, high = np.percentile(good, [2.5, 97.5])
            found[one.name] = Measured(found[one.name].value, float(low), float(high))
    return found


def unchecked() -> Any:
    """Return a context in which scikit-learn skips checks that it has already done for the whole set."""
    from sklearn import config_context

    return config_context(assume_finite=True, skip_parameter_validation=True)


def _or_nan(metric: Metric, answers: Answers) -> float:
    try:
        return metric.value(answers)
    except Undefined:  # such as a resample without one of the classes
        return np.nan


def _errors(answers: Answers) -> Array:
    return np.asarray(answers.codes != answers.predicted, dtype=np.float64)


def _costs(answers: Answers) -> Array:
    if answers.costs is None:
        raise Undefined("no costs are given")
    if len(answers.classes) != 2:
        raise Undefined("it is for two classes")
    return answers.costs.each(answers.codes == 1, answers.predicted == 1)


def _log_losses(answers: Answers) -> Array:
    right = answers.needed[np.arange(len(answers)), answers.codes]
    return np.asarray(-np.log(np.maximum(right, np.finfo(np.float64).eps)))


def _briers(answers: Answers) -> Array:
    """Square distances (n,) of probabilities and truth; for two classes, as usual, of the positive one alone."""
    wrong = answers.needed.copy()
    wrong[np.arange(len(answers)), answers.codes] -= 1
    total = (wrong**2).sum(axis=1)
    return np.asarray(total / 2 if len(answers.classes) == 2 else total)


def _ece(answers: Answers) -> float:
    """Expected calibration error: |accuracy - confidence| in bins of the confidence, weighted by their rows."""
    places = reliability(answers)
    return float(np.abs(places[:, 1] - places[:, 0]) @ places[:, 2] / len(answers))


def _area(answers: Answers) -> float:
    """The area under the ROC curve by ranks, as Mann and Whitney count it; a third of the scorer's time, or less."""
    from scipy.stats import rankdata

    if len(answers.classes) != 2:
        raise Undefined(OTHER_AREAS)
    scores = answers.decisions
    if scores is None and answers.probabilities is not None:
        scores = answers.probabilities[:, 1]
    if scores is None:
        raise Undefined(NO_SCORES)
    found = answers.codes == 1
    n = np.float64(found.sum())  # without rows of a class the area is not a number
    return float((rankdata(scores)[found].sum() - n * (n + 1) / 2) / (n * (len(answers) - n)))


def reliability(answers: Answers, bins: int = BINS) -> NDArray[np.float64]:
    """Return, for each bin of confidence that is not empty, its mean confidence, its accuracy, and its number of rows.

    The confidence is the largest probability; a row counts as correct if the class with this probability is.
    """
    confidence, answer = answers.needed.max(axis=1), answers.needed.argmax(axis=1)
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    n = np.bincount(places, minlength=bins)
    sums = [np.bincount(places, weights=w, minlength=bins) for w in (confidence, answer == answers.codes)]
    full = n > 0
    return np.column_stack([*(s[full] / n[full] for s in sums), n[full]])


MEANS: dict[str, Callable[[Answers], Array]] = {
    "error": _errors,
    "cost": _costs,
    "log_loss": _log_losses,
    "brier": _briers,
}
OTHERS: dict[str, Callable[[Answers], float]] = {"ece": _ece}
OURS = (*MEANS, *OTHERS)
QUICK: dict[str, Callable[[Answers], float]] = {"roc_auc": _area}  # what scikit-learn's scorer gives, sooner


def _from_path(path: str) -> Metric:
    """Return a scorer, or a function of true and predicted labels, by its import path."""
    from sklearn.metrics import make_scorer

    found = imported(path, f"metrics.{path}")
    if not callable(found) or isinstance(found, type):
        raise DataError(
            f"metrics.{path} is not a function; allowed: a scorer of sklearn.metrics.make_scorer, or a function of "
            "true and predicted labels of which more is better."
        )
    is_scorer = isinstance(found, type(make_scorer(len)))
    return Metric(path, _scored(found if is_scorer else make_scorer(found), by_code=False), less=False)


def _scored(scorer: Any, *, by_code: bool) -> Callable[[Answers], float]:
    """Return a scorer as a function of answers. by_code: labels are 0, 1, …, so that 1 is positive for any names."""
    from ldsvm.known_answers import KnownAnswers

    def value(answers: Answers) -> float:
        labels = np.arange(len(answers.classes)) if by_code else answers.classes
        known = KnownAnswers(labels, labels[answers.predicted], answers.probabilities, answers.decisions)
        found = scorer(known, np.arange(len(answers)), labels[answers.codes])
        if not isinstance(found, Real | np.bool_):
            raise Undefined(f"it gives {shown(found)}; allowed: a number")
        return float(found)

    return value


def _why(error: Exception) -> str:
    """Return in a clause why a scorer gave no value."""
    text = " ".join(str(error).split())
    if "multi_class must be in" in text:
        return OTHER_AREAS
    if "Target is multiclass but average='binary'" in text:
        return "it is for two classes; for more, add _macro, _micro or _weighted to its name"
    if "predict_proba" in text and "decision_function" in text:
        return NO_SCORES
    if "predict_proba" in text or "decision_function" in text:
        return f"the method gives no {'probabilities' if 'predict_proba' in text else 'decision values'}"
    return text[:200].rstrip(".") or type(error).__name__
