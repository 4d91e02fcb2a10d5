"""All classes in a plane, from the scores of a classifier: a row's position shows its class and how certain it is."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ldsvm.mac.start import simplex_points
from ldsvm.typing import Array

SHARPNESS = 3.0
MANY = 50  # classes whose order on the circle is searched; more of them cannot be told apart there anyway


class ClassPlane(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map rows to a plane where each class has a corner of a regular polygon.

    A row lies at the mean of the corners, weighted by the softmax of the classifier's scores: near the corner of its
    class if the classifier is certain, between two corners if it might be either class, and in the middle if it might
    be any. Classes that are often confused get neighbouring corners. Since the classifier may have as many latent
    dimensions as it needs, this separates many classes better than a classifier with two latent dimensions.

    Parameters
    ----------
    classifier : classifier with decision_function, or a pipeline that ends in one
        `fit` fits a clone of it. Wrap a fitted one in scikit-learn's FrozenEstimator to use it without refitting.
    sharpness : float, default=3.0
        Factor of the scores in the softmax. Larger values move rows closer to the corners and show less uncertainty;
        smaller ones spread each class along a ray. The default suits scores in units of an SVM's margin, as from
        LDSVMClassifier and SVC.

    Attributes
    ----------
    classifier_ : classifier
        The fitted classifier.
    classes_ : array of shape (K,)
        The classes, in the order of the rows of ``corners_``.
    corners_ : array of shape (K, 2)
        The corner of each class, on the unit circle. Two classes have opposite corners, with all rows on the line
        between them.

    Raises
    ------
    ValueError
        If sharpness is not a positive number, or the classifier has no decision_function.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ldsvm import ClassPlane, LDSVMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> plane = ClassPlane(LDSVMClassifier(n_basis=100, random_state=0)).fit(X / 16, y)
    >>> plane.transform(X / 16).shape
    (1797, 2)
    """

    classifier_: Any
    corners_: Array

    def __init__(self, classifier: Any, sharpness: float = SHARPNESS) -> None:
        self.classifier = classifier
        self.sharpness = sharpness

    def fit(self, X: Any, y: Any) -> ClassPlane:
        """Fit the classifier to X (N, D) and y (N,), and place classes side by side that are often confused."""
        sharpness: Any = self.sharpness
        if not isinstance(sharpness, Real) or not 0 < float(sharpness) < np.inf:
            raise ValueError(f"sharpness is {self.sharpness!r}; allowed: a positive number")
        if not hasattr(self.classifier, "decision_function"):
            raise ValueError(f"classifier is {self.classifier!r}; allowed: a classifier with decision_function")
        self.classifier_ = clone(self.classifier).fit(X, y)
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self.classifier_, name):
                setattr(self, name, getattr(self.classifier_, name))
        self.corners_ = corners(self._scores(X), self.sharpness)
        return self

    def transform(self, X: Any) -> Array:
        """Return the positions (N, 2) of the rows X (N, D) in the plane."""
        check_is_fitted(self)
        return places(self._scores(X), self.corners_, self.sharpness)

    def _scores(self, X: Any) -> Any:
        scores, K = self.classifier_.decision_function(X), len(self.classes_)
        last = self.classifier_[-1] if hasattr(self.classifier_, "steps") else self.classifier_
        pairs = K > 2 and getattr(last, "decision_function_shape", None) == "ovo"  # three classes have three pairs
        if scores.ndim == 2 and (scores.shape[1] != K or pairs):
            raise ValueError(
                f"classifier gives {scores.shape[1]} scores for {K} classes, not one for each; allowed: such as "
                "decision_function_shape='ovr'"
            )
        return scores

    @property
    def _n_features_out(self) -> int:
        return 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.classifier).input_tags.sparse
        tags.target_tags.required = True
        return tags


def corners(scores: Any, sharpness: float = SHARPNESS) -> Array:
    """Return a corner of the regular polygon for each class (K, 2), from scores (N, K), or (N,) of two classes.

    The order makes the sum of the distances between corners small, where each pair of classes is weighted by how often
    both are likely for a row. It is a local optimum: reversing any part of the circle does not improve it.
    """
    shares = _shares(scores, sharpness)
    K = shares.shape[1]
    points = simplex_points(K, 2) if K > 2 else np.array([[-1.0, 0.0], [1.0, 0.0]])
    if not 3 < K <= MANY:
        return points
    both = shares.T @ shares
    distances = np.linalg.norm(points[:, None] - points, axis=2)

    def cost(order: list[int]) -> float:
        return float(np.sum(both[np.ix_(order, order)] * distances))

    order = list(range(K))
    best, last = cost(order), np.inf
    while best < last:
        last = best
        for first in range(1, K - 1):  # class 0 stays: only its neighbours matter
            for end in range(first + 2, K + 1):
                other = order[:first] + order[first:end][::-1] + order[end:]
                if (found := cost(other)) < best * (1 - 1e-12):
                    order, best = other, found
    placed = np.empty_like(points)
    placed[order] = points
    return placed


def places(scores: Any, corners: Array, sharpness: float = SHARPNESS) -> Array:
    """Return the positions (N, 2) of rows with these scores, (N, K), or (N,) for two classes."""
    return _shares(scores, sharpness) @ corners


def _shares(scores: Any, sharpness: float) -> Array:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores]) / 2
    return np.asarray(softmax(sharpness * scores, axis=1))
