"""The page of the study of starts: what was claimed, what holds, and the curves."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from ldsvm.experiment.compare.judge import wilson
from ldsvm.report.html import Picture
from ldsvm.report.plotting.starts import Curve, curves
from ldsvm.report.studies import starts_tables as tables
from ldsvm.report.studies.base import Claim, Found, Page
from ldsvm.report.studies.starts import Params
from ldsvm.report.studies.starts_tables import NAMES, PAPER_SIMPLEX, Run, Runs, middle

ALIKE = 0.1  # relative difference of nested objectives that we call similar; the paper gives no number


def show(params: Params, found: Found) -> Page:
    """Make the page: iterations, objectives and errors of each start, and the curves of every run."""
    groups = {p.name: _grouped(params, found, p.name) for p in params.problems}
    mnist = [problem.name for problem in params.problems if problem.dataset == "mnist"]
    return Page(
        lede=" ".join(_lede(name, runs) for name, runs in groups.items()),
        claims=[claim for name, runs in groups.items() for claim in _claims(name, runs)],
        tables=[
            *(tables.summary(name, runs) for name, runs in groups.items()),
            *(tables.beside_paper(name, groups[name]) for name in mnist[:1]),
            *(tables.each_run(name, runs) for name, runs in groups.items()),
            *(tables.by_C(name, runs, params.C) for name, runs in groups.items()),
        ],
        pictures=[_picture(f"starts-{k}", name, runs) for k, (name, runs) in enumerate(groups.items(), start=1)],
        protocol=_protocol(params),
    )


def _grouped(params: Params, found: Found, problem: str) -> Runs:
    runs = [run for run in found.facts["runs"] if run["problem"] == problem]
    return {start: [run for run in runs if run["start"] == start] for start in params.starts}


def _lede(problem: str, runs: Runs) -> str:
    iterations = ", ".join(f"{NAMES[start]} {middle(found, 'paper_iter'):g}" for start, found in runs.items())
    errors = ", ".join(f"{100 * _test_error(found):.2f}" for found in runs.values())
    return f"{problem}: median iterations by the paper's rule: {iterations}; mean test errors: {errors} %."


def _test_error(runs: Sequence[Run]) -> float:
    return fmean(run["wrong"] / run["n_test"] for run in runs)


def _claims(problem: str, runs: Runs) -> list[Claim]:
    claims = []
    if "simplex" in runs:
        n = middle(runs["simplex"], "paper_iter")
        counts = ", ".join(str(run["paper_iter"]) for run in runs["simplex"])
        text = f"{problem}: from the simplex, about {PAPER_SIMPLEX} iteration is enough (paper: usually 1)."
        claims.append(Claim(text, n <= PAPER_SIMPLEX, f"Iterations by the paper's rule: {counts}, median {n:g}."))
    if {"simplex", "random"} <= runs.keys():
        claims += [
            _no_more_iterations(problem, runs, "paper_iter", "by the paper's rule"),
            _no_more_iterations(problem, runs, "n_iter", "by early stopping or convergence"),
            _similar_objectives(problem, runs),
            _equal_errors(problem, runs),
        ]
    if {"simplex", "rows"} <= runs.keys():
        claims.append(_random_rows_work(problem, runs))
    return claims


def _no_more_iterations(problem: str, runs: Runs, key: str, how: str) -> Claim:
    simplex, random = (middle(runs[start], key) for start in ("simplex", "random"))
    text = f"{problem}: the median run from the simplex stops, {how}, no later than from random centroids (paper)."
    return Claim(text, simplex <= random, f"Median iterations {simplex:g} and {random:g}.")


def _similar_objectives(problem: str, runs: Runs) -> Claim:
    """By ratios within a seed, since another seed may have another C."""
    pairs = zip(runs["simplex"], runs["random"], strict=True)
    ratios = [simplex["nested"][-1] / random["nested"][-1] for simplex, random in pairs]
    times = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    text = f"{problem}: the minimum found is similar (paper): final nested objectives within {ALIKE:.0%} (our limit)."
    measured = f"From the simplex it is {times} times that from random centroids, with the same C."
    return Claim(text, abs(median(ratios) - 1) <= ALIKE, measured)


def _equal_errors(problem: str, runs: Runs) -> Claim:
    pairs = list(zip(runs["simplex"], runs["random"], strict=True))
    bounds = [[wilson(run["wrong"], run["n_test"]) for run in pair] for pair in pairs]
    meet = [max(a[0], b[0]) <= min(a[1], b[1]) for a, b in bounds]
    errors = "; ".join(
        " and ".join(f"{100 * run['wrong'] / run['n_test']:.2f}" for run in pair) for pair in pairs
    )  # fmt: skip
    text = f"{problem}: test errors from simplex and random centroids are equal within their 95 % intervals (paper)."
    measured = f"Intervals overlap for {sum(meet)} of {len(meet)} seeds: {errors} %."
    return Claim(text, all(meet), measured)


def _random_rows_work(problem: str, runs: Runs) -> Claim:
    """By validation errors, each start with the best C of its own: a start may need another C."""
    best = {start: [min(run["by_C"]) for run in runs[start]] for start in ("simplex", "rows")}
    simplex, rows = (fmean(best[start]) for start in ("simplex", "rows"))
    sizes = [run["n_valid"] for run in runs["rows"]]
    bounds = [
        [wilson(round(error * n), n) for error in pair]
        for *pair, n in zip(best["simplex"], best["rows"], sizes, strict=True)
    ]
    meet = [max(a[0], b[0]) <= min(a[1], b[1]) for a, b in bounds]
    text = f'{problem}: random rows as a start do as well with their own C (paper: "even random values work").'
    measured = (
        f"Mean validation errors {100 * simplex:.2f} % from the simplex and {100 * rows:.2f} % from random rows; "
        f"95 % intervals overlap for {sum(meet)} of {len(meet)} seeds."
    )
    return Claim(text, all(meet), measured)


def _picture(name: str, problem: str, runs: Runs) -> Picture:
    lines = [
        Curve(NAMES[start], run["nested"], run["valid_error"], run["best_iter"], run["paper_iter"])
        for start, found in runs.items()
        for run in found
    ]
    ends = {start: [median(run["nested"][i] for run in found) for i in (0, -1)] for start, found in runs.items()}
    text = "; ".join(f"{NAMES[start]} from {first:.3g} to {last:.3g}" for start, (first, last) in ends.items())
    return Picture(
        name,
        curves(lines, problem),
        f"{problem}: nested objective and validation error in each iteration of every run; median objectives: {text}.",
        f"{problem}: one line for each seed. Iteration 0 is F and the SVMs fitted to the start. Dots: the "
        "iteration kept by the validation error; rings: where the paper's rule stops.",
        wide=True,
    )


def _protocol(params: Params) -> str:
    sizes = "; ".join(
        f"{p.name}: {p.train:,} training and {p.validation:,} validation rows, "
        f"{'the official test set' if not p.test else f'{p.test:,} test rows'}, {p.n_components} latent dimensions, "
        f"{'a basis function for each row' if p.n_basis is None else f'{p.n_basis:,} basis functions'}, "
        f"gamma {p.gamma:g}"
        for p in params.problems
    )
    grid = ", ".join(f"{value:g}" for value in params.C)
    return (
        f"{sizes}. All starts of a seed have the same rows and centres. C is one of {grid}: for each seed the value "
        "with the lowest mean validation error from the simplex and from random centroids, the same for all starts; "
        "the test set chooses nothing. "
        f"{params.n_seeds} seeds. A run ends when the validation error has not fallen for {params.patience} "
        "iterations, and the best is kept. The paper's rule, to stop when the error does not change or rises, is "
        "applied to the same runs. Random centroids: one random point for each class. Random rows: a random point for "
        f"each row, normal with standard deviation {params.rows_std:g}."
    )
