"""A classifier that wants the labels 0 to K - 1, with whatever labels there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


class CodedLabels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers the labels for another classifier, in sorted order, and reads its answers back.

    estimator: the classifier, whose parameters are also this one's, by the same names.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> model = CodedLabels(KNeighborsClassifier()).set_params(n_neighbors=1).fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.predict([[0.9]]).tolist(), model.estimator.classes_.tolist()
    (['yes'], [0, 1])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the classifier; with deep=False the classifier itself, as `clone` asks for it."""
        found: dict[str, Any] = self.estimator.get_params() if deep else {"estimator": self.estimator}
        return found

    def set_params(self, **params: Any) -> CodedLabels:
        """Set parameters of the classifier."""
        self.estimator.set_params(**params)
        return self

    def fit(self, X: Any, y: Any) -> CodedLabels:
        """Fit the classifier to X (n, D) and labels y (n,)."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.estimator.fit(X, codes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels (n,) of X (n, D)."""
        return np.asarray(self.classes_[np.asarray(self.estimator.predict(X), dtype=np.intp)])

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities (n, K) of X (n, D), where the classifier has such."""
        return np.asarray(self.estimator.predict_proba(X))
