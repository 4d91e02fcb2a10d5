"""Any scikit-learn regressor as F: "the approach is generic over F" (section "The F step")."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ldsvm import threads
from ldsvm.maps.base import Evaluation, Family, Map, Regression
from ldsvm.typing import Array


class RegressorMap(Map):
    """A fitted regressor; its regularisation is its own, so R(F) counts as 0."""

    penalty = 0.0

    def __init__(self, model: Any, L: int) -> None:
        self.model, self.L = model, L
        kept = getattr(model, "X_fit_", getattr(model, "X_train_", None))
        # Kernel regressors evaluate one basis function per kept row; others have no such number: one per output.
        self.n_basis = L if kept is None else int(kept.shape[0])

    def __call__(self, X: Any) -> Array:
        F: Array = np.asarray(self.model.predict(X)).reshape(X.shape[0], self.L)
        return F.astype(X.dtype if X.dtype == np.float32 else np.float64, copy=False)


class RegressorEvaluation(Evaluation):
    """Predictions on fixed inputs; nothing can be computed ahead."""

    def __init__(self, X: Any, n_threads: int) -> None:
        self.X, self.n_threads = X, n_threads

    def values(self, mapping: Map) -> Array:
        with threads.limit(self.n_threads):
            return mapping(self.X).astype(np.float64)


class RegressorRegression(RegressorEvaluation, Regression):
    """A fresh clone of the regressor per F-step."""

    def __init__(self, estimator: Any, X: Any, weight: Array | None, n_threads: int) -> None:
        super().__init__(X, n_threads)
        self.estimator = estimator
        self.keywords = {} if weight is None else {"sample_weight": weight}

    def fit(self, Z: Array, mu: float, near: Map | None = None) -> Map:
        target = Z.ravel() if Z.shape[1] == 1 else Z
        try:
            with threads.limit(self.n_threads):
                model = clone(self.estimator).fit(self.X, target, **self.keywords)
        except ValueError as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(
                f"map={self.estimator!r} could not be fitted to {Z.shape[1]} latent dimensions ({reason}); wrap a "
                "regressor that predicts a single output in sklearn.multioutput.MultiOutputRegressor."
            ) from error
        return RegressorMap(model, Z.shape[1])

    def elsewhere(self, X: Any) -> Evaluation:
        return RegressorEvaluation(X, self.n_threads)


class Regressor(Family):
    """A clone of ``estimator`` is fitted to the coordinates in every F-step.

    With its own regulariser the penalised objective is no longer guaranteed to fall in the F-step; early stopping on
    validation data still keeps the best model.
    """

    sparse = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def prepare(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None = None
    ) -> Regression:
        if weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight cannot be used with map={self.estimator!r}: its fit takes no sample_weight; "
                "use map='rbf' or map='linear', or a regressor that takes weights."
            )
        estimator = seeded_clone(self.estimator, random_state)
        return RegressorRegression(estimator, X, weight, n_threads)


def seeded_clone(estimator: Any, random_state: np.random.RandomState) -> Any:
    """Return an unfitted copy; where its `random_state` is None, a number is drawn for it."""
    copy: Any = clone(estimator)
    if "random_state" in (params := copy.get_params()) and params["random_state"] is None:
        copy.set_params(random_state=random_state.randint(2**31 - 1))
    return copy
