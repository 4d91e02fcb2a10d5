"""Every registered method: it trains and predicts, is reproducible, and its default search is allowed everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ldsvm.methods import METHODS, lookup, shared

SLOW = {
    "mlp": {"max_iter": 60},
    "hist_gradient_boosting": {"max_iter": 10},
    "lightgbm": {"n_estimators": 5},
    "ldsvm": {"n_basis": 50, "max_iter": 20},
    "lmnn_nn": {"reduce__max_iter": 30},
}
RIVALS = ("lightgbm", "xgboost", "xrfm")  # of other packages, which check their parameters otherwise
STEPS = [name for name in METHODS if name.endswith("_nn") or name.split("_")[0] in ("pca", "lda", "fourier", "rbf")]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on busy cores take minutes for what is done in a second."""
    with threadpool_limits(1):
        yield


def estimators(made: Any) -> Iterator[Any]:
    """An estimator, or the steps of a pipeline, and what stands inside them."""
    for part in [step for _, step in made.steps] if hasattr(made, "steps") else [made]:
        yield from [part, part.estimator] if hasattr(part, "estimator") else [part]


def made(name: str, seed: int = 0) -> Any:
    return shared(lookup(name).make(), seed=seed, n_jobs=1).set_params(**SLOW.get(name, {}))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few iterations, see SLOW
@pytest.mark.filterwarnings("ignore:n_components > n_samples")  # 300 landmarks of 200 rows
@pytest.mark.parametrize("labels", ["digits", "odd or even"])
@pytest.mark.parametrize("name", METHODS)
def test_trains_and_gives_the_same_answers_twice(name: str, labels: str, digits: tuple[Any, Any]) -> None:
    if name == "xrfm":
        pytest.importorskip("xrfm", reason="xRFM, with PyTorch, is in no extra")
    X, y = digits[0].astype(np.float32), digits[1]
    wanted = y if labels == "digits" else np.where(y % 2, "odd", "even")
    first, second = (made(name).fit(X[:200], wanted[:200]) for _ in range(2))
    said = first.predict(X[200:300])
    assert np.array_equal(said, second.predict(X[200:300]))
    # far below chance, 0.9 and 0.5; the worst are two dimensions out of 64, for ten classes
    assert np.mean(said != wanted[200:300]) < (0.6 if labels == "digits" else 0.35)
    assert list(first.classes_) == sorted(set(wanted))
    method = lookup(name)
    assert all(isinstance(array, np.ndarray) and array.nbytes for array in method.arrays(first))
    sizes = method.count(first), method.total(first)
    assert sizes == (None, None) if name in ("linear_svm", "xrfm") else 0 < int(sizes[0] or 0) <= int(sizes[1] or 0)


@pytest.mark.parametrize("name", METHODS)
def test_default_space_is_allowed_and_modest(name: str) -> None:
    method = lookup(name)
    assert method.space and np.prod([len(values) for values in method.space.values()]) <= (
        20 if name != "klda_nn" else 50
    )
    for key, values in method.space.items():
        assert len(set(values)) == len(values) > 1
        for value in values:
            model = clone(method.make()).set_params(**{key: value})
            assert model.get_params()[key] == value
            for part in estimators(model) if name not in RIVALS else ():
                part._validate_params()  # scikit-learn's own check, the first thing that fit does


def test_the_grid_of_widths_of_kernel_discriminants_is_fine() -> None:
    widths = np.array(lookup("klda_nn").space["reduce__gamma"])
    assert len(widths) >= 20 and np.all(np.diff(np.log10(widths)) < 0.25)


def test_pipelines_name_their_steps_alike() -> None:
    pipelines = {name for name in METHODS if hasattr(lookup(name).make(), "steps")}
    assert pipelines >= set(STEPS) and len(pipelines) == 13
    assert all([step for step, _ in lookup(name).make().steps] == ["reduce", "classify"] for name in pipelines)


@pytest.mark.parametrize("name", METHODS)
def test_seed_and_jobs_reach_every_step(name: str) -> None:
    model = shared(lookup(name).make(), seed=17, n_jobs=3)
    for part in estimators(model):
        known = part.get_params(deep=False)
        assert known.get("random_state", 17) == 17
        # one against the rest would start processes
        assert known.get("n_jobs", 3) == (None if hasattr(part, "estimator") and name != "xgboost" else 3)


def test_another_seed_is_another_draw(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:100], digits[1][:100]
    for name in ("nystroem_svm", "nystroem_kmeans_svm", "fourier_svm", "rbf_network"):
        first, other = (
            made(name, seed).set_params(reduce__n_components=20).fit(X, y)[0].transform(X) for seed in (0, 1)
        )
        assert not np.allclose(np.sort(first), np.sort(other))


def test_a_name_that_nothing_has_is_one_sentence() -> None:
    with pytest.raises(KeyError, match='did you mean "linear_svm"') as caught:
        lookup("linear-svm")
    assert "Allowed: ldsvm, pca_ldsvm, nearest_neighbour" in caught.value.args[0]


BALANCED = [name for name in METHODS if any(key.endswith("class_weight") for key in METHODS[name].make().get_params())]


def test_which_methods_take_balanced_classes() -> None:
    without = {name for name in METHODS if name.endswith(("_nn", "nearest_neighbour", "mlp", "xgboost", "xrfm"))}
    assert set(BALANCED) == set(METHODS) - without


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few iterations, see SLOW
@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@pytest.mark.parametrize("name", BALANCED)
def test_balanced_classes_are_answered_more_evenly(name: str) -> None:
    # one row in ten is rare, amid the others: the best plain answer is nearly always the other class
    rng = np.random.default_rng(0)
    y = np.arange(200) % 10 == 0
    X = (rng.normal(size=(200, 3)) + 0.8 * y[:, None]).astype(np.float32)
    method = made(name)
    keys = [key for key in method.get_params() if key.endswith("class_weight")]
    small = {key: 20 for key, value in method.get_params().items() if key.endswith("n_components") and value == 300}
    plain, even = (clone(method).set_params(**small, **dict.fromkeys(keys, weight)).fit(X, y.astype(int))
                   for weight in (None, "balanced"))  # fmt: skip
    assert even.predict(X).mean() > plain.predict(X).mean()
