"""What of a contest goes into the tracking store and into the results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.baselines import lookup
from ldsvm.experiment import results
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.contest import compete
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.results import Result
from ldsvm.experiment.search import OnTrials
from ldsvm.experiment.tracking import Run, Tracker
from ldsvm.experiment.trial import OnStep, Trial


def run_method(
    config: Config,
    prepared: Prepared,
    problem: ProblemConfig,
    name: str,
    *,
    folder: Path,
    parent: str,
    on_trials: OnTrials,
    on_step: OnStep,
) -> Result:
    """Let one method compete, track it under the run `parent`, and write its result to `folder`, whole or not at all.

    A method that fails has its run marked FAILED and a result that says why.
    """
    tracker = Tracker(config.paths.runs, config.name)
    with tracker.run(name, kind="method", parent=parent) as run:
        result, model = compete(config, prepared, problem, name, on_trials, on_step)
        run.failure = result.failure
        for trial in result.trials:
            _track_trial(tracker, run, trial)
        if model is not None:
            _track_winner(run, result, model, prepared)
        results.write(result, folder, lambda place: _save_latent(place, model, prepared))
    return result


def _track_trial(tracker: Tracker, parent: Run, trial: Trial) -> None:
    point = ", ".join(f"{k}={v}" for k, v in trial.params.items()) or "no search"
    outcome = "failed" if trial.valid_error is None else f"{percent(trial.valid_error)} on validation"
    with tracker.run(f"{point} · {outcome}", kind="trial", parent=parent.id) as run:
        values = {
            "valid_error_percent": _hundred(trial.valid_error),
            "train_s": trial.train_s,
            "n_basis": trial.n_basis,
        }
        run.log(trial.params, values)
        run.history(trial.history)
        run.failure = trial.failure


def _track_winner(run: Run, result: Result, model: Any, prepared: Prepared) -> None:
    score = result.score
    assert score is not None
    values = {
        "error_percent": _hundred(score.error),
        "valid_error_percent": _hundred(result.valid_error),
        "n_basis": score.n_basis,
        "train_s": result.train_s,
        "predict_us": score.predict_us,
        "parameter_bytes": score.parameter_bytes,
    }
    run.log({"estimator": result.estimator, **result.params}, values)
    run.history(result.history)
    run.describe(name=f"{label(result, model)} · {percent(score.error)}")
    run.dataset(f"{prepared.dataset['name']}, {result.problem}", prepared.digest, prepared.dataset["source"])
    if lookup(result.estimator).iterative:
        X, _ = prepared.arrays("train", "original")
        run.model(model, np.array(X[:5]))


def label(result: Result, model: Any) -> str:
    """Return the method's name with its kind of map and its size, such as "ours rbf M=200 L=9"."""
    kind = [str(model.map)] if isinstance(getattr(model, "map", None), str) else []
    size = result.score.n_basis if result.score else None
    width = [f"L={np.shape(model.coef_)[-1]}"] if lookup(result.estimator).iterative else []
    return " ".join([result.method, *kind, *([f"M={size}"] if size else []), *width])


def percent(fraction: float) -> str:
    """Return a fraction as people read it: 0.0243 is "2.4 %"."""
    return f"{100 * fraction:.1f} %"


def _hundred(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction


def _save_latent(place: Path, model: Any, prepared: Prepared) -> None:
    """Keep where the training set lies in the latent space (N, L), for the figure."""
    if hasattr(model, "transform"):
        X, _ = prepared.arrays("train", "original")
        np.save(place / "latent.npy", model.transform(X))


def standing(found: list[Result]) -> str:
    """Return every method's test error in one line, such as "ours 2.4 %, NN 1.3 %"."""
    return ", ".join(f"{r.method} {percent(r.score.error) if r.score else 'failed'}" for r in found)
