"""The dial between error and size: who is chosen, what is refused, what is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ldsvm import LDSVMClassifier, fit_path, size_path
from ldsvm.sizes import model_bytes, predict_us, smallest

X, Y = load_digits(return_X_y=True)
TRAIN, VALID = slice(0, 1000), slice(1000, 1400)


@pytest.fixture(scope="module")
def models() -> list[LDSVMClassifier]:
    model = LDSVMClassifier(gamma=0.001, random_state=0, n_jobs=1)
    return size_path(model, X[TRAIN], Y[TRAIN], [10, 40, 160, 320], eval_set=(X[VALID], Y[VALID]))


@pytest.mark.slow
def test_each_is_the_fit_of_that_size(models: list[LDSVMClassifier]) -> None:
    assert [model.n_basis_ for model in models] == [10, 40, 160, 320]
    alone = LDSVMClassifier(gamma=0.001, n_basis=40, random_state=0, n_jobs=1)
    alone.fit(X[TRAIN], Y[TRAIN], eval_set=(X[VALID], Y[VALID]))
    np.testing.assert_array_equal(alone.latent_coef_, models[1].latent_coef_)
    errors = [model.history_[model.best_iter_]["valid_error"] for model in models]
    assert errors[0] > errors[1] > max(errors[2:])


def test_the_smallest_within_the_tolerance_and_the_budgets_is_chosen(models: list[LDSVMClassifier]) -> None:
    errors = [float(np.mean(model.predict(X[VALID]) != Y[VALID])) for model in models]
    for tolerance in (0.0, 0.005, 0.05, 1.0):
        expected = next(i for i, error in enumerate(errors) if error <= min(errors) + tolerance)
        assert smallest(models, X[VALID], Y[VALID], tolerance=tolerance) is models[expected]
    sizes = [model_bytes(model) for model in models]
    assert sizes == sorted(sizes) and sizes[1] == 40 * (64 * 4 + 9 * 8) + 10 * 9 * 8 + 10 * 8
    # a budget leaves out the best one too: the tolerance is then from the best of the rest
    assert smallest(models, X[VALID], Y[VALID], max_bytes=sizes[1]) is models[1]
    assert smallest(models, X[VALID], Y[VALID], tolerance=1.0, max_predict_us=1e6) is models[0]


@pytest.mark.slow
def test_a_pipeline_is_fitted_once_and_its_sizes_are_those_of_its_last_step() -> None:
    scale = StandardScaler()
    whole = make_pipeline(scale, LDSVMClassifier(random_state=0, n_jobs=1))
    found = size_path(whole, X[TRAIN], Y[TRAIN], [10, 40], eval_set=(X[VALID], Y[VALID]))
    assert [model[-1].n_basis_ for model in found] == [10, 40] and found[0][0] is found[1][0]
    assert not hasattr(scale, "mean_") and [name for name, _ in found[0].steps] == [name for name, _ in whole.steps]
    rows = StandardScaler().fit(X[TRAIN]).transform
    alone = LDSVMClassifier(random_state=0, n_jobs=1, n_basis=40)
    alone.fit(rows(X[TRAIN]), Y[TRAIN], eval_set=(rows(X[VALID]), Y[VALID]))
    np.testing.assert_array_equal(found[1].decision_function(X[VALID]), alone.decision_function(rows(X[VALID])))
    assert smallest(found, X[VALID], Y[VALID], tolerance=1.0, max_bytes=10**6, max_predict_us=1e6) is found[0]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: size_path(SVC(), X, Y, [5]), TypeError, "estimator is SVC; allowed: an LDSVMClassifier"),
        (lambda: size_path(LDSVMClassifier(), X, Y, ["auto"]), ValueError, "sizes has 'auto'"),
        (lambda: smallest(LDSVMClassifier(), X, Y), TypeError, "models is a single LDSVMClassifier; give a list"),
        (lambda: smallest([], X, Y, max_predict_us="fast"), ValueError, "max_predict_us='fast' must be a number"),
        (lambda: smallest([], X, Y, tolerance=5), ValueError, "tolerance=5 must be a fraction"),
    ],
)
def test_arguments_of_another_kind_are_one_sentence(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_bytes": 10}, "no model takes at most 10 bytes; the smallest takes "),
        ({"max_predict_us": 1e-9}, "no model takes at most 1e-09 us a row; the smallest takes "),
    ],
)
def test_a_budget_that_nothing_meets_is_one_sentence(
    models: list[LDSVMClassifier], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        smallest(models, X[VALID], Y[VALID], **given)


def test_nothing_to_choose_from_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="models is empty"):
        smallest([], X[VALID], Y[VALID])
    with pytest.raises(ValueError, match="sizes is empty"):
        size_path(LDSVMClassifier(), X, Y, [])
    with pytest.raises(ValueError, match="n_basis"):
        size_path(LDSVMClassifier(), X, Y, [10, 0])


@pytest.mark.slow
def test_time_is_of_a_row(models: list[LDSVMClassifier]) -> None:
    assert 0 < predict_us(models[0], X[VALID]) < 1e5


@pytest.mark.slow
def test_automatic_size_is_the_smallest_that_is_nearly_the_best() -> None:
    model = LDSVMClassifier(gamma=0.001, n_basis="auto", random_state=0, n_jobs=1)
    held = (X[VALID], Y[VALID])
    model.fit(X[TRAIN], Y[TRAIN], eval_set=held)
    assert model.n_basis == "auto"
    tried = size_path(clone(model).set_params(n_basis=1), X[TRAIN], Y[TRAIN], [32, 64, 128, 256, 512], eval_set=held)
    errors = [one.history_[one.best_iter_]["valid_error"] for one in tried]
    chosen = next(one for one, error in zip(tried, errors, strict=True) if error <= min(errors) + 0.002)
    assert model.n_basis_ == chosen.n_basis_
    np.testing.assert_array_equal(model.predict(X), chosen.predict(X))
    assert clone(model).fit(X[TRAIN], Y[TRAIN], eval_set=held).n_basis_ == model.n_basis_


def test_automatic_size_ends_with_the_rows_and_needs_some_to_choose_by() -> None:
    model = LDSVMClassifier(n_basis="auto", random_state=0, n_jobs=1)
    with pytest.raises(ValueError, match="n_basis='auto' needs validation rows"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="is not supported by fit_path"):
        fit_path(model, X, Y, [1.0], eval_set=(X, Y))
    assert model.fit(X[:20], Y[:20] % 2, eval_set=(X[20:40], Y[20:40] % 2)).n_basis_ <= 20


@pytest.mark.slow
def test_without_a_seed_all_sizes_are_chosen_by_the_same_rows() -> None:
    model = LDSVMClassifier(gamma=0.001, early_stopping=True, n_jobs=1)
    seeds = {one.random_state for one in size_path(model, X[TRAIN], Y[TRAIN], [10, 20])}
    assert len(seeds) == 1 and None not in seeds
    auto = LDSVMClassifier(gamma=0.001, n_basis="auto", early_stopping=True, n_jobs=1).fit(X[:300], Y[:300])
    assert auto.random_state is None and auto.n_basis == "auto"


@pytest.mark.slow
def test_a_stop_ends_the_search_for_a_size_and_an_earlier_fit_leaves_nothing() -> None:
    import pandas as pd

    held = (X[VALID], Y[VALID])
    model = LDSVMClassifier(gamma=0.001, n_basis="auto", random_state=0, n_jobs=1)
    frame = pd.DataFrame(X[:, 20:28]).add_prefix("c")
    model.fit(frame[:200], Y[:200], eval_set=(frame[VALID], Y[VALID]))
    calls: list[int] = []
    model.fit(X[TRAIN], Y[TRAIN], eval_set=held, callback=lambda info: calls.append(1) or True)
    assert (model.n_basis_, len(calls)) == (32, 1) and not hasattr(model, "feature_names_in_")
    model.set_params(map="linear", n_basis=10).fit(X[TRAIN], Y[TRAIN])
    assert not hasattr(model, "centers_")


@pytest.mark.slow
@pytest.mark.parametrize("labels", [Y[VALID][:, None], Y[VALID][:10], 3])
def test_labels_of_another_shape_choose_nothing_wrong(models: list[LDSVMClassifier], labels: Any) -> None:
    if np.ndim(labels) == 2:
        assert smallest(models, X[VALID], labels) is smallest(models, X[VALID], Y[VALID])
    else:
        with pytest.raises(ValueError):  # noqa: PT011 – the words are scikit-learn's
            smallest(models, X[VALID], labels)
    with pytest.raises(ValueError, match="tolerance=-1 must be"):
        smallest(models, X[VALID], Y[VALID], tolerance=-1)
