"""What of a contest goes into the tracking store and into the results folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.baselines import lookup
from ldsvm.experiment import results
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.contest import compete
from ldsvm.experiment.outcome import Outcome, split_folder
from ldsvm.experiment.prepared import SPLIT, Prepared
from ldsvm.experiment.results import Result
from ldsvm.experiment.search import OnTrials
from ldsvm.experiment.tracking import Run, Tracker
from ldsvm.experiment.trial import OnStep, Trial


def run_method(
    config: Config,
    splits: Sequence[Prepared],
    problem: ProblemConfig,
    name: str,
    *,
    folder: Path,
    parent: str,
    on_trials: OnTrials,
    on_step: OnStep,
    on_split: Callable[[int], None],
) -> Outcome:
    """Let one method compete on every split, track it under the run `parent`, and write its results below `folder`.

    A result is written whole or not at all. A method that fails has its run marked FAILED and a result that says why.
    """
    tracker = Tracker(config.paths.runs, config.name)
    found: list[Result] = []
    with tracker.run(name, kind="method", parent=parent) as run:
        for i, prepared in enumerate(splits):
            on_split(i + 1)
            result, model = compete(config, prepared, problem, name, on_trials, on_step)
            prefix = f"split {i} · " if len(splits) > 1 else ""
            for trial in result.trials:
                _track_trial(tracker, run, trial, prefix)
            if model is not None and i == 0:
                _track_model(run, result, model, prepared)
            results.write(result, split_folder(folder, i), _latent_of(model, prepared))
            found.append(result)
        outcome = Outcome(folder, tuple(found))
        _track_outcome(run, outcome)
        run.failure = outcome.failure
    return outcome


def track_data(run: Run, splits: Sequence[Prepared], problem: str) -> None:
    """Record in a problem's run which data it used, and attach the row numbers of every split."""
    first = splits[0]
    digest = first.digest if len(splits) == 1 else first.dataset["sha256"][:12]
    run.dataset(f"{first.dataset['name']}, {problem}", digest, first.dataset["source"], first.summary)
    for i, prepared in enumerate(splits):
        run.files([prepared.folder / SPLIT], f"splits/{i}")


def _track_trial(tracker: Tracker, parent: Run, trial: Trial, prefix: str) -> None:
    point = ", ".join(f"{k}={v}" for k, v in trial.params.items()) or "no search"
    outcome = "failed" if trial.valid_error is None else f"{percent(trial.valid_error)} on validation"
    with tracker.run(f"{prefix}{point} · {outcome}", kind="trial", parent=parent.id) as run:
        values = {
            "valid_error_percent": _hundred(trial.valid_error),
            "train_s": trial.train_s,
            "n_basis": trial.n_basis,
        }
        run.log(trial.params, values)
        run.history(trial.history)
        run.failure = trial.failure


def _track_model(run: Run, result: Result, model: Any, prepared: Prepared) -> None:
    """Keep our model of the first split, feature steps included, and the course of its training."""
    run.history(result.history)
    if lookup(result.estimator).iterative:
        run.model(prepared.whole(model), prepared.example())


def _track_outcome(run: Run, outcome: Outcome) -> None:
    if not outcome.judged:
        return
    values = {
        "error_percent": _hundred(outcome.error),
        "error_std_percent": _hundred(outcome.spread),
        "valid_error_percent": _hundred(outcome.valid_error),
        "n_basis": outcome.n_basis,
        "train_s": outcome.train_s,
        "predict_us": outcome.predict_us,
        "parameter_bytes": outcome.parameter_bytes,
    }
    run.log({"estimator": outcome.first.estimator, **outcome.params}, values)
    run.describe(name=f"{label(outcome)} · {percent(outcome.error)}")


def label(outcome: Outcome) -> str:
    """Return the method's name with its kind of map and its sizes, such as "ours rbf M=200 L=9"."""
    first = outcome.first
    size = [f"M={outcome.n_basis:g}"] if outcome.n_basis else []
    width = [f"L={first.n_latent}"] if first.n_latent else []
    return " ".join([outcome.method, *([first.map] if first.map else []), *size, *width])


def percent(fraction: float) -> str:
    """Return a fraction as people read it: 0.0243 is "2.4 %"."""
    return f"{100 * fraction:.1f} %"


def _hundred(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction


def _latent_of(model: Any, prepared: Prepared) -> Any:
    """Return what writes where the training set lies in the latent space (N, L), for the figure."""

    def write(place: Path) -> None:
        if hasattr(model, "transform"):
            X, _ = prepared.arrays("train", "original")
            np.save(place / "latent.npy", model.transform(X))

    return write


def standing(found: Sequence[Outcome]) -> str:
    """Return every method's test error in one line, such as "ours 2.4 %, NN 1.3 %"."""
    return ", ".join(f"{o.method} {percent(o.error) if o.judged else 'failed'}" for o in found)
