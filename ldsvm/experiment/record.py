"""What of a contest goes into the tracking store and into the results folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ldsvm.experiment import results
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.contest import Judged, compete
from ldsvm.experiment.outcome import Outcome, split_folder
from ldsvm.experiment.prepared import SPLIT, Prepared
from ldsvm.experiment.results import Result
from ldsvm.experiment.search import Executor, OnTrials
from ldsvm.experiment.tracking import Run, Tracker
from ldsvm.experiment.trial import OnStep, Trial
from ldsvm.experiment.worker import Runner


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
    runner: Runner,
    executor: Executor | None = None,
) -> Outcome:
    """Let one method compete on every split, track it under the run `parent`, and write its results below `folder`.

    A result is written whole or not at all. A method that fails has its run marked FAILED and a result that says why.
    """
    tracker = Tracker(config.paths.runs, config.name)
    found: list[Result] = []
    with tracker.run(name, kind="method", parent=parent) as run:
        for i, prepared in enumerate(splits):
            on_split(i + 1)
            result, judged = compete(config, prepared, problem, name, runner, on_trials, on_step, executor)
            prefix = f"split {i} · " if len(splits) > 1 else ""
            for trial in result.trials:
                _track_trial(tracker, run, trial, prefix)
            if judged is not None and i == 0:
                _track_model(run, judged, prepared)
            results.write(result, split_folder(folder, i), partial(_save_latent, judged))
            found.append(result)
        outcome = Outcome(folder, tuple(found))
        _track_outcome(run, outcome)
        run.failure = None if outcome.foreseen else outcome.failure
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


def _track_model(run: Run, judged: Judged, prepared: Prepared) -> None:
    """Keep our model of the first split, feature steps included, and the course of its training."""
    run.history(judged.history)
    if judged.model is not None:
        run.model(prepared.whole(judged.model), prepared.example())


def _track_outcome(run: Run, outcome: Outcome) -> None:
    if not outcome.judged:
        run.describe(name=f"{outcome.method} · {outcome.failure}")
        return
    values = {
        "error_percent": _hundred(outcome.error),
        "error_std_percent": _hundred(outcome.spread),
        "valid_error_percent": _hundred(outcome.valid_error),
        "n_basis": outcome.n_basis,
        "n_basis_sum": outcome.n_basis_sum,
        "train_s": outcome.train_s,
        "train_alone_s": outcome.train_alone_s,
        "search_s": outcome.search_s,
        "predict_us": outcome.predict_us,
        "predict_all_us": outcome.predict_all_us,
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


def _save_latent(judged: Judged | None, place: Path) -> None:
    """Keep where the training set lies in the latent space (N, L), for the figure."""
    if judged is not None and judged.latent is not None:
        np.save(place / "latent.npy", judged.latent)


def standing(found: Sequence[Outcome]) -> str:
    """Return every method's test error in one line, such as "ours 2.4 %, NN 1.3 %"."""
    return ", ".join(f"{o.method} {percent(o.error) if o.judged else o.verdict}" for o in found)
