"""Fits for several values of C that share one preparation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sklearn.base import clone

from ldsvm import threads
from ldsvm.blocks.row_blocks import RowBlocks
from ldsvm.estimator import LDSVMClassifier
from ldsvm.mac.loop import Callback
from ldsvm.mac.state import Info
from ldsvm.training import options_of, prepare, reported, train


def fit_path(
    estimator: LDSVMClassifier,
    X: Any,
    y: Any,
    C_values: Iterable[float],
    sample_weight: Any = None,
    *,
    eval_set: Any = None,
    callback: Callable[[float, Info], bool | None] | None = None,
) -> list[LDSVMClassifier]:
    """Fit clones of ``estimator`` for several C, computing centres, features and Gram matrix once.

    Each result equals ``clone(estimator).set_params(C=C).fit(...)`` with the same integer random_state. With
    ``map="adaptive_rbf"`` the fits share the first F-step, which is most of the time of a short training.

    Parameters
    ----------
    estimator : unfitted LDSVMClassifier; its C is not used.
    C_values : values of C; the models are returned in the same order.
    X, y, sample_weight, eval_set : as in `LDSVMClassifier.fit`.
    callback : called with C and the dict of every iteration; the fit for this C stops when it returns true.

    Examples
    --------
    >>> from ldsvm import LDSVMClassifier, fit_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LDSVMClassifier(n_basis=20, early_stopping=True, random_state=0)
    >>> [m.C for m in fit_path(model, X, y, [0.1, 1.0])]
    [0.1, 1.0]
    """
    models = [clone(estimator).set_params(C=C) for C in C_values]
    if not models:
        raise ValueError("C_values is empty; give at least one positive number.")
    if isinstance(X, RowBlocks):
        raise ValueError("fit_path does not support RowBlocks; call fit for each C.")
    if estimator.n_basis == "auto":
        raise ValueError("n_basis='auto' is not supported by fit_path; allowed: a number, 'scale' or None.")
    for model in models:
        model._validate_params()
    with threads.limit(estimator.n_jobs):
        first = clone(estimator)
        prepared = prepare(first, X, y, sample_weight, eval_set)
        for model in models:
            model.n_features_in_ = first.n_features_in_
            if hasattr(first, "feature_names_in_"):
                model.feature_names_in_ = first.feature_names_in_
            report = reported(model.verbose, None if callback is None else _with_C(callback, model.C))
            model._keep(*train(model, prepared, report, options_of(model)))
    return models


def _with_C(callback: Callable[[float, Info], bool | None], C: float) -> Callback:
    return lambda info: callback(C, info)
