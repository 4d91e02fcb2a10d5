"""The trade-off between accuracy and cost: fits of several sizes, and the smallest one that is good enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, column_or_1d

from ldsvm import threads
from ldsvm.auto_size import seeded
from ldsvm.estimator import LDSVMClassifier
from ldsvm.speed import predict_us as timed

REPEATS = 5  # predictions of which the median counts


def size_path(
    estimator: Any, X: Any, y: Any, sizes: Sequence[int], sample_weight: Any = None, *, eval_set: Any = None
) -> list[Any]:
    """Fit the classifier with each number of basis functions and return the models in the order of the sizes.

    estimator: an `LDSVMClassifier` with its other parameters, or a pipeline that ends in one, unfitted; the steps of a
    pipeline are fitted once, to X. If random_state is not a number, one is drawn and used for all, so that all set
    aside the same validation rows. X, y, sample_weight: as for `LDSVMClassifier.fit`. sizes: numbers of basis
    functions, such as [62, 125, 250, 500]. eval_set: validation rows, before the steps of a pipeline. With it, or with
    ``early_stopping=True``, each model (the last step of a pipeline) has the validation error
    ``model.history_[model.best_iter_]["valid_error"]``.

    Raises ValueError without sizes or with a parameter that is not allowed, and TypeError for another estimator, before
    anything is fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> models = size_path(LDSVMClassifier(early_stopping=True, random_state=0), X, y, [5, 10, 20])
    >>> [model.n_basis_ for model in models]
    [5, 10, 20]
    """
    steps, classifier = _parted(estimator)
    classifier = seeded(classifier)
    models = [clone(classifier).set_params(n_basis=size) for size in sizes]
    if not models:
        raise ValueError("sizes is empty; give at least one number of basis functions.")
    for model in models:
        if isinstance(model.n_basis, str):
            raise ValueError(f"sizes has {model.n_basis!r}; give numbers of basis functions.")
        model._validate_params()
    if steps is not None:
        X = steps.fit_transform(X, y)
        eval_set = eval_set and (steps.transform(eval_set[0]), eval_set[1])
    fitted = [model.fit(X, y, sample_weight, eval_set=eval_set) for model in models]
    return fitted if steps is None else [Pipeline([*steps.steps, (estimator.steps[-1][0], m)]) for m in fitted]


def smallest(
    models: Sequence[Any],
    X_valid: Any,
    y_valid: Any,
    *,
    tolerance: float = 0.0,
    max_predict_us: float | None = None,
    max_bytes: int | None = None,
) -> Any:
    """Return the model with the fewest basis functions whose validation error is within `tolerance` of the best.

    models: fitted models, as from `size_path`. X_valid (n, D), y_valid (n,): the rows that choose, never the test set.
    tolerance: a fraction, 0.001 for a tenth of a per cent. Below 1 / n it has no effect, and differences of less than
    about 1 / sqrt(n) are chance. max_predict_us: microseconds per row when all of X_valid is predicted in one call (a
    single row takes about 0.1 ms more), measured on this machine with the model's n_jobs and its current load; set
    ``n_jobs=1`` for figures that repeat. max_bytes: size of the arrays that a prediction needs. Models beyond a budget
    are ignored, also in the search for the best. Raises ValueError if none is left, and states the smallest value.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LDSVMClassifier(gamma=0.001, random_state=0)
    >>> models = size_path(model, X[:900], y[:900], [20, 80, 320], eval_set=(X[900:1350], y[900:1350]))
    >>> smallest(models, X[900:1350], y[900:1350], tolerance=0.01, max_bytes=10**6).n_basis_ <= 320
    True
    """
    if not isinstance(models, Sequence):
        raise TypeError(
            f"models is a single {type(models).__name__}; give a list of fitted models, as size_path returns it."
        )
    left, y_valid = list(models), column_or_1d(y_valid)
    check_consistent_length(X_valid, y_valid)
    for name, value in (("tolerance", tolerance), ("max_predict_us", max_predict_us), ("max_bytes", max_bytes)):
        if value is not None and not (isinstance(number := np.asarray(value).item(), int | float) and number >= 0):
            raise ValueError(f"{name}={value!r} must be a number of at least 0.")
    if tolerance > 1:
        raise ValueError(
            f"tolerance={tolerance} must be a fraction of at most 1, such as 0.001 for a tenth of a per cent."
        )
    for what, limit, measure in (
        ("bytes", max_bytes, model_bytes),
        ("us a row", max_predict_us, lambda model: predict_us(model, X_valid)),
    ):
        if limit is None or not left:
            continue
        found = [measure(model) for model in left]
        if min(found) > limit:
            raise ValueError(f"no model takes at most {limit:g} {what}; the smallest takes {min(found):g}.")
        left = [model for model, value in zip(left, found, strict=True) if value <= limit]
    if not left:
        raise ValueError("models is empty; give at least one fitted model.")
    errors = [float(np.mean(model.predict(X_valid) != y_valid)) for model in left]
    good = [model for model, error in zip(left, errors, strict=True) if error <= min(errors) + tolerance]
    return min(good, key=lambda model: _classifier(model).n_basis_)


def _classifier(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _parted(estimator: Any) -> tuple[Pipeline | None, LDSVMClassifier]:
    """Return a clone of the steps before a classifier, or None without any, and a clone of the classifier."""
    classifier = _classifier(estimator)
    if not isinstance(classifier, LDSVMClassifier):
        name = type(classifier).__name__
        raise TypeError(f"estimator is {name}; allowed: an LDSVMClassifier, or a pipeline that ends in one.")
    return clone(estimator[:-1]) if classifier is not estimator else None, clone(classifier)


def model_bytes(model: Any) -> int:
    """Return the bytes of the arrays that a prediction needs: centres, widths, weights and machines.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> model_bytes(LDSVMClassifier(map="linear").fit(*load_iris(return_X_y=True)))
    136
    """
    from ldsvm.methods.sizes import arrays  # which loads the list of methods

    return sum(int(array.nbytes) for array in arrays(_classifier(model)))


def predict_us(model: Any, X: Any) -> float:
    """Return the microseconds that predicting a row of X (n, D) takes, all rows at once: the median of several times.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> predict_us(LDSVMClassifier(random_state=0).fit(X, y), X) > 0
    True
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    model.predict(X)  # caches and compilers are warm afterwards
    return timed(model, X, REPEATS, threads.n_threads(_classifier(model).n_jobs))
