"""Network and trees: all rows train, and they learn what no linear classifier can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ldsvm.methods import lookup, shared


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on busy cores take minutes for what is done in a second."""
    with threadpool_limits(1):
        yield


def exclusive_or(n: int) -> tuple[Any, Any]:
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 2))
    return X, X[:, 0] * X[:, 1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "hist_gradient_boosting"])
def test_exclusive_or(name: str) -> None:
    X, y = exclusive_or(400)
    model = shared(lookup(name).make(), seed=0, n_jobs=1)
    if name == "mlp":
        model.set_params(learning_rate_init=0.01)
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9
    assert lookup("linear_svm").make().fit(X[:300], y[:300]).score(X[300:], y[300:]) < 0.7


def test_trees_set_no_rows_aside_however_many_there_are() -> None:
    X, y = exclusive_or(10_001)  # from here on scikit-learn would by itself
    model = lookup("hist_gradient_boosting").make().set_params(max_iter=3, max_leaf_nodes=4).fit(X, y)
    assert not model.do_early_stopping_ and model.n_iter_ == 3
    rows = {int(tree.nodes["count"][0]) for (tree,) in model._predictors}
    assert rows == {10_001}


def test_network_stops_when_its_training_loss_settles() -> None:
    X, y = exclusive_or(100)
    model = shared(lookup("mlp").make(), seed=0, n_jobs=1).set_params(tol=1e-2).fit(X, y)
    assert model.n_iter_ < model.max_iter and model.best_validation_score_ is None
    best = np.minimum.accumulate(model.loss_curve_)
    assert np.all(model.loss_curve_[-10:] > best[-11:-1] - 1e-2)  # ten epochs without progress
