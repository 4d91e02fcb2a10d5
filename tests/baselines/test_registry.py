"""Every registered method: its size by the rule that its docstring states."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from ldsvm.baselines import METHODS, lookup

X, y = make_classification(n_samples=120, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)


@pytest.mark.parametrize("name", METHODS)
def test_sizes_follow_the_stated_rules(name: str) -> None:
    method = lookup(name)
    model = method.make()
    if name == "ldsvm":
        model.set_params(n_basis=20, random_state=0)
    model.fit(X, y)
    expected = {
        "nearest_neighbour": 120,
        "linear_svm": None,
        "gaussian_svm": len(getattr(model, "support_", [])),
        "ldsvm": 20,
    }
    assert method.count(model) == expected[name]
    arrays = method.arrays(model)
    assert all(isinstance(a, np.ndarray) for a in arrays)


def test_ours_counts_centres_map_and_machine() -> None:
    method = lookup("ldsvm")
    model = method.make().set_params(n_basis=20, n_components=2, random_state=0).fit(X, y)
    numbers = sum(a.size for a in method.arrays(model))
    assert numbers == 20 * 5 + 20 * 2 + 3 * 2 + 3  # centres, weights of the map, weights and biases of the machines


def test_a_name_that_nothing_has_is_one_sentence() -> None:
    with pytest.raises(KeyError, match='did you mean "linear_svm"') as caught:
        lookup("linear-svm")
    assert "Allowed: ldsvm, nearest_neighbour" in caught.value.args[0]
