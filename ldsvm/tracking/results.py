"""Writes stored results to the tracking store, so that it can be done again after a failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ldsvm.datasets.words import slug
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.outcome import Outcome, label, percent
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.prepared import SPLIT, Prepared
from ldsvm.experiment.search.trial import Trial
from ldsvm.metrics import DEFAULT
from ldsvm.tracking.client import Run, Tracker
from ldsvm.tracking.provenance import commit, environment

MOST_STEPS = 20  # iterations of a trial in the store; the fit that is judged has all
MARKS = "tracked"  # a folder beside the results: for each the run that has its trials


def track_data(run: Run, splits: Sequence[Prepared], problem: str) -> None:
    """Record in a problem's run which data it used, and attach the row numbers of every split."""
    track_dataset(run, splits, problem)
    for i, prepared in enumerate(splits):
        run.files([prepared.folder / SPLIT], f"splits/{i}")


def track_dataset(run: Run, splits: Sequence[Prepared], problem: str) -> None:
    """Record in a run which data it used: name, digest, source and summary."""
    first = splits[0]
    digest = first.digest if len(splits) == 1 else first.dataset["sha256"][:12]
    run.dataset(f"{first.dataset['name']}, {problem}", digest, first.dataset["source"], first.summary)


def track_circumstances(run: Run, configuration: str, home: Path) -> None:
    """Record the configuration, the installed packages, and the commit of the checkout in the folder `home`."""
    run.text("configuration.yaml", configuration)
    run.text("environment.txt", environment())
    if (found := commit(home)) is not None:
        run.tag("mlflow.source.git.commit", found)


def track_method(
    tracker: Tracker, parent: Run, config: Config, splits: Sequence[Prepared], problem: ProblemConfig, outcome: Outcome
) -> Run:
    """Log one method, below it the trials, unless the store has them from an earlier run, and return its run."""
    places = [record.place(config, prepared, problem, outcome.method) for prepared in splits]
    earlier = [_earlier(tracker, place, result) for place, result in zip(places, outcome.results, strict=True)]
    begun = None if all(earlier) else min(result.started for result in outcome.results)
    with tracker.run(outcome.method, kind="method", parent=parent.id, started=begun) as run:
        track_dataset(run, splits, problem.name)
        for result, known in zip(outcome.results, earlier, strict=True):
            if known is None:
                _track_result(tracker, run, result, f"split {result.split} · " if len(places) > 1 else "")
        again = " (again)" if all(earlier) else ""
        _track_outcome(run, outcome, problem.name if len(config.problems) > 1 else None, again)
        if learnt := config.methods[outcome.method].labels:
            run.log({"labels": learnt}, {})
        if (executor := config.methods[outcome.method].executor) is not None:
            run.log(executor.facts(splits[0].sizes["train"]), _workers(outcome.first.history))
        if all(earlier):
            run.tag("ldsvm.found_again", str(earlier[0]))
            run.describe(note=f"Unchanged since the run {earlier[0]}, which has its trials.")
        elif (places[0] / record.MODEL).is_file():
            _track_model(run, places[0], splits[0], f"{slug(problem.name)}-{slug(outcome.method)}")
        run.failure = None if outcome.foreseen else outcome.failure
    for place, result, known in zip(places, outcome.results, earlier, strict=True):
        _mark(place).parent.mkdir(exist_ok=True)
        _mark(place).write_text(f"{known or run.id} {result.started}", encoding="utf-8")
    return run


def _workers(history: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Return what the workers of a fit over blocks of rows moved, and how unequal their work was.

    straggler_ratio: the seconds of work of the slowest over the mean of all, 1 if they are equal.

    Examples
    --------
    >>> _workers([{"bytes_down": 30, "bytes_up": 70, "seconds_slowest": 3.0, "seconds_mean": 2.0, "lost": 1}])
    {'straggler_ratio': 1.5, 'bytes_per_iteration': 100.0, 'workers_replaced': 1}
    """
    if not history:
        return {}
    moved, slowest, mean = (
        sum(row[key] for row in history for key in keys)
        for keys in (("bytes_down", "bytes_up"), ("seconds_slowest",), ("seconds_mean",))
    )
    return {
        "straggler_ratio": slowest / mean if mean else None,
        "bytes_per_iteration": moved / len(history),
        "workers_replaced": history[-1]["lost"],
    }


def _mark(place: Path) -> Path:
    return place.parent / MARKS / f"{place.name}.txt"


def _earlier(tracker: Tracker, place: Path, result: Result) -> str | None:
    """Return the run of this experiment that has the trials of just this result, None when there is none."""
    try:
        run_id, _, started = _mark(place).read_text(encoding="utf-8").partition(" ")
    except (OSError, ValueError):
        return None
    return run_id if started == str(result.started) and tracker.knows(run_id) else None


def _track_result(tracker: Tracker, run: Run, result: Result, prefix: str) -> None:
    track_trials(tracker, run, result.trials, prefix, result.started)
    if result.split == 0:
        run.history(result.history)
    if (score := result.score) is not None:
        suffix = f"_split_{result.split}" if prefix else ""
        columns = {"class": score.classes, **{f"predicted {c}": [row[i] for row in score.confusion]
                   for i, c in enumerate(score.classes)}}  # fmt: skip
        run.table(f"confusion{suffix}.json", columns)
        totals = [sum(row) for row in score.confusion]
        errors = [_hundred(error) for error in score.class_errors]
        run.table(f"classes{suffix}.json", {"class": score.classes, "samples": totals, "error_percent": errors})


def track_trials(tracker: Tracker, parent: Run, trials: Sequence[Trial], prefix: str, started: float) -> None:
    """Log trials, as if they had run one after the other from `started` on. prefix: words for the split."""
    for trial in trials:
        _track_trial(tracker, parent, trial, prefix, started)
        started += trial.seconds


def _track_trial(tracker: Tracker, parent: Run, trial: Trial, prefix: str, started: float) -> None:
    point = ", ".join(f"{k}={_short(v)}" for k, v in trial.params.items()) or "no search"
    outcome = "failed" if trial.valid_error is None else f"{percent(trial.valid_error)} on validation"
    values = {
        "valid_error_percent": _hundred(trial.valid_error),
        "train_s": trial.train_s,
        "n_basis": trial.n_basis,
        "peak_mib": trial.peak_mib,
        "resource": trial.resource,
    }
    tracker.finished(
        f"{prefix}{point} · {outcome}", kind="trial", parent=parent.id, params=trial.params, metrics=values,
        history=_thinned(trial.history), started=started, seconds=trial.seconds,
        failure=trial.failure.sentence if trial.failure else None, tags=parent.data,
    )  # fmt: skip


def _thinned(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return at most MOST_STEPS iterations, first and last among them: a point of a chart costs the store 60 us."""
    if len(rows) <= MOST_STEPS:
        return list(rows)
    last = len(rows) - 1
    return [rows[round(i * last / (MOST_STEPS - 1))] for i in range(MOST_STEPS)]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _track_model(run: Run, place: Path, prepared: Prepared, name: str) -> None:
    """Log our model of the first split, feature steps included."""
    from ldsvm.experiment.storing import loads

    run.model(prepared.whole(loads((place / record.MODEL).read_bytes())), prepared.example(), name)


def _track_outcome(run: Run, outcome: Outcome, problem: str | None, again: str) -> None:
    """Log what the method achieved. problem: its name where the experiment has several. again: ends the run's name."""
    first = "" if problem is None else f"{problem} · "
    if not outcome.judged:
        run.describe(name=f"{first}{outcome.method} · {outcome.failure}")
        return
    low, high = outcome.bounds
    values = {
        "error_percent": _hundred(outcome.error),
        "error_low_percent": _hundred(low),
        "error_high_percent": _hundred(high),
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
        "peak_mib": outcome.peak_mib,
        **outcome.metrics,
        "threshold": outcome.scores[0].threshold,
    }
    run.log({"estimator": outcome.first.estimator, **outcome.params}, values)
    for result, score in zip(outcome.results, outcome.scores, strict=True) if len(outcome.results) > 1 else ():
        metrics = {f"split/{name}": one.value for name, one in score.metrics.items() if name != DEFAULT}
        run.sample({"split/error_percent": _hundred(score.error), **metrics}, result.split)
    run.describe(name=f"{first}{label(outcome)} · {percent(outcome.error)}{again}")


def _hundred(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, 4)
