"""A classifier that returns known predictions, for scorers that need a classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if


def _has(part: str) -> Callable[[Any], bool]:
    return lambda known: getattr(known, part) is not None


class KnownAnswers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier that repeats what another one said of n rows; its X (n,) are numbers of rows.

    classes: K labels. predicted: of each row (n,). probabilities: (n, K), decisions: (n,) or (n, K); it has no such
    method where they are None.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownAnswers(np.array([0, 1]), np.array([1, 1, 0]))
    >>> known.predict(np.array([2, 0])).tolist(), hasattr(known, "predict_proba")
    ([0, 1], False)
    """

    def __init__(
        self,
        classes: NDArray[Any],
        predicted: NDArray[Any],
        probabilities: NDArray[Any] | None = None,
        decisions: NDArray[Any] | None = None,
    ) -> None:
        self.classes, self.predicted = classes, predicted
        self.probabilities, self.decisions = probabilities, decisions
        self.classes_ = classes

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the labels (n,) of rows X (n,)."""
        return self.predicted[X]

    @available_if(_has("probabilities"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the probabilities (n, K) of rows X (n,)."""
        assert self.probabilities is not None
        return self.probabilities[X]

    @available_if(_has("decisions"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the decision values of rows X (n,)."""
        assert self.decisions is not None
        return self.decisions[X]
