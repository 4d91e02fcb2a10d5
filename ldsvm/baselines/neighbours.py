"""The nearest-neighbour classifier: the whole training set is the model."""

from __future__ import annotations

from typing import Any

import numpy as np


def nearest() -> Any:
    """Return an unfitted 1-nearest-neighbour classifier (Euclidean distance)."""
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(n_neighbors=1)


def count(fitted: Any) -> int:
    """Count basis functions: every training point, since each may decide a prediction."""
    return int(fitted.n_samples_fit_)


def arrays(fitted: Any) -> list[np.ndarray]:
    """Return what a prediction needs: the training inputs (N, D) and their labels (N,)."""
    return [fitted._fit_X, fitted._y]
