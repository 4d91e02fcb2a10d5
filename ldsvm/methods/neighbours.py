"""The nearest-neighbour classifier: the whole training set is the model."""

from __future__ import annotations

from typing import Any


def nearest() -> Any:
    """Return an unfitted 1-nearest-neighbour classifier (Euclidean distance)."""
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(n_neighbors=1)
