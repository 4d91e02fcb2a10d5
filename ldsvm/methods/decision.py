"""Which of two classes is predicted if a missed row and a false alarm cost differently.

With calibrated probabilities p of the second class the threshold is known: predicting this class costs
(1 - p) false_alarm on average, and the other one p missed, so the second class is predicted from
p = false_alarm / (false_alarm + missed) on (Elkan, IJCAI 2001). For methods that have decision values alone, the
threshold of least cost is chosen on the validation rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ldsvm.metrics import Costs
from ldsvm.model_answers import ask

MOST = 300  # thresholds to try


class AtThreshold(FixedThresholdClassifier):  # type: ignore[misc]
    """A fitted classifier of two classes that predicts the second one from a threshold on, otherwise unchanged.

    estimator: fitted. threshold: of what response_method, "predict_proba" or "decision_function", says.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> careful = AtThreshold(fitted, threshold=0.1, response_method="predict_proba")
    >>> fitted.predict([[1.0]]).tolist(), careful.predict([[1.0]]).tolist()
    ([0], [1])
    """

    @available_if(lambda self: hasattr(self.estimator, "transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Return the latent coordinates (n, L) of X (n, D)."""
        return self.estimator.transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the classifier is fitted; there is nothing else to fit, and a pipeline asks its last step."""
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            return False
        return True

    @property
    def n_features_in_(self) -> int:
        """Number of inputs D."""
        return int(self.estimator.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the inputs (D,), where the classifier has such."""
        return np.asarray(self.estimator.feature_names_in_)

    @feature_names_in_.setter
    def feature_names_in_(self, names: NDArray[Any]) -> None:
        self.estimator.feature_names_in_ = names


def decided(model: Any, costs: Costs | None, X: Any, y: NDArray[Any], first: Any = None) -> Any:
    """Return a fitted classifier with the threshold of least cost; itself where nothing costs, or it has no scores.

    X (n, D), y (n,): validation rows, which choose where the model has no probabilities. first: the model that was
    fitted without them, where `model` has seen them.
    """
    if costs is None:
        return model
    if ask(model, "predict_proba", X[:1]) is not None:
        return AtThreshold(model, threshold=costs.threshold, response_method="predict_proba")
    first = model if first is None else first
    if (scores := ask(first, "decision_function", X)) is None:
        return model
    return AtThreshold(model, threshold=_tuned(first, costs, X, y, scores), response_method="decision_function")


def _tuned(model: Any, costs: Costs, X: Any, y: NDArray[Any], scores: NDArray[Any]) -> float:
    """Return the threshold of the decision values that costs least on these rows."""
    from sklearn.metrics import make_scorer

    values = np.unique(scores)
    between = np.concatenate([[values[0] - 1], (values[:-1] + values[1:]) / 2, [values[-1] + 1]])
    tried = between[np.linspace(0, len(between) - 1, min(MOST, len(between))).astype(int)]
    if len(values) == 1:  # which scikit-learn refuses
        return float(values[0])

    def cost(true: Any, said: Any) -> float:
        positive = model.classes_[1]
        return costs.mean(true == positive, said == positive)

    tuned = TunedThresholdClassifierCV(
        model, scoring=make_scorer(cost, greater_is_better=False), response_method="decision_function",
        thresholds=tried, cv="prefit", refit=False,
    )  # fmt: skip
    return float(tuned.fit(X, y).best_threshold_)
