"""The choice of the number of basis functions for `n_basis="auto"`."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

from sklearn.base import clone
from sklearn.utils import check_random_state

from ldsvm.maps.landmarks import number_of

FIRST, LARGEST = 32, 4096  # numbers that n_basis="auto" tries, doubling
TOLERANCE = 0.002  # of the validation error, for which half the size is a good bargain


def seeded(estimator: Any) -> Any:
    """Return the estimator with a number as its seed, so that its clones set aside the same validation rows."""
    if isinstance(estimator.random_state, Integral):
        return estimator
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    copy: Any = clone(estimator).set_params(random_state=seed)
    return copy


def automatic(estimator: Any, X: Any, y: Any, sample_weight: Any, *, eval_set: Any, callback: Any) -> Any:
    """Return the fit with the smallest of 32, 64, 128, … basis functions that is within 0.2 % of the best of them.

    The number doubles until the validation error has twice not fallen, it exceeds the number of rows, or the callback
    or the time limit stops a fit. Arguments: as for `LDSVMClassifier.fit`. Raises ValueError without validation rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ldsvm import LDSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> LDSVMClassifier(n_basis="auto", early_stopping=True, random_state=0).fit(X, y).n_basis_
    32
    """
    if eval_set is None and not estimator.early_stopping:
        raise ValueError("n_basis='auto' needs validation rows: pass an eval_set, or set early_stopping=True.")
    if not isinstance(estimator.centers, str) and not hasattr(estimator.centers, "fit"):
        number_of(estimator.centers, "auto")  # refuses it: an array has one size
    estimator = seeded(estimator)
    models: list[Any] = []
    errors: list[float] = []
    size = FIRST
    while size <= LARGEST and (len(errors) < 3 or min(errors[-2:]) < min(errors[:-2])):
        model = clone(estimator).set_params(n_basis=size, warm_start=False)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "n_basis=.* is more than the .* distinct training rows")
            model.fit(X, y, sample_weight, eval_set=eval_set, callback=callback)
        models.append(model)
        errors.append(float(model.history_[model.best_iter_]["valid_error"]))
        if model.map_.n_basis < size or model.stop_reason_ in ("callback", "time_limit"):
            break
        size *= 2
    return next(model for model, error in zip(models, errors, strict=True) if error <= min(errors) + TOLERANCE)
