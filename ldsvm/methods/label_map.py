"""A classifier that has learnt finer labels than it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from ldsvm.datasets import relabel


class Coarser(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Answers of another classifier in a coarser reading of its labels, such as the parity of the digit it sees.

    model: a classifier of the finer labels. labels: how its answers are read, see `ldsvm.datasets.relabel`.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> digits = KNeighborsClassifier(1).fit([[0.0], [1.0], [2.0]], [4, 5, 7])
    >>> Coarser(digits, "parity").predict([[0.1], [1.9]]).tolist()
    [0, 1]
    """

    def __init__(self, model: Any, labels: str) -> None:
        self.model, self.labels = model, labels

    def fit(self, X: Any, y: Any) -> Coarser:
        """Fit the classifier to X (n, D) and the finer labels y (n,)."""
        self.model.fit(X, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels (n,) of X (n, D) in the coarser reading."""
        return relabel(self.model.predict(X), self.labels)

    @available_if(lambda self: hasattr(self.model, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities (n, K) of X (n, D): of a class, the sum over the finer labels that are read as it."""
        read = relabel(self.model.classes_, self.labels)
        return self.model.predict_proba(X) @ (read[:, None] == self.classes_).astype(np.float64)

    def transform(self, X: Any) -> Any:
        """Return the latent coordinates (n, L) of X (n, D), where the classifier has such."""
        return self.model.transform(X)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels that it may answer."""
        return np.unique(relabel(self.model.classes_, self.labels))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.model, "classes_")
