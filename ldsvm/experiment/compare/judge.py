"""The one judge. Every method, ours included, is scored by this function on the same test set and the same clock."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ldsvm import solvers
from ldsvm.datasets import relabel
from ldsvm.datasets.transformers import is_path
from ldsvm.experiment.config.schema import JudgeConfig, MethodConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.trial import Data, Job, fit_again, fit_point, reason, training_data
from ldsvm.experiment.search.worker import Tell
from ldsvm.methods import Method, lookup
from ldsvm.metrics import DEFAULT, Answers, Costs, Measured, answers_of, measure
from ldsvm.model_answers import labels_of
from ldsvm.speed import predict_us

SHOWN = 100_000  # training rows that a figure needs
SOFT = 1.0  # sharpness of the plane of the scores: training rows are clear, and at a larger one lie at the corners


@dataclass(frozen=True)
class Score:
    """What the judge found on the test set.

    error, error_low, error_high: fraction of wrong predictions and its 95 % Wilson interval. n_wrong of n_test.
    n_basis: number of basis functions, None where there are none; n_basis_sum: the sum over the SVMs that share
    them. parameter_bytes: size of what a prediction needs. predict_us: microseconds per sample on one thread,
    predict_all_us: on all that the experiment may use. classes: K labels. class_errors: K fractions. confusion: K rows
    of K counts, row = true class, column = predicted class. metrics: those that were asked for, by name. threshold:
    from which the second of two classes is predicted if mistakes cost differently; threshold_of: whether it is one of
    probabilities or of decision values.
    """

    error: float
    error_low: float
    error_high: float
    n_wrong: int
    n_test: int
    n_basis: int | None
    n_basis_sum: int | None
    parameter_bytes: int
    predict_us: float
    predict_all_us: float
    classes: list[Any]
    class_errors: list[float]
    confusion: list[list[int]]
    metrics: dict[str, Measured] = field(default_factory=dict)
    threshold: float | None = None
    threshold_of: str | None = None

    @property
    def majority_error(self) -> float:
        """Fraction of test rows outside the largest class: the error of always answering that class."""
        totals = [sum(row) for row in self.confusion]
        return 1 - max(totals) / sum(totals)


@dataclass(frozen=True)
class Judged:
    """What fitting and judging one point gave. model: only ours, which is kept.

    stored: a classifier by import path as bytes, None if it needs types that the user does not trust.

    importances: of our model by column of the data, the most important first; empty where columns have no names.
    latent: the `shown_rows` of the training set (n, L) in the latent space of ours, or of a reduction to a plane or a
    line. plane: these rows in the plane of our scores (n, 2), where there are more than two classes. answers: on the
    test set, where more than the error is measured.
    """

    score: Score
    valid_error: float
    train_s: float
    notes: list[str]
    history: list[dict[str, Any]]
    stop_reason: str | None = None
    best_iter: int | None = None
    map: str | None = None
    n_latent: int | None = None
    peak_mib: float | None = None
    importances: dict[str, float] = field(default_factory=dict)
    model: Any = None
    latent: Any = None
    plane: Any = None
    stored: bytes | None = None
    answers: Answers | None = None


def judge(
    fitted: Any,
    method: Method,
    X: Any,
    y: NDArray[Any],
    *,
    repeats: int,
    n_jobs: int,
    metrics: Sequence[str] = (DEFAULT,),
    answers: Answers | None = None,
    seed: int = 0,
) -> Score:
    """Score a fitted classifier on the test set X (n, D), y (n,).

    The only place that sees test data; call it once per method, after every choice is made. The speed is the median
    of `repeats` predictions of the whole set, on one thread and on n_jobs, after one that warms up caches and
    compilers. metrics: names, see `ldsvm.metrics.metric`; their intervals are of a bootstrap with that seed, but for
    the error's. answers: what `answers_for` returned for these rows and metrics.
    """
    from sklearn.metrics import confusion_matrix

    predicted = labels_of(fitted, X) if answers is None else answers.classes[answers.predicted]
    classes = np.unique(np.concatenate([fitted.classes_, y]))
    confusion = confusion_matrix(y, predicted, labels=classes)
    totals = confusion.sum(axis=1)
    wrong = int(confusion.sum() - np.trace(confusion))
    low, high = wilson(wrong, len(y))
    measured = {} if answers is None else measure([name for name in metrics if name != DEFAULT], answers, seed)
    exact = {DEFAULT: Measured(wrong / len(y), low, high)}
    return Score(
        error=wrong / len(y),
        error_low=low,
        error_high=high,
        n_wrong=wrong,
        n_test=len(y),
        n_basis=method.count(fitted),
        n_basis_sum=method.total(fitted),
        parameter_bytes=sum(_bytes(array) for array in method.arrays(fitted)),
        predict_us=(alone := predict_us(fitted, X, repeats, 1)),
        predict_all_us=alone if n_jobs == 1 else predict_us(fitted, X, repeats, n_jobs),
        classes=classes.tolist(),
        class_errors=((totals - np.diag(confusion)) / np.maximum(totals, 1)).tolist(),
        confusion=confusion.tolist(),
        metrics={name: {**measured, **exact}[name] for name in metrics},
        **_threshold(fitted),
    )


def _threshold(fitted: Any) -> dict[str, Any]:
    """Return the threshold of a `decision.AtThreshold`, nothing of others."""
    if type(fitted).__name__ != "AtThreshold":  # by name: importing it loads scikit-learn
        return {}
    of = {"predict_proba": "probability", "decision_function": "decision value"}[fitted.response_method]
    return {"threshold": fitted.threshold, "threshold_of": of}


def answers_for(
    metrics: Sequence[str], fitted: Any, X: Any, y: NDArray[Any], costs: Costs | None = None
) -> Answers | None:
    """Return what a classifier says of the test set, for `judge`; None where only the error is asked for."""
    return answers_of(fitted, X, y, costs) if {*metrics} != {DEFAULT} else None


def fit_and_judge(
    job: Job, prepared: Prepared, labels: str, how: JudgeConfig, metrics: Sequence[str], tell: Tell
) -> Judged:
    """Fit the single point of a job and score the model on the test set; for the runner's process.

    With `how.refit` the model is that of a second fit, to which the validation rows belong too; all that is said about
    the course of the training is of the first.
    """
    from ldsvm.methods.decision import decided
    from ldsvm.methods.label_map import Coarser

    data = training_data(prepared, labels, job.method.labels)
    fit = fit_point(job, job.points[0], data, tell)
    model = fit_again(job, fit, data, tell).model if how.refit else fit.model
    first, method = fit.model, lookup(job.method.estimator)
    judged, chooses = (Coarser(one, labels) if job.method.labels else one for one in (model, first))  # the problem's
    judged = decided(judged, job.costs, data.X_valid, relabel(data.y_valid, data.reading), chooses)
    X_test, y_test = prepared.arrays("test", labels)
    stored, remarks = _stored(judged, job.method)
    answers = answers_for(metrics, judged, X_test, y_test, job.costs)
    score = judge(
        judged, method, X_test, y_test, repeats=how.repeats, n_jobs=job.n_jobs, metrics=metrics, answers=answers,
        seed=job.seed,
    )  # fmt: skip
    return Judged(
        score=score,
        valid_error=data.valid_error(first),
        train_s=fit.seconds,
        peak_mib=fit.peak_mib,
        notes=[*fit.notes, *remarks],
        history=[dict(row) for row in getattr(first, "history_", [])],
        stop_reason=reason(first),
        best_iter=getattr(first, "best_iter_", None),
        **(_ours(model) if method.iterative else {}),
        importances=_importances(model, prepared.columns_of_features()) if method.iterative else {},
        model=judged if method.iterative else None,
        latent=_latent(model, method, data),
        plane=_plane(model, data) if method.iterative else None,
        stored=stored,
        answers=answers,
    )


def _stored(model: Any, method: MethodConfig) -> tuple[bytes | None, list[str]]:
    """Return a classifier by import path as bytes; or None, and one sentence on why it is not kept."""
    if not is_path(method.estimator):
        return None, []
    from ldsvm.experiment.storing import UntrustedModel, dumps

    try:
        return dumps(model, method.trusted), []
    except UntrustedModel as error:
        return None, [f"The model is not kept: {error}"]
    except Exception as error:  # whatever skops says of what it cannot hold
        return None, [f"The model is not kept: skops cannot hold it ({type(error).__name__}: {error!s:.200})."]


def fit_on_one_thread(job: Job, prepared: Prepared, labels: str, _: Tell) -> float:
    """Return the seconds of the fit of a job's single point, which is on one thread; for the runner's process."""
    return fit_point(job, job.points[0], training_data(prepared, labels, job.method.labels)).seconds


def _ours(model: Any) -> dict[str, Any]:
    kind = model.map if isinstance(model.map, str) else None
    return {"map": kind, "n_latent": int(model.latent_coef_.shape[-1])}


def _importances(model: Any, columns: list[str] | None) -> dict[str, float]:
    """Return `feature_importances_`, added up by column."""
    if columns is None or not hasattr(model, "feature_importances_"):
        return {}
    found = dict.fromkeys(columns, 0.0)
    for column, share in zip(columns, model.feature_importances_, strict=True):
        found[column] += float(share)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _latent(model: Any, method: Method, data: Data) -> Any:
    """Return the `shown_rows` in the latent space of ours, or of a reduction that can be looked at; else None."""
    reduce = model if method.iterative else getattr(model, "named_steps", {}).get("reduce")
    if reduce is None or (not method.iterative and reduce.transform(data.X[:1]).shape[1] > 2):
        return None
    return reduce.transform(_shown(data))


def _plane(model: Any, data: Data) -> Any:
    """Return the `shown_rows` in the plane of the scores of ours; None for two classes."""
    from ldsvm.class_plane import corners, places

    if len(model.classes_) < 3:
        return None
    scores = model.decision_function(_shown(data))
    return places(scores, corners(scores), SOFT)


def _shown(data: Data) -> Any:
    shown = shown_rows(len(data.y))
    return data.X if len(shown) == len(data.y) else data.X[shown]


def shown_rows(n: int) -> NDArray[np.int64]:
    """Return the numbers of the training rows that figures show, of n: all, or so many that are evenly apart.

    Examples
    --------
    >>> len(shown_rows(150)), len(shown_rows(3_000_000))
    (150, 100000)
    """
    return np.arange(n) if n <= SHOWN else np.linspace(0, n - 1, SHOWN).astype(np.int64)


def is_cold() -> bool:
    """Return whether `warm` surely has to compile: the package's own cache of kernels, which can be written, has none.

    False where kernels may lie elsewhere, in the user's folder or in that of NUMBA_CACHE_DIR.
    """
    folder = Path(solvers.__file__).parent
    if "NUMBA_CACHE_DIR" in os.environ or not os.access(folder, os.W_OK):
        return False
    return not any((folder / "__pycache__").glob(f"*.py{sys.version_info.major}{sys.version_info.minor}.nbi"))


def warm(_: Tell) -> None:
    """Load our compiled kernels, which a first run on a machine compiles, so that no fit's clock counts it."""
    from ldsvm.estimator import LDSVMClassifier

    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    for classes in (2, 3):
        y = np.arange(30) % classes
        model = LDSVMClassifier(n_basis=5, max_iter=2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two iterations converge to nothing
            model.fit(X, y, eval_set=(X, y)).predict(X)


def wilson(wrong: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of the proportion wrong / n.

    Unlike the usual p ± 2 sd it stays inside [0, 1] and does not shrink to a point at zero errors
    (Wilson 1927, J. Am. Stat. Assoc. 22, 209-212).
    """
    from scipy.stats import binomtest

    interval = binomtest(wrong, n).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def _bytes(array: Any) -> int:
    """Return the size of an array or of a sparse matrix, such as the training rows of nearest neighbours."""
    parts = [getattr(array, name) for name in ("data", "indices", "indptr")] if issparse(array) else [array]
    return sum(int(part.nbytes) for part in parts)
