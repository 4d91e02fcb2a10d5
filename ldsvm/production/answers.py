"""All outputs of a fitted model for rows, computed together: for scored files and for requests over HTTP."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.checks import check_X

Array = NDArray[Any]


class Answers:
    """Labels (n,), scores (n,) or (n, K) and latent coordinates Z (n, L) of rows X, by a fitted classifier.

    checked: X is a float array (n, D) of finite numbers that was checked already. Our classifier then skips its own
    check, which for a single row takes longer than the prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ldsvm import LDSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = Answers(LDSVMClassifier(n_basis=5, random_state=0).fit(X, y), X[:2])
    >>> found.labels.tolist(), found.Z.shape, found.probabilities().shape, found.margins().shape
    ([0, 0], (2, 2), (2, 3), (2,))
    """

    def __init__(self, model: Any, X: Any, checked: bool = False) -> None:
        self._model, self._X = model, X
        inner = model.estimator if hasattr(model, "threshold") else model
        if hasattr(inner, "_scores_and_coordinates"):  # of ours: one pass through the map
            X = X if checked else check_X(inner, X, sparse=inner._sparse, reset=False)
            self.scores, self.Z = inner._scores_and_coordinates(X)
        else:
            self.scores, self.Z = model.decision_function(X), model.transform(X)
        self.labels: Array = model.predict(X) if hasattr(model, "threshold") else self._largest()

    def margins(self) -> Array:
        """Return how far the largest score is above the next one, (n,); of two classes, the absolute score."""
        if self.scores.ndim == 1:
            return np.abs(self.scores)
        best = np.partition(self.scores, -2, axis=1)
        lead: Array = best[:, -1] - best[:, -2]
        return lead

    def probabilities(self) -> Array | None:
        """Return the probabilities (n, K); None where a model has none."""
        if getattr(self._model, "calibrator_", None) is not None:
            return np.asarray(self._model.calibrator_(self.scores))  # of ours: without another pass through the map
        return np.asarray(self._model.predict_proba(self._X)) if hasattr(self._model, "predict_proba") else None

    def _largest(self) -> Array:
        scores = self.scores
        found: Array = self._model.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
        return found
