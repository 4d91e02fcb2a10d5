"""Test error on MNIST, 10,000 / 10,000 / 10,000: C chosen on the validation rows, the test set scored once a model."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from benchmarks.harness import Bar, Mnist, Result, mnist, progress
from ldsvm import LDSVMClassifier, fit_path

C_GRID = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0]  # the paper's
GAMMA = 1 / 32  # sigma = 4
#: name: latent dimensions, principal components of the input (None: raw pixels), bar in %
CASES = {"raw L=10": (10, None, 2.9), "PCA(40) L=10": (10, 40, 2.5), "raw L=5": (5, None, 4.7)}


def run(quick: bool) -> Result:
    data = mnist(0, quick)
    seeds, M, grid = ([0], 30, [0.1, 1.0]) if quick else ([0, 1, 2], 2500, C_GRID)
    result = Result(settings={"split_seed": 0, "seeds": seeds, "n_basis": M, "C": grid, "gamma": GAMMA, "alpha": 1e-3})
    for name, (L, components, bar) in CASES.items():
        X = _inputs(data, components)
        errors = []
        for seed in seeds:
            progress(f"accuracy: {name}, seed {seed}")
            row = _chosen(X, data, LDSVMClassifier(L, n_basis=M, gamma=GAMMA, alpha=1e-3, random_state=seed), grid)
            result.rows.append({"model": name, "seed": seed, **row})
            errors.append(row["test %"])
        label = name.replace(" ", "_").replace("=", "").replace("(", "").replace(")", "")
        result.bars.append(Bar(f"{label}_test_error", fmean(errors), "<=", bar))
    return result


def _inputs(data: Mnist, components: int | None) -> list[Any]:
    parts = [data.train[0], data.valid[0], data.test[0]]
    if components is None:
        return parts
    from sklearn.decomposition import PCA

    reducer = PCA(components, random_state=0).fit(parts[0])
    return [reducer.transform(X) for X in parts]


def _chosen(X: list[Any], data: Mnist, estimator: LDSVMClassifier, grid: list[float]) -> dict[str, Any]:
    models = fit_path(estimator, X[0], data.train[1], grid, eval_set=(X[1], data.valid[1]))
    best = min(models, key=lambda m: m.history_[m.best_iter_]["valid_error"])
    return {
        "C": best.C,
        "iterations": best.n_iter_,
        "validation %": 100 * best.history_[best.best_iter_]["valid_error"],
        "test %": 100 * (1 - best.score(X[2], data.test[1])),
    }


def quoted(result: Result) -> list[tuple[str, str]]:
    names = {"raw L=10": ("raw pixels, 10", 2.99), "PCA(40) L=10": ("40 principal components, 10", 2.60),
             "raw L=5": ("raw pixels, 5", 4.69)}  # fmt: skip
    start = "MNIST, 10,000 training images, 2,500 basis functions, "
    return [
        (
            f"{start}{words} latent dimensions",
            f"{result.mean('test %', model=name):.2f} % test error (paper {paper:.2f})",
        )
        for name, (words, paper) in names.items()
    ]
