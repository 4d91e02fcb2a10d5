"""How large a fitted classifier is: its basis functions, and the arrays that a prediction needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldsvm.typing import Array


@dataclass(frozen=True)
class Size:
    """Of one estimator. count: distinct basis functions, None where there are none; total: see `total`; arrays."""

    count: int | None
    total: int | None
    arrays: list[Array]


def count(fitted: Any) -> int | None:
    """Count the distinct basis functions that a prediction evaluates; None where there are none.

    Training points of a nearest-neighbour rule or of a kernel map, support vectors (a vector that several SVMs
    share once), landmarks, random features, hidden units, leaves of trees. In a pipeline of two the larger number: a
    kernel map and a nearest-neighbour rule on it hold the same training points.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> count(KNeighborsClassifier().fit(*load_iris(return_X_y=True)))
    150
    """
    return max((s.count for s in _parts(fitted) if s.count is not None), default=None)


def total(fitted: Any) -> int | None:
    """Sum the basis functions over the SVMs that share them, the paper's number for SVMs; else as `count`."""
    return max((s.total for s in _parts(fitted) if s.total is not None), default=None)


def arrays(fitted: Any) -> list[Array]:
    """Return the arrays that a prediction of this fitted estimator, or of the steps of a pipeline, reads."""
    return [array for part in _parts(fitted) for array in part.arrays]


def _parts(fitted: Any) -> list[Size]:
    if type(fitted).__name__ == "Coarser":
        return _parts(fitted.model)
    if type(fitted).__name__ in ("AtThreshold", "CodedLabels"):
        return _parts(fitted.estimator)
    steps = [step for _, step in fitted.steps] if hasattr(fitted, "steps") else [fitted]
    return [_rule(step)(step) for step in steps]


def _rule(step: Any) -> Callable[[Any], Size]:
    # by name: looking a type up must not import what nobody has fitted; of other classes nothing is known
    return next((RULES[kind.__name__] for kind in type(step).__mro__ if kind.__name__ in RULES), _plain())


def _flat(*found: Any) -> list[Array]:
    """Return arrays as they are, and a sparse matrix as its three arrays."""
    split = ([a.data, a.indices, a.indptr] if hasattr(a, "indptr") else [np.asarray(a)] for a in found)
    return [array for group in split for array in group]


def _plain(*names: str) -> Callable[[Any], Size]:
    """Rule for estimators without basis functions: their arrays by attribute, those that are there."""
    return lambda step: Size(None, None, _flat(*(v for n in names if (v := getattr(step, n, None)) is not None)))


def _featured(size: Callable[[Any], int], *names: str) -> Callable[[Any], Size]:
    """Rule for estimators with one list of basis functions, whose number `size` tells."""

    def rule(step: Any) -> Size:
        return Size(size(step), size(step), _flat(*(getattr(step, name) for name in names)))

    return rule


def _ours(step: Any) -> Size:
    """Centres (M, D) and widths where the map has them, its weights (M, L), and the SVMs' (K, L) and (K,)."""
    centers = [step.centers_] if hasattr(step, "centers_") else []
    number = int(step.n_basis_) if centers else None  # a linear map has none
    if centers and np.ndim(step.gamma_):
        centers.append(step.gamma_)
    return Size(number, number, [*centers, step.map_.W, step.latent_coef_, step.intercept_])


def _svm(step: Any) -> Size:
    """One list of support vectors; an SVM for two classes uses those whose coefficient in it is not zero."""
    used = np.count_nonzero(_flat(step.dual_coef_)[0])
    return Size(len(step.support_), int(used), _flat(step.support_vectors_, step.dual_coef_, step.intercept_))


def _one_vs_rest(step: Any) -> Size:
    """SVMs trained on the same rows, each with its own copy of its support vectors."""
    rows = np.concatenate([svm.support_ for svm in step.estimators_])
    return Size(len(np.unique(rows)), len(rows), [a for svm in step.estimators_ for a in _svm(svm).arrays])


def _network(step: Any) -> Size:
    hidden = sum(len(bias) for bias in step.intercepts_[:-1])
    return Size(hidden, hidden, [*step.coefs_, *step.intercepts_])


def _trees(step: Any) -> Size:
    trees = [tree for group in step._predictors for tree in group]
    leaves = sum(tree.get_n_leaf_nodes() for tree in trees)
    return Size(leaves, leaves, [np.asarray(step._baseline_prediction), *(tree.nodes for tree in trees)])


def _lightgbm(step: Any) -> Size:
    """Leaves, and the model as the package writes it: its trees are not to be had as arrays."""
    text = step.booster_.model_to_string()
    leaves = sum(int(line.partition("=")[2]) for line in text.splitlines() if line.startswith("num_leaves="))
    return Size(leaves, leaves, [np.frombuffer(text.encode(), np.uint8)])


def _xgboost(step: Any) -> Size:
    booster = step.get_booster()
    leaves = sum(tree.count("leaf=") for tree in booster.get_dump())
    return Size(leaves, leaves, [np.frombuffer(booster.save_raw(), np.uint8)])


RULES: dict[str, Callable[[Any], Size]] = {
    "LDSVMClassifier": _ours,
    "KNeighborsClassifier": _featured(lambda s: int(s.n_samples_fit_), "_fit_X", "_y"),
    "LinearSVC": _plain("coef_", "intercept_"),
    "RidgeClassifier": _plain("coef_", "intercept_"),
    "SVC": _svm,
    "OneVsRestClassifier": _one_vs_rest,
    "PCA": _plain("mean_", "components_"),
    "LinearDiscriminantAnalysis": _plain("xbar_", "scalings_"),
    "LargeMarginNN": _plain("components_"),
    "NeighborhoodComponentsAnalysis": _plain("components_"),
    "KernelPCA": _featured(lambda s: int(s.X_fit_.shape[0]), "X_fit_", "eigenvectors_", "eigenvalues_"),
    "KernelDiscriminant": _featured(lambda s: len(s.X_fit_), "X_fit_", "dual_coef_", "intercept_"),
    "Nystroem": _featured(lambda s: int(s.components_.shape[0]), "components_", "normalization_"),
    "RBFSampler": _featured(lambda s: int(s.n_components), "random_weights_", "random_offset_"),
    "KMeansNystroem": _featured(lambda s: len(s.centers_), "centers_", "normalization_"),
    "KMeansGaussians": _featured(lambda s: len(s.centers_), "centers_"),
    "MLPClassifier": _network,
    "HistGradientBoostingClassifier": _trees,
    "LGBMClassifier": _lightgbm,
    "XGBClassifier": _xgboost,
}
