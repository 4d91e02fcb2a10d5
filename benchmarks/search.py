"""A search that learns: how many trials it needs to be as good as 60 random points, and what it costs beside the fits.

The validation error is looked up: for every data set a grid over gamma, alpha and C is fitted once, and a point has the
error of the nearest one, so that ten searches of each kind cost seconds. The test rows play no part.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import ldsvm
from benchmarks.harness import Bar, Result, newsgroups, progress
from ldsvm.experiment.config.spaces import Point, Range, StrategyConfig, draw
from ldsvm.experiment.search.learned import Learned, StudyFile
from ldsvm.experiment.search.trial import Trial

TRIALS, BATCH, SEEDS, N_BASIS = 60, 4, 10, 100
TABLES = ("german", "segment", "vehicle")
ENDS = {"gamma": (0.01, 10.0), "alpha": (1e-6, 1.0), "C": (0.03, 30.0)}  # gamma in units of "scale"
STEPS = {"gamma": 13, "alpha": 7, "C": 7}
MOST_SHARE, MOST_SECONDS = 0.6, 0.1

Parts = tuple[Any, Any, Any, Any]


def run(quick: bool) -> Result:
    seeds, trials = (2, 12) if quick else (SEEDS, TRIALS)
    steps = {"gamma": 3, "alpha": 2, "C": 2} if quick else STEPS
    result = Result(settings={"trials": trials, "batch": BATCH, "seeds": seeds, "ends": ENDS, "steps": steps})
    space = {name: Range(log_uniform=list(ends)) for name, ends in ENDS.items()}
    with TemporaryDirectory() as folder:
        for name, parts in _data(quick).items():
            progress(f"search: the errors of {name}")
            errors = _errors(*parts(), steps)
            for seed in range(seeds):
                study_file = StudyFile(Path(folder) / f"{name}.db", str(seed))
                result.rows.append({"data": name, "seed": seed, **_compared(space, errors, trials, seed, study_file)})
    for name in dict.fromkeys(row["data"] for row in result.rows):
        share = median(row["trials needed"] for row in result.rows if row["data"] == name) / trials
        result.bars.append(Bar(f"{name}_share_of_trials_needed", share, "<=", MOST_SHARE))
    share = median(row["trials needed"] for row in result.rows) / trials
    result.bars += [
        Bar("median_share_of_trials_needed", share, "<=", MOST_SHARE),
        Bar("seconds_a_trial_beside_the_fits", median(row["s a trial"] for row in result.rows), "<=", MOST_SECONDS),
    ]  # fmt: skip
    return result


def _data(quick: bool) -> dict[str, Callable[[], Parts]]:
    """Return what gives training and validation rows, X, y, X, y, by name."""
    from benchmarks.tabular_data import tables

    found: dict[str, Callable[[], Parts]] = {"digits": _digits}
    if quick:
        return found
    found["PC or Mac"] = _newsgroups
    return found | {one.name: lambda one=one: _halves(*one.split(0)[:2]) for one in tables(False) if one.name in TABLES}


def _halves(X: Any, y: Any) -> Parts:
    from sklearn.model_selection import train_test_split

    X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    return X, y, X_valid, y_valid


def _digits() -> Parts:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return _halves(X[:1200] / 16, y[:1200])


def _newsgroups() -> Parts:
    found = newsgroups(0)
    return (*found["train"], *found["validation"])


def _errors(X: Any, y: Any, X_valid: Any, y_valid: Any, steps: dict[str, int]) -> Callable[[Point], float]:
    """Return a function from a point to the validation error of the nearest point of the grid, on a scale of logs."""
    axes = {name: np.geomspace(*ENDS[name], steps[name]) for name in ENDS}
    errors = np.empty(tuple(steps.values()))
    scale = 1.0 / (X.shape[1] * float(np.var(X)))
    for i, gamma in enumerate(axes["gamma"]):
        for j, alpha in enumerate(axes["alpha"]):
            model = ldsvm.LDSVMClassifier(
                n_basis=N_BASIS, gamma=gamma * scale, alpha=alpha, calibration=None, random_state=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as of few distinct rows
                models = ldsvm.fit_path(model, X, y, axes["C"])
            errors[i, j] = [1 - one.score(X_valid, y_valid) for one in models]

    def error(point: Point) -> float:
        places = (np.abs(np.log(axes[name] / point[name])).argmin() for name in axes)
        return float(errors[tuple(places)])

    return error


def _compared(
    space: dict[str, Any], error: Callable[[Point], float], trials: int, seed: int, study_file: StudyFile
) -> dict[str, Any]:
    """Search by random points, and by Optuna's sampler until it is as good; all trials where it never is."""
    best = min(map(error, draw(space, trials, seed)))
    begun = time.perf_counter()
    search = Learned(space, StrategyConfig(sampler="tpe", n_candidates=trials, batch=BATCH), seed, study_file)
    found = []
    while asked := search.ask():
        done = [Trial(search.points[i], i, valid_error=error(search.points[i])) for i, _ in asked]
        found += [trial.valid_error for trial in done]
        search.tell(done)
    seconds = time.perf_counter() - begun
    reached = [i + 1 for i, value in enumerate(found) if value is not None and value <= best]
    return {
        "random %": 100 * best, "learned %": 100 * min(value for value in found if value is not None),
        "trials needed": reached[0] if reached else trials, "reached": bool(reached), "s a trial": seconds / trials,
    }  # fmt: skip


def quoted(result: Result) -> list[tuple[str, str]]:
    """What the page of results says."""
    reached = 100 * fmean(row["reached"] for row in result.rows)
    names = {row["data"] for row in result.rows}
    needed, cost = result.bar("median_share_of_trials_needed"), result.bar("seconds_a_trial_beside_the_fits")
    return [
        (
            f"trials that a learning search (Optuna's TPE, batches of {BATCH}) needs to equal the best of {TRIALS} "
            f"random points, {len(names)} data sets",
            f"median {TRIALS * needed:.0f}; {reached:.0f} % of the searches equal it within {TRIALS} trials; "
            f"choosing takes {1000 * cost:.0f} ms a trial",
        )
    ]
