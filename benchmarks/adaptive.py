"""Learned centres on principal components of images: test error with few basis functions, and training time.

The components, the ridge, C and the iteration that is kept are chosen on validation rows; on all 60,000 images these
are 5,000 of them, and the chosen model is fitted once more to all. The test set is scored once a model. Peers on MNIST,
in the same run: scikit-learn's Gaussian SVC on the same 10,000 images, and Nystroem features with a linear SVM on all.
Fashion-MNIST is left out where its files are not there.
"""

from __future__ import annotations

import warnings
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.harness import Bar, Result, clock, everything, mnist, progress
from ldsvm import LDSVMClassifier, fit_path
from ldsvm.datasets import DataError

GAMMAS = {"mnist": 0.06, "fashion-mnist": 0.03}
CHOICES = [50, 70], [3e-2, 1e-1, 3e-1], [0.1, 1.0]  # components, ridges and C with 10,000 images
RIDGES, PENALTIES = [3e-2, 1e-1], [1.0]  # with all, where a fit takes minutes
COMPONENTS = {"mnist": [70], "fashion-mnist": [120]}
FEW = 2  # iterations after the start, of which the best is kept: SVC trains in the time of a few
#: data, rows, validation rows out of them (0: other rows), basis functions and the bar on the test error in %
CASES = [
    ("mnist", 10_000, 0, 250, 2.5),
    ("mnist", 10_000, 0, 500, 2.3),
    ("mnist", 60_000, 5_000, 500, 1.25),
    ("mnist", 60_000, 5_000, 1_000, 1.1),
    ("fashion-mnist", 60_000, 5_000, 1_000, 10.0),
]


def run(quick: bool) -> Result:
    seeds, cases = ([0], CASES[:1]) if quick else ([0, 1, 2], CASES)
    cases = [case for case in cases if case[0] == "mnist" or _is_there(case[0])]  # the peers need MNIST
    large = {"components": COMPONENTS, "ridges": RIDGES, "C": PENALTIES}
    fixed = {"gamma": GAMMAS, "choices": CHOICES, "choices with all": large, "seeds": seeds}
    result, seconds = Result(settings=fixed), {}
    for name, N, n_valid, M, bar in cases:
        errors, times = [], []
        for seed in seeds:
            progress(f"adaptive: {name}, {N:,} images, {M} basis functions, seed {seed}")
            row = _chosen(name, N, n_valid, M, seed, quick)
            result.rows.append({"data": name, "basis functions": M, "seed": seed, **row})
            errors.append(row["test %"])
            times.append(row["train s"])
        seconds[name, N, M] = fmean(times)
        result.bars.append(Bar(f"error_{name}_{N}_images_{M}_functions", fmean(errors), "<=", bar))
    progress("adaptive: the peers")
    result.bars.append(
        Bar("train_10000_images_250_functions_over_SVC", seconds["mnist", 10_000, 250] / _svc(quick), "<=", 1.0)
    )
    if not quick:
        ratio = seconds["mnist", 60_000, 1_000] / _nystroem()
        result.bars.append(Bar("train_60000_images_1000_functions_over_Nystroem", ratio, "<=", 2))
    return result


def _is_there(name: str) -> bool:
    try:
        everything(quick=False, name=name)
    except DataError as error:
        progress(f"adaptive: left out: {error}")
        return False
    return True


def _parts(name: str, N: int, n_valid: int, seed: int, quick: bool) -> tuple[Any, ...]:
    """Training and validation rows, the rows of the final fit, and the test rows, each X and y."""
    if not n_valid:
        data = mnist(0, quick)
        return (*data.train, *data.valid, *data.train, *data.test)
    X, y, X_test, y_test = everything(quick=False, name=name)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order[n_valid:]], y[order[n_valid:]], X[order[:n_valid]], y[order[:n_valid]], X, y, X_test, y_test


def _chosen(name: str, N: int, n_valid: int, M: int, seed: int, quick: bool) -> dict[str, Any]:
    from sklearn.decomposition import PCA

    X, y, X_valid, y_valid, X_all, y_all, X_test, y_test = _parts(name, N, n_valid, seed, quick)
    components, ridges, penalties = (COMPONENTS[name], RIDGES, PENALTIES) if n_valid or quick else CHOICES
    found = []
    for L in components:
        reduce = PCA(L, svd_solver="covariance_eigh").fit(X)
        small, valid = (reduce.transform(part).astype(np.float32) for part in (X, X_valid))
        for alpha in ridges:
            model = LDSVMClassifier(
                map="adaptive_rbf", n_basis=M, gamma=GAMMAS[name], alpha=alpha, random_state=seed,
                center_steps=50 if quick else "auto",
            )  # fmt: skip
            for fitted in fit_path(
                model, small, y, penalties, eval_set=(valid, y_valid),
                callback=lambda _, info: info["iteration"] >= FEW,
            ):  # fmt: skip
                found.append((fitted.history_[fitted.best_iter_]["valid_error"], L, fitted))
    error, L, best = min(found, key=lambda one: one[0])
    reduce, final = PCA(L, svd_solver="covariance_eigh"), clone(best)

    def train() -> None:
        rows = reduce.fit(X_all).transform(X_all).astype(np.float32)
        final.fit(rows, y_all, callback=lambda info: info["iteration"] >= best.best_iter_)

    seconds = clock(train, 1, warm=False)
    wrong = np.count_nonzero(final.predict(reduce.transform(X_test).astype(np.float32)) != y_test)
    chosen = {"images": len(y_all), "components": L, "alpha": best.alpha, "C": best.C, "iterations": best.best_iter_}
    return {**chosen, "validation %": 100 * error, "test %": 100 * float(wrong) / len(y_test), "train s": seconds}


def _svc(quick: bool) -> float:
    from sklearn.svm import SVC

    data = mnist(0, quick)
    return clock(lambda: SVC(C=10, gamma=1 / 32).fit(*data.train), 1, warm=False)


def _nystroem() -> float:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    X, y, _, _ = everything(quick=False)
    model = make_pipeline(Nystroem(gamma=1 / 32, n_components=1000, random_state=0), LinearSVC(C=100, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge in its 1,000 iterations
        return clock(lambda: model.fit(X, y), 1, warm=False)


def quoted(result: Result) -> list[tuple[str, str]]:
    def error(M: int, images: int, data: str = "mnist") -> str:
        return f"{result.mean('test %', **{'data': data, 'basis functions': M, 'images': images}):.2f}"

    svc = result.bar("train_10000_images_250_functions_over_SVC")
    nystroem = result.bar("train_60000_images_1000_functions_over_Nystroem")
    start = "learned centres on 50 or 70 principal components, mean of three seeds"
    lines = [
        (
            f"MNIST, {start}: 10,000 training images, 250 and 500 basis functions",
            f"{error(250, 10_000)} and {error(500, 10_000)} % test error, the former trained in {svc:.2f} of the "
            "time of the Gaussian SVM",
        ),
        (
            "the same on all 60,000 images, 500 and 1,000 basis functions",
            f"{error(500, 60_000)} and {error(1_000, 60_000)} % test error, the latter in {nystroem:.2f} of the "
            "time of 1,000 Nyström features and a linear SVM",
        ),
    ]
    if any(row["data"] == "fashion-mnist" for row in result.rows):
        what = "the same on all 60,000 images of Fashion-MNIST, 1,000 basis functions"
        lines.append((what, f"{error(1_000, 60_000, 'fashion-mnist')} % test error"))
    return lines
