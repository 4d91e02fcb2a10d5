"""One method on one problem: search, fit the winner, judge it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ldsvm.baselines import lookup
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.judge import judge
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.results import Result
from ldsvm.experiment.search import OnTrials, best, run_search
from ldsvm.experiment.trial import Data, Job, OnStep, fit_point, reason, sentence


def training_data(prepared: Prepared, labels: str) -> Data:
    """Return the training and validation arrays of one problem. The test set is not among them on purpose."""
    return Data(*prepared.arrays("train", labels), *prepared.arrays("validation", labels))


def compete(
    config: Config, prepared: Prepared, problem: ProblemConfig, name: str, on_trials: OnTrials, on_step: OnStep
) -> tuple[Result, Any]:
    """Return what the method `name` achieves on one split, and the judged model (None when it failed).

    The grid is compared on the validation set; then the best point is fitted once more by itself, on the training
    set alone, so that every method's `train_s` is the time of one fit from nothing and the judged model is what
    `fit` gives anyone with these parameters. It is not refitted on training and validation data together.
    """
    method = config.methods[name]
    data = training_data(prepared, problem.labels)
    trials = run_search(method, data, seed=prepared.seed, n_jobs=config.n_jobs, on_trials=on_trials, on_step=on_step)
    result = Result(problem.name, name, method.estimator, trials, prepared.seed - config.seed)
    try:
        point = best(trials).params
        fit = fit_point(Job(method, (point,), (0,), prepared.seed, config.n_jobs), point, data, on_step)
        score = judge(
            fit.model,
            lookup(method.estimator),
            *prepared.arrays("test", problem.labels),
            repeats=config.judge.repeats,
        )
    except Exception as error:
        return replace(result, failure=sentence(error)), None
    done = replace(
        result,
        params={**method.params, **point},
        valid_error=float(np.mean(fit.model.predict(data.X_valid) != data.y_valid)),
        train_s=fit.seconds,
        score=score,
        stop_reason=reason(fit.model),
        history=[dict(row) for row in getattr(fit.model, "history_", [])],
        best_iter=getattr(fit.model, "best_iter_", None),
        **_kind(fit.model, method.estimator),
        notes=fit.notes,
    )
    return done, fit.model


def _kind(model: Any, estimator: str) -> dict[str, Any]:
    if not lookup(estimator).iterative:
        return {}
    return {"map": model.map if isinstance(model.map, str) else None, "n_latent": int(model.coef_.shape[-1])}
