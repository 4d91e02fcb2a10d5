"""Name -> how to make a method, what to try, and how to measure its size. Ours is one entry among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np

from ldsvm import memory as machine
from ldsvm.datasets.transformers import is_path
from ldsvm.methods import by_path, memory, neighbours, others, ours, reductions, rivals, sizes, svm
from ldsvm.methods import explicit_features as features

# Widths 1 / (D Var(X)) of inputs in [0, 1]: about 0.1 for tens of them, 0.01 for many hundreds.
GAMMA = (0.003, 0.01, 0.03, 0.1, 0.3)
FINE = tuple(float(f"{10 ** (k / 5):.2g}") for k in range(-15, 6))  # 1e-3 to 10, five a decade: the paper's fine grid
DIMENSIONS = (2, 5, 10, 20, 40)
SHRINKAGE = (1e-3, 1e-2, 0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Method:
    """One classifier that experiments may name.

    make: returns an unfitted estimator, or a pipeline of the steps `reduce` and `classify`. count: fitted -> number of
    distinct basis functions, None where there are none; total: the same summed over machines that share them. arrays:
    fitted -> the arrays a prediction memory. space: the values that `search: default` tries, by parameter. needs:
    (params, n, m, d) -> bytes it takes at its peak for n training rows, m rows to predict and d inputs, see
    `ldsvm.methods.memory`. iterative: True when `fit` takes `eval_set`, the training keeps a `history_`, and points
    that differ only in C share their work through `ldsvm.fit_path`. version: tells a class by import path from what it
    was before a change; results depend on it.
    """

    make: Callable[[], Any]
    space: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    needs: memory.Needs = memory.nothing
    count: Callable[[Any], int | None] = sizes.count
    total: Callable[[Any], int | None] = sizes.total
    arrays: Callable[[Any], list[np.ndarray]] = sizes.arrays
    iterative: bool = False
    version: Callable[[], str] = str


OURS = {"n_basis": (100, "scale"), "C": (0.3, 1.0, 3.0, 10.0)}  # it chooses gamma and alpha itself
SVM = {"gamma": GAMMA, "C": (1.0, 10.0, 100.0)}
REST = {"estimator__gamma": (0.01, 0.05, 0.3), "estimator__C": (1.0, 10.0)}  # after a reduction
MAP = {"reduce__n_components": (100, 300), "reduce__gamma": (0.01, 0.03, 0.1)}
MAP_SVM = {**MAP, "classify__C": (1.0, 10.0, 100.0)}


def _prefixed(prefix: str, space: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    return {f"{prefix}__{key}": values for key, values in space.items()}


METHODS: dict[str, Method] = {
    "ldsvm": Method(ours.ours, OURS, memory.ours, iterative=True),
    "pca_ldsvm": Method(
        ours.pca_ours,
        {"reduce__n_components": (20, 40), "classify__gamma": (0.01, 0.03, 0.1), "classify__C": (0.1, 1.0, 10.0)},
        memory.of_step("classify", memory.ours),
        iterative=True,
    ),
    "nearest_neighbour": Method(neighbours.nearest, {"n_neighbors": (1, 3, 5, 9)}),
    "linear_svm": Method(svm.linear, {"C": (0.01, 0.1, 1.0, 10.0, 100.0)}),
    "gaussian_svm": Method(svm.gaussian, SVM, memory.kernel_svm),
    "gaussian_svm_ovr": Method(svm.gaussian_one_vs_rest, _prefixed("estimator", SVM), memory.kernel_svm),
    "pca_nn": Method(reductions.pca_nn, {"reduce__n_components": DIMENSIONS}),
    "kpca_nn": Method(
        reductions.kpca_nn, {"reduce__n_components": DIMENSIONS, "reduce__gamma": GAMMA[:4]}, memory.kernel_pca
    ),
    "lda_nn": Method(reductions.lda_nn, {"reduce__shrinkage": SHRINKAGE}, memory.copies(3)),
    "klda_nn": Method(
        reductions.klda_nn, {"reduce__gamma": FINE, "reduce__alpha": (1e-4, 1e-2)}, memory.kernel_discriminant
    ),
    "lmnn_nn": Method(reductions.lmnn_nn, {"reduce__n_components": DIMENSIONS}, memory.copies(4)),
    "nca_nn": Method(reductions.nca_nn, {"reduce__n_components": DIMENSIONS}, memory.all_pairs),
    "pca_gaussian_svm": Method(
        reductions.pca_gaussian_svm,
        {"reduce__n_components": (10, 20, 40), **_prefixed("classify", REST)},
        memory.kernel_svm,
    ),
    "lda_gaussian_svm": Method(
        reductions.lda_gaussian_svm,
        {"reduce__shrinkage": (1e-3, 0.1, 0.9), **_prefixed("classify", REST)},
        memory.kernel_svm,
    ),
    "nystroem_svm": Method(features.nystroem_svm, MAP_SVM, memory.features),
    "nystroem_kmeans_svm": Method(features.nystroem_kmeans_svm, MAP_SVM, memory.features),
    "fourier_svm": Method(features.fourier_svm, MAP_SVM, memory.features),
    "rbf_network": Method(features.rbf_network, {**MAP, "classify__alpha": (1e-4, 1e-2, 1.0)}, memory.features),
    "mlp": Method(
        others.mlp, {"hidden_layer_sizes": (100, 300), "alpha": (1e-4, 1e-2), "learning_rate_init": (1e-3, 1e-2)}
    ),
    "hist_gradient_boosting": Method(
        others.hist_gradient_boosting, {"learning_rate": (0.1, 0.3), "max_leaf_nodes": (7, 31)}, memory.copies(2)
    ),
    "lightgbm": Method(rivals.lightgbm, {"learning_rate": (0.1, 0.3), "num_leaves": (7, 31)}, memory.copies(2)),
    "xgboost": Method(rivals.xgboost, {"learning_rate": (0.1, 0.3), "max_depth": (3, 6)}, memory.copies(2)),
    "xrfm": Method(rivals.xrfm, {"bandwidth": (3.0, 10.0, 30.0), "reg": (1e-3, 1e-1)}, memory.recursive_features),
}


def shared(estimator: Any, *, seed: int, n_jobs: int) -> Any:
    """Return the estimator with what all methods share, `random_state` and `n_jobs`, set in it and in its steps.

    One-against-the-rest stays in this process: its jobs would be processes, each with a kernel cache of its own.

    Examples
    --------
    >>> model = shared(lookup("nca_nn").make(), seed=3, n_jobs=2)
    >>> model.get_params()["reduce__random_state"], model.get_params()["classify__n_jobs"]
    (3, 2)
    """
    values = {"random_state": seed, "n_jobs": n_jobs}
    known = estimator.get_params()
    found = {key: values[end] for key in known if (end := key.split("__")[-1]) in values}
    # the jobs of a meta-estimator, which has a parameter `estimator` beside `n_jobs`
    apart = [key for key in found if key.endswith("n_jobs") and f"{key.removesuffix('n_jobs')}estimator" in known]
    return estimator.set_params(**{key: value for key, value in found.items() if key not in apart})


def lookup(name: str) -> Method:
    """Return the method called `name`; raise KeyError with one sentence when there is none.

    A name with a dot is the import path of a classifier, which nothing imports before it is made.
    """
    if name in METHODS:
        return METHODS[name]
    if is_path(name):
        return Method(partial(by_path.make, name), version=partial(by_path.version, name))
    near = get_close_matches(name, METHODS, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    raise KeyError(f'unknown estimator "{name}"{hint} Allowed: {", ".join(METHODS)}, or an import path')


def check_memory(name: str, params: Mapping[str, Any], n: int, m: int, d: int, available: int | None = None) -> None:
    """Refuse a method of the registry that needs more memory than there is.

    Parameters
    ----------
    params : those that differ from the defaults, by name.
    n, m, d : training rows, rows predicted at once, inputs.
    available : bytes, by default what the machine has; where that is unknown nothing is refused.

    Raises
    ------
    NotRun : in one sentence, with what it needs and what there is.

    Examples
    --------
    >>> try:
    ...     check_memory("klda_nn", {}, n=60_000, m=10_000, d=784, available=24 * 2**30)
    ... except memory.NotRun as error:
    ...     print(str(error).partition(";")[0])
    not run: needs 27.9 GiB for the kernel matrix of 60,000 rows, but 24.0 GiB are available
    """
    left = machine.available() if available is None else available
    if left is not None:
        memory.refuse(name, lookup(name).needs(params, n, m, d), left, n)
