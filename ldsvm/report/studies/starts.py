"""Random against simplex start, after the paper's section on the role of dimensionality reduction."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ldsvm.datasets import Dataset, Split, load, shuffled, stratified
from ldsvm.experiment.config.spaces import Scalar
from ldsvm.experiment.search.trial import Data, notes
from ldsvm.report.studies import base

# Rows at random need another C where they work at all, which must not decide for the others.
COMPARED = ("simplex", "random")


class Problem(base.Params):
    """One classification problem and the sizes of the model.

    test: rows, 0 for the official test set. n_basis: None takes every training row as a centre.
    """

    name: str
    dataset: Literal["mnist", "digits", "spirals"]
    options: dict[str, Scalar] = Field(default={})
    train: int = Field(gt=0)
    validation: int = Field(gt=0)
    test: int = Field(default=0, ge=0)
    n_components: int = Field(gt=0)
    n_basis: int | None = Field(gt=0)
    gamma: float = Field(gt=0)


MNIST = Problem(
    name="MNIST, ten classes", dataset="mnist", train=10_000, validation=10_000, n_components=10, n_basis=2_500,
    gamma=1 / 32,
)  # fmt: skip
SPIRALS = Problem(
    name="five spirals", dataset="spirals", options={"n_classes": 5, "n_samples": 1_500, "noise": 0.01}, train=2_500,
    validation=2_500, test=2_500, n_components=4, n_basis=None, gamma=200,
)  # fmt: skip


class Params(base.Params):
    """Which problems, and how MAC is started on each.

    starts: simplex (class centroids on its corners), random (one random centroid for each class), rows (every row
    random, normal with deviation rows_std, as the paper started). C: values to choose from by the validation set.
    n_seeds: each draws rows, centres and random start. patience: iterations without a lower validation error after
    which a run stops; where the paper's rule would have stopped it is read from the same run.
    """

    problems: tuple[Problem, ...] = Field(default=(MNIST, SPIRALS), min_length=1)
    starts: tuple[Literal["simplex", "random", "rows"], ...] = ("simplex", "random", "rows")
    C: tuple[float, ...] = Field(default=(1e-3, 1e-2, 1e-1, 1, 10, 100, 1000), min_length=1)
    n_seeds: int = Field(default=3, gt=0)
    patience: int = Field(default=10, gt=0)
    max_iter: int = Field(default=100, gt=0)
    rows_std: float = Field(default=0.01, gt=0)


def compute(params: Params, context: base.Context) -> base.Found:
    """Fit every start on the same rows with the same centres for every C; choose C by validation; then test."""
    work = [(problem, context.seed + i) for problem in params.problems for i in range(params.n_seeds)]
    runs: list[dict[str, Any]] = []
    for done, (problem, seed) in enumerate(work):
        data = load(problem.dataset, cache_dir=context.cache, options=problem.options or None)
        split = draw(problem, data, seed)
        known = Data(*_rows(data, split.train), *_rows(data, split.validation))
        paths: dict[str, dict[str, Any]] = {}
        for k, start in enumerate(params.starts):
            share = (done + k / len(params.starts)) / len(work)
            context.tell(f"{problem.name}: {start} start, seed {seed}", share)
            paths[start] = _path(params, problem, start, known, seed, context.n_jobs)
        test = (data.X_test, data.y_test) if split.official_test else _rows(data, split.test)
        about = {"problem": problem.name, "seed": seed, "n_valid": len(known.y_valid)}
        runs += [{**about, **run} for run in _judged(params.C, paths, test)]
    return base.Found({"runs": runs})


def draw(problem: Problem, data: Dataset, seed: int) -> Split:
    """Return the rows of one seed: at random, in proportion to the classes without an official test set."""
    sizes = {"train": problem.train, "validation": problem.validation, "seed": seed}
    if problem.test:
        return stratified(data.y, test=problem.test, **sizes)
    return shuffled(len(data.y), official=0 if data.y_test is None else len(data.y_test), **sizes)


def _rows(data: Dataset, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return data.X[rows], data.y[rows]


def _path(params: Params, problem: Problem, start: str, data: Data, seed: int, n_jobs: int) -> dict[str, Any]:
    """Return a fitted model for each C, the seconds of all, and their warnings."""
    from ldsvm import LDSVMClassifier, fit_path

    init: Any = start
    if start == "rows":
        init = np.random.default_rng(seed).normal(scale=params.rows_std, size=(len(data.y), problem.n_components))
    model = LDSVMClassifier(
        problem.n_components, n_basis=problem.n_basis, gamma=problem.gamma, alpha=1e-3, init=init,
        max_iter=params.max_iter, n_iter_no_change=params.patience, n_jobs=n_jobs, random_state=seed,
    )  # fmt: skip
    clock = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = fit_path(model, data.X, data.y, params.C, eval_set=data.eval_set)
    return {"models": models, "seconds": time.perf_counter() - clock, "notes": notes(caught)}


def _judged(C: Sequence[float], paths: dict[str, dict[str, Any]], test: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Return what each start found with one C: the lowest mean validation error of the starts that are compared."""
    errors = {start: [kept(m)["valid_error"] for m in path["models"]] for start, path in paths.items()}
    compared = [errors[start] for start in COMPARED if start in errors] or list(errors.values())
    chosen = int(np.argmin(np.mean(compared, axis=0)))
    found = []
    for start, path in paths.items():
        model = path["models"][chosen]
        wrong = int(np.sum(model.predict(test[0]) != test[1]))
        curves = {key: [row[key] for row in model.history_] for key in ("nested", "train_error", "valid_error")}
        counts = {"n_iter": model.n_iter_, "best_iter": model.best_iter_, "stop": model.stop_reason_}
        counts |= {"paper_iter": paper_stop(curves["valid_error"]), "wrong": wrong, "n_test": len(test[1])}
        about = {
            "start": start,
            "C": C[chosen],
            "by_C": errors[start],
            "seconds": path["seconds"],
            "notes": path["notes"],
        }
        found.append({**about, **counts, **curves})
    return found


def kept(model: Any) -> dict[str, Any]:
    """Return the history's row of the iteration whose model was kept."""
    row: dict[str, Any] = model.history_[model.best_iter_]
    return row


def paper_stop(valid_error: Sequence[float]) -> int:
    """Return the iteration at which the paper's rule ends a run: the validation error does not change or goes up.

    Where it falls to the end, the last one.

    Examples
    --------
    >>> paper_stop([0.3, 0.2, 0.2, 0.1])
    2
    """
    pairs = pairwise(valid_error)
    return next((i for i, (before, now) in enumerate(pairs, start=1) if now >= before), len(valid_error) - 1)
