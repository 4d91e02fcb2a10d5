"""The dial between error and cost: learned centres against fixed ones and Nystroem features, over their number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
from pydantic import Field

from ldsvm import LDSVMClassifier
from ldsvm.datasets import load, shuffled, stratified
from ldsvm.experiment.compare.judge import judge
from ldsvm.experiment.search.trial import Data
from ldsvm.methods import lookup
from ldsvm.report.studies import base

NAMES = {
    "learned": "ours, learned centres",
    "fixed": "ours, k-means centres",
    "nystroem": "Nystroem, k-means landmarks",
}
SVM = "Gaussian SVM"
RIDGE = 1e-3  # of fixed centres, which hardly depend on it


class Params(base.Params):
    """What is compared, and on what.

    train, validation: rows at random. test: rows, 0 for the official test set. components: principal components, fitted
    to the training rows, that all methods see. sizes: numbers of basis functions. gamma: the width of fixed centres and
    of the Gaussian SVM, learned_gamma: where learned widths start. C_ours, C_nystroem, C_svm, alphas: values to choose
    from by the validation set. center_steps: see `LDSVMClassifier`. repeats: predictions that are timed.
    """

    dataset: Literal["mnist", "digits"] = "mnist"
    train: int = Field(default=10_000, gt=0)
    validation: int = Field(default=10_000, gt=0)
    test: int = Field(default=0, ge=0)
    components: int = Field(default=50, gt=0)
    sizes: tuple[int, ...] = Field(default=(31, 62, 125, 250, 500, 1000), min_length=1)
    gamma: float = Field(default=1 / 32, gt=0)
    learned_gamma: float = Field(default=0.06, gt=0)
    alphas: tuple[float, ...] = Field(default=(1e-2,), min_length=1)
    C_ours: tuple[float, ...] = Field(default=(0.1, 1.0), min_length=1)
    C_nystroem: tuple[float, ...] = Field(default=(1.0, 10.0, 100.0), min_length=1)
    C_svm: tuple[float, ...] = Field(default=(3.0, 10.0), min_length=1)
    center_steps: int = Field(default=10_000, gt=0)
    repeats: int = Field(default=3, gt=0)


def compute(params: Params, context: base.Context) -> base.Found:
    """Fit every method at every size, choose by the validation set, and let the judge score the chosen model."""
    data, (X_test, y_test) = _parts(params, context)
    work = [(name, size) for size in params.sizes for name in ("learned", "fixed", "nystroem")] + [("svm", None)]
    runs = []
    for done, (name, size) in enumerate(work):
        context.tell(SVM if size is None else f"{NAMES[name]}, {size:,} basis functions", done / len(work))
        model, facts = _chosen(_models(params, name, size, context), data)
        score = judge(model, lookup(ESTIMATORS[name]), X_test, y_test, repeats=params.repeats, n_jobs=1)
        kept = {key: getattr(score, key) for key in ("n_wrong", "n_test", "n_basis", "parameter_bytes", "predict_us")}
        runs.append({"method": name, "size": size, **facts, **kept})
    return base.Found({"runs": runs})


ESTIMATORS = {"learned": "ldsvm", "fixed": "ldsvm", "nystroem": "nystroem_kmeans_svm", "svm": "gaussian_svm"}
Fit = Callable[[Data], Any]


def _parts(params: Params, context: base.Context) -> tuple[Data, tuple[Any, Any]]:
    """Return training and validation rows, and test rows, in principal components."""
    from sklearn.decomposition import PCA

    data = load(params.dataset, cache_dir=context.cache)
    sizes = {"train": params.train, "validation": params.validation, "seed": context.seed}
    if params.test:
        split = stratified(data.y, test=params.test, **sizes)
    else:
        split = shuffled(len(data.y), official=0 if data.y_test is None else len(data.y_test), **sizes)
    test = (data.X_test, data.y_test) if split.official_test else (data.X[split.test], data.y[split.test])
    reduce = PCA(params.components, svd_solver="covariance_eigh").fit(data.X[split.train])
    small = [reduce.transform(X).astype(np.float32) for X in (data.X[split.train], data.X[split.validation], test[0])]
    known = Data(small[0], data.y[split.train], small[1], data.y[split.validation])
    return known, (small[2], test[1])


def _models(params: Params, name: str, size: int | None, context: base.Context) -> Iterator[tuple[dict[str, Any], Fit]]:
    """Yield the points to try of a method, and what fits one."""
    method = lookup(ESTIMATORS[name])
    if name in ("learned", "fixed"):
        given: dict[str, Any] = {"n_basis": size, "gamma": params.gamma}
        if name == "learned":
            given |= {"map": "adaptive_rbf", "gamma": params.learned_gamma, "center_steps": params.center_steps}
        given |= {"random_state": context.seed, "n_jobs": context.n_jobs}
        for alpha, C in product(params.alphas if name == "learned" else (RIDGE,), params.C_ours):
            ours = method.make().set_params(**given, alpha=alpha, C=C)
            yield {"alpha": alpha, "C": C}, partial(_fit, ours)
        return
    for C in params.C_nystroem if name == "nystroem" else params.C_svm:
        other = method.make()
        if name == "nystroem":
            fixed = {"reduce__n_components": size, "reduce__gamma": params.gamma, "classify__C": C}
            other.set_params(**fixed, reduce__random_state=context.seed)
        else:
            other.set_params(gamma=params.gamma, C=C)
        yield {"C": C}, partial(_fit, other)


def _fit(model: Any, data: Data) -> Any:
    if isinstance(model, LDSVMClassifier):  # which stops by the validation rows, too
        return model.fit(data.X, data.y, eval_set=data.eval_set)
    return model.fit(data.X, data.y)


def _chosen(models: Iterator[tuple[dict[str, Any], Fit]], data: Data) -> tuple[Any, dict[str, Any]]:
    """Return the fitted model with the smallest validation error, its point, that error and its seconds."""
    found = []
    for point, fit in models:
        start = time.perf_counter()
        model = fit(data)
        found.append((data.valid_error(model), model, point, time.perf_counter() - start))
    error, model, point, seconds = min(found, key=lambda one: one[0])
    return model, {**point, "valid_error": error, "train_s": seconds}
