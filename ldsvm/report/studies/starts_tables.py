"""The tables of the study of starts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from ldsvm.experiment.compare.judge import wilson
from ldsvm.report.studies.base import Table

NAMES = {"simplex": "simplex", "random": "random centroids", "rows": "random rows"}
PAPER_SIMPLEX, PAPER_RANDOM, PAPER_ERROR = 1, 18, 2.99  # iterations, and test error in % of MNIST with L = 10
Run = dict[str, Any]
Runs = dict[str, list[Run]]  # by start, those of each by seed


def middle(runs: Sequence[Run], key: str) -> float:
    """Return the median of a fact over runs."""
    return median(run[key] for run in runs)


def _percent(values: Sequence[float]) -> str:
    return f"{100 * fmean(values):.2f}"


def _at_kept(runs: Sequence[Run], key: str) -> list[float]:
    return [run[key][run["best_iter"]] for run in runs]


def summary(problem: str, runs: Runs) -> Table:
    """Return a row for each start: medians of iterations and objectives, means of errors, over the seeds."""
    rows = []
    for start, found in runs.items():
        iterations = [f"{middle(found, key):g}" for key in ("paper_iter", "best_iter", "n_iter")]
        nested = [f"{median(_at_kept(found, 'nested')):.4g}", f"{median(run['nested'][-1] for run in found):.4g}"]
        errors = [_percent(_at_kept(found, key)) for key in ("train_error", "valid_error")]
        early = _percent([min(run["valid_error"][: run["paper_iter"] + 1]) for run in found])
        test = _percent([run["wrong"] / run["n_test"] for run in found])
        rows.append([NAMES[start], *iterations, *nested, early, *errors, test])
    header = [
        "start", "iterations, paper's rule", "iteration kept", "iterations in all", "nested objective, kept",
        "final nested objective", "validation error %, paper's rule", "training error %", "validation error %",
        "test error %",
    ]  # fmt: skip
    return Table(
        f"{problem}: starts",
        header,
        rows,
        ("start",),
        "Medians of iterations and objectives, means of errors, over seeds.",
    )


def beside_paper(problem: str, runs: Runs) -> Table:
    """Return what the paper reports on starts, and on ten latent dimensions on MNIST from a random start."""
    rows = []
    for start, paper in (("simplex", PAPER_SIMPLEX), ("random", PAPER_RANDOM)):
        if start in runs:
            n = middle(runs[start], "paper_iter")
            rows.append([f"iterations, {NAMES[start]}", f"{paper}", f"{n:g}", f"{n - paper:+g}"])
    for start, found in runs.items():
        error = 100 * fmean(run["wrong"] / run["n_test"] for run in found)
        rows.append([f"test error %, {NAMES[start]}", f"{PAPER_ERROR}", f"{error:.2f}", f"{error - PAPER_ERROR:+.2f}"])
    return Table(
        f"{problem}: beside the paper",
        ["what", "paper", "here", "difference"],
        rows,
        ("what",),
        "In the paper, the simplex usually needs 1 iteration (spirals); 18 iterations and 2.99 % are from random rows.",
    )


def each_run(problem: str, runs: Runs) -> Table:
    """Return a row for each run, with the 95 % interval of its test error."""
    rows = []
    for run in sorted((run for found in runs.values() for run in found), key=lambda run: run["seed"]):
        low, high = wilson(run["wrong"], run["n_test"])
        iterations = [str(run[key]) for key in ("paper_iter", "best_iter", "n_iter")]
        test = [f"{100 * run['wrong'] / run['n_test']:.2f}", f"{100 * low:.2f} – {100 * high:.2f}"]
        kept = f"{run['nested'][run['best_iter']]:.4g}"
        rows.append([NAMES[run["start"]], f"{run['seed']}", f"{run['C']:g}", *iterations, kept, *test, run["stop"]])
    header = [
        "start", "seed", "C", "iterations, paper's rule", "kept", "to the end", "nested objective, kept",
        "test error %", "95 % interval", "stopped by",
    ]  # fmt: skip
    return Table(f"{problem}: every run", header, rows, ("start", "stopped by"))


def by_C(problem: str, runs: Runs, C: Sequence[float]) -> Table:
    """Return the validation errors that C was chosen by, means over the seeds."""
    rows = [
        [NAMES[start], *(_percent([run["by_C"][i] for run in found]) for i in range(len(C)))]
        for start, found in runs.items()
    ]
    title = f"{problem}: validation error % by C"
    return Table(
        title, ["start", *(f"{c:g}" for c in C)], rows, ("start",), "Means over seeds, of the iterations kept."
    )
