"""Classifiers unrelated to ours: a neural network and boosted trees.

Both train on all rows that they are given: their own early stopping would set some aside, and the experiment has its
validation set to choose with. The network stops when its training loss settles, the trees after `max_iter` rounds.
"""

from __future__ import annotations

from typing import Any


def mlp() -> Any:
    """Return an unfitted network of one hidden layer with rectified linear units (Adam)."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(hidden_layer_sizes=100, max_iter=500)


def hist_gradient_boosting() -> Any:
    """Return unfitted gradient boosting on binned inputs, one tree per class in each of 100 rounds."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=False)
