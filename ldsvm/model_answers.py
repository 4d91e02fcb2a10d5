"""Checked predictions of a fitted classifier: a class by import path may return anything, and a wrong number is worse
than none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.words import shown

CLOSE = 1e-3  # of the sum of a row's probabilities, which may be float32, to 1
Array = NDArray[Any]


class StrangeAnswers(ValueError):
    """A classifier returned something that is not a prediction; the message is one sentence."""


def labels_of(model: Any, X: Any) -> Array:
    """Return the labels (n,) that a fitted classifier predicts for the rows X (n, D).

    Raises StrangeAnswers if it has no sorted `classes_`, or predicts anything but one of them for each row.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> labels_of(DummyClassifier().fit([[0], [1], [2]], ["a", "b", "b"]), np.zeros((2, 1))).tolist()
    ['b', 'b']
    """
    classes = classes_of(model)
    found = np.asarray(model.predict(X))
    if found.shape != (X.shape[0],):
        raise StrangeAnswers(
            f"{_name(model)}.predict gives an array of shape {found.shape} for {X.shape[0]} rows; allowed: one label "
            "for each row."
        )
    strange = [one for one in dict.fromkeys(found.tolist()) if one not in classes]
    if strange:
        raise StrangeAnswers(
            f"{_name(model)}.predict gives the label {shown(strange[0])}; allowed: its classes_, "
            f"{', '.join(map(shown, classes[:10]))}{', …' if len(classes) > 10 else ''}."
        )
    return found


def classes_of(model: Any) -> list[Any]:
    """Return the sorted labels of a fitted classifier; raise StrangeAnswers if it has none."""
    if not hasattr(model, "classes_"):
        raise StrangeAnswers(f"{_name(model)} has no classes_ after fit; allowed: the sorted labels of y.")
    classes = np.asarray(model.classes_)
    if classes.ndim != 1 or not np.array_equal(classes, np.unique(classes)):
        raise StrangeAnswers(
            f"{_name(model)} has classes_ {shown(classes.tolist())}; allowed: each label of y once, sorted."
        )
    found: list[Any] = classes.tolist()
    return found


def probabilities_of(model: Any, X: Any) -> Array | None:
    """Return the probabilities (n, K) that a fitted classifier predicts for X (n, D), or None if it has none.

    Raises StrangeAnswers for numbers that are not probabilities. NaN is kept, since some methods return it.
    """
    found, wanted = ask(model, "predict_proba", X), (X.shape[0], len(classes_of(model)))
    if found is None:
        return None
    if found.shape != wanted:
        raise StrangeAnswers(
            f"{_name(model)}.predict_proba gives an array of shape {found.shape}; allowed: {wanted}, a row for each "
            "row of X and a column for each of its classes_."
        )
    sums = found.sum(axis=1)
    wrong = (found < -CLOSE).any(axis=1) | (np.abs(sums - 1) > CLOSE)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise StrangeAnswers(
            f"{_name(model)}.predict_proba gives {shown(found[row].tolist())} in row {row}; allowed: numbers that "
            "are not negative and sum to 1."
        )
    return found


def ask(model: Any, name: str, X: Any) -> Array | None:
    """Return what a method of the model answers, None where it has no such method, or was not fitted for it."""
    try:
        return np.asarray(getattr(model, name)(X), dtype=np.float64)
    except (AttributeError, NotImplementedError):
        return None


def _name(model: Any) -> str:
    return type(getattr(model, "model", model)).__name__
