"""Fitting: weights, paths over C, warm starts, early stopping, and the reasons to end."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from ldsvm import LDSVMClassifier, fit_path
from ldsvm.blocks import Serial
from ldsvm.mac.start import class_points

MODEL = ("latent_coef_", "intercept_")


def small(**changes: Any) -> LDSVMClassifier:
    given = {"n_basis": 25, "gamma": "scale", "alpha": 1e-3, "C": 0.3, "tol": 0.05, "random_state": 0}
    return LDSVMClassifier(**(given | changes))


def gap(a: LDSVMClassifier, b: LDSVMClassifier, X: Any) -> float:
    """Largest difference of two models' scores."""
    return float(np.abs(a.decision_function(X) - b.decision_function(X)).max())


@pytest.mark.parametrize("kind", ["ovr", "ovo"])
@pytest.mark.parametrize("chosen", ["rbf", "linear"])
def test_integer_weights_repeat_rows(digits: Any, chosen: str, kind: str) -> None:
    # a weight multiplies a row's hinge and its squared distance; the same basis, since k-means counts rows too
    X, y = digits[0][:100], digits[1][:100] % 3
    times = np.arange(100) % 3
    rows = np.repeat(np.arange(100), times)
    # as many basis functions as distinct rows, so that nothing is drawn
    model = small(map=chosen, multi_class=kind, n_basis=None, max_iter=400)
    weighted, repeated = model.fit(X, y, times), clone(model).fit(X[rows], y[rows])
    assert weighted.n_iter_ == repeated.n_iter_
    assert gap(weighted, repeated, X) < 1e-4
    assert gap(weighted, clone(model).fit(X, y), X) > 1e-2


def test_zero_weight_removes_a_row(digits: Any) -> None:
    # bit for bit, wherever the row is and whatever its label: here a class that has no other row
    X, y = digits[0][:100], digits[1][:100] % 3
    kept = np.arange(100) % 5 > 0
    other = np.where(kept, y, 9)
    zero, removed = small().fit(X, other, kept * 1.0), small().fit(X[kept], y[kept])
    assert gap(zero, removed, X) == 0.0
    np.testing.assert_array_equal(zero.classes_, [0, 1, 2])


def test_class_weights_scale_the_penalty(digits: Any) -> None:
    # C times the class's weight: the same factor for all classes is that factor on C, and a larger one is not ignored
    X, y = digits[0][:100], digits[1][:100] % 3
    scaled, plain = small(C=0.1, class_weight={0: 3.0, 1: 3.0, 2: 3.0}).fit(X, y), small(C=0.3).fit(X, y)
    assert gap(scaled, plain, X) < 1e-4
    uneven = y < 1
    heavy = small(C=0.01, class_weight={0: 1.0, 1: 20.0}, map="linear").fit(X, (~uneven).astype(int))
    light = small(C=0.01, class_weight={0: 20.0, 1: 1.0}, map="linear").fit(X, (~uneven).astype(int))
    assert heavy.predict(X).mean() > light.predict(X).mean()
    counts = np.bincount(y)
    by_hand = small(class_weight={k: 100 / (3 * counts[k]) for k in range(3)}).fit(X, y)
    assert gap(small(class_weight="balanced").fit(X, y), by_hand, X) < 1e-4


def test_balanced_svms_are_those_of_scikit_learn_and_of_repeated_rows() -> None:
    # on the fitted latent space our SVMs minimise the hinge of SVC with balanced classes; 20 and 60 rows weigh 2 and
    # 2/3, so that is the hinge of the rare rows three times, at 2/3 C
    y = np.repeat(["rare", "usual"], [20, 60])
    X = np.random.default_rng(0).normal(size=(80, 2)) + (y == "rare")[:, None]
    model = small(class_weight="balanced", n_basis=5, tol=1e-4, max_iter=1000, mu_max=1e9).fit(X, y)
    Z = model.transform(X)
    balanced = SVC(kernel="linear", C=0.3, class_weight="balanced", tol=1e-6).fit(Z, y)
    again = np.r_[np.tile(np.arange(20), 3), 20:80]
    repeated = SVC(kernel="linear", C=0.2, tol=1e-6).fit(Z[again], y[again])
    plain = SVC(kernel="linear", C=0.3, tol=1e-6).fit(Z, y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(balanced.decision_function(Z), repeated.decision_function(Z), atol=1e-4)
    np.testing.assert_allclose(scores, balanced.decision_function(Z), atol=2e-3)
    assert np.abs(scores - plain.decision_function(Z)).max() > 0.1


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("init", ["simplex", "random"])
def test_a_path_equals_separate_fits_bit_for_bit(digits: Any, init: str, early: bool) -> None:
    # centres, features and factors are shared between the C values and must not leak from one to the next
    X, y = digits[0][:150], digits[1][:150] % 3
    model = small(init=init, early_stopping=early, n_iter_no_change=3)
    seen = []
    path = fit_path(model, X, y, [3.0, 0.1, 3.0], callback=lambda C, info: seen.append(C))
    for C, fitted in zip([3.0, 0.1, 3.0], path, strict=True):
        alone = clone(model).set_params(C=C).fit(X, y)
        for name in MODEL:
            np.testing.assert_array_equal(getattr(alone, name), getattr(fitted, name))
        np.testing.assert_array_equal(alone.decision_function(X), fitted.decision_function(X))
        assert fitted.C == C and fitted.n_iter_ == alone.n_iter_
    assert list(dict.fromkeys(seen)) == [3.0, 0.1] and not hasattr(model, "latent_coef_")


def test_warm_start_continues_where_it_stopped(digits: Any) -> None:
    # it begins at the earlier model, so the nested objective starts at the old value and ends no worse
    X, y = digits[0][:150], digits[1][:150] % 3
    model = small(warm_start=True, max_iter=4, tol=1e-3)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    stopped, centers = model.history_[-1]["nested"], model.centers_
    with pytest.warns(ConvergenceWarning):
        model.set_params(max_iter=20, random_state=5).fit(X, y)
    assert model.history_[0]["nested"] == pytest.approx(stopped, rel=1e-9)
    assert model.history_[-1]["nested"] <= stopped
    np.testing.assert_array_equal(model.centers_, centers)


def test_warm_start_after_changing_C(digits: Any) -> None:
    # the start is the old model judged by the new penalty
    X, y = digits[0][:150], digits[1][:150] % 3
    model = small(warm_start=True).fit(X, y)
    ridge = 1e-3 * model.map_.penalty + 0.5 * np.sum(model.latent_coef_**2)
    hinge = (model.history_[-1]["nested"] - ridge) / 0.3
    model.set_params(C=3.0).fit(X, y)
    assert model.history_[0]["nested"] == pytest.approx(ridge + 3.0 * hinge, rel=1e-6)
    assert model.history_[-1]["nested"] < model.history_[0]["nested"]


@pytest.mark.parametrize("change", ["classes", "features", "n_components"])
def test_warm_start_is_a_cold_start_where_the_problem_changed(digits: Any, change: str) -> None:
    X, y = digits[0][:100], digits[1][:100] % 3
    model = small(warm_start=True).fit(X, y)
    if change == "classes":
        y = y + 1
    elif change == "features":
        X = X[:, 10:50]
    else:
        model.set_params(n_components=4)
    warm, cold = model.fit(X, y), clone(model).fit(X, y)
    assert gap(warm, cold, X) == 0.0


def test_eval_set_keeps_the_best_iteration(digits: Any) -> None:
    # the error is recomputed from the model returned; the rows only choose the iteration
    X, y = digits
    model = small(C=3.0, n_basis=60, n_iter_no_change=5).fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
    errors = [h["valid_error"] for h in model.history_]
    assert model.stop_reason_ == "early_stopping" and model.best_iter_ < model.n_iter_
    assert 1 - model.score(X[200:], y[200:]) == pytest.approx(min(errors), abs=1e-12)
    assert errors[model.best_iter_] == min(errors) < errors[0]


def test_early_stopping_holds_out_a_stratified_share(digits: Any) -> None:
    # 20 % of the rows, in the classes' proportions: the objective at the start has the rest of the rows only
    X, y = digits[0][:150], digits[1][:150] % 3
    held: list[Any] = []
    model = small(early_stopping=True, validation_fraction=0.2, centers="random", n_basis=None, n_iter_no_change=2).fit(
        X, y
    )
    assert model.n_basis_ == 120
    trained = {row.tobytes() for row in model.centers_}
    held = [k for k, row in zip(y, X.astype(np.float32), strict=True) if row.tobytes() not in trained]
    np.testing.assert_allclose(np.bincount(held), 0.2 * np.bincount(y), atol=1)
    wrong = [k for k, row, p in zip(y, X.astype(np.float32), model.predict(X), strict=True)
             if row.tobytes() not in trained and p != k]  # fmt: skip
    assert len(wrong) / len(held) == pytest.approx(min(h["valid_error"] for h in model.history_), abs=1e-12)


def test_early_stopping_equals_the_same_split_by_hand(digits: Any) -> None:
    # with nothing drawn, the model is the one trained on the other rows with this eval_set
    X, y = digits[0][:150], digits[1][:150] % 3
    seed = np.random.RandomState(0).randint(2**31 - 1)
    train, valid = (np.sort(i) for i in train_test_split(np.arange(150), test_size=15, stratify=y, random_state=seed))
    inside = small(early_stopping=True, n_basis=None, n_iter_no_change=3).fit(X, y)
    outside = small(n_basis=None, n_iter_no_change=3).fit(X[train], y[train], eval_set=(X[valid], y[valid]))
    assert gap(inside, outside, X) == 0.0


def test_callback_sees_every_iteration_and_stops(digits: Any) -> None:
    X, y = digits[0][:100], digits[1][:100] % 3
    seen: list[int] = []
    model = small(tol=1e-4).fit(X, y, callback=lambda info: seen.append(info["iteration"]) or len(seen) == 4)
    assert seen == [0, 1, 2, 3] and model.stop_reason_ == "callback" and model.n_iter_ == 3


@pytest.mark.slow
def test_time_limit_ends_between_iterations(digits: Any) -> None:
    X, y = digits
    small().fit(X[:50], y[:50] % 3)  # compiled code is loaded
    clock = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"^MAC stopped at time_limit=1.0 before converging: raise time_limit"):
        model = small(tol=0.0, mu_factor=1.0001, max_iter=100_000, time_limit=1.0).fit(X, y)
    assert model.stop_reason_ == "time_limit" and model.n_iter_ > 0
    assert time.perf_counter() - clock < 60.0


def test_the_largest_mu_is_no_convergence(digits: Any) -> None:
    X, y = digits
    with pytest.warns(ConvergenceWarning, match=r"^MAC stopped at mu_max=2.0 before converging: increase mu_max"):
        model = small(mu_max=2.0, max_iter=1000).fit(X[:100], y[:100])
    assert model.stop_reason_ == "mu_max"


@pytest.mark.parametrize("executor", [None, Serial()], ids=["in memory", "in blocks"])
def test_time_limit_counts_the_start_too(digits: Any, monkeypatch: pytest.MonkeyPatch, executor: Any) -> None:
    # starting points take longer than the limit: no iteration begins, and the remedy is told
    X, y = digits[0][:60], digits[1][:60] % 3

    def slow(*args: Any) -> Any:
        time.sleep(0.2)
        return class_points(*args)

    for place in ("ldsvm.mac.start", "ldsvm.blocks.fitting"):
        monkeypatch.setattr(f"{place}.class_points", slow)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0.2, .* n_components \(now 2\) or n_basis \(now 20\)"):
        model = small(time_limit=0.2, n_basis=20).fit(X, y, executor=executor)
    assert model.stop_reason_ == "time_limit" and model.n_iter_ == 0
    assert small(time_limit=600.0, n_basis=20).fit(X, y, executor=executor).n_iter_ > 0


@pytest.mark.parametrize("executor", [None, Serial()], ids=["in memory", "in blocks"])
def test_many_classes_take_at_most_fifty_dimensions(executor: Any) -> None:
    # K SVMs on rows in proportion to K cost K^2 L^2: with L = K - 1 that is K^4
    X = np.random.default_rng(0).normal(size=(180, 5))
    model = small(n_basis=20).fit(X, np.arange(180) % 60, executor=executor, callback=lambda info: True)
    assert model.n_components_ == 50


def test_max_iter_always_warns(digits: Any) -> None:
    # non-convergence is said, with what to change, whatever verbose is
    X, y = digits[0][:100], digits[1][:100] % 3
    with pytest.warns(ConvergenceWarning, match="MAC stopped at max_iter=2 before converging: increase max_iter"):
        model = small(max_iter=2, tol=1e-4).fit(X, y)
    assert model.stop_reason_ == "max_iter" and model.n_iter_ == 2


def test_verbose_prints_a_line_per_iteration(digits: Any, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = digits[0][:60], digits[1][:60] % 3
    model = small(verbose=1).fit(X, y)
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("MAC ") == model.n_iter_ + 1


@pytest.mark.parametrize("init", ["simplex", "random", "pca", "array"])
def test_every_start_learns(digits: Any, init: str) -> None:
    X, y = digits[0][:150], digits[1][:150] % 3
    given: Any = np.eye(3)[y][:, :2] if init == "array" else init
    model = small(init=given, C=3.0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.history_[-1]["nested"] < model.history_[0]["nested"]


def test_the_array_start_is_cut_with_the_rows(digits: Any) -> None:
    # rows of weight zero and rows held out take their starting coordinates with them
    X, y = digits[0][:100], digits[1][:100] % 3
    Z, kept = np.random.default_rng(0).normal(size=(100, 2)) + np.eye(3)[y][:, :2], np.arange(100) % 4 > 0
    zero, removed = small(init=Z).fit(X, y, kept * 1.0), small(init=Z[kept]).fit(X[kept], y[kept])
    assert gap(zero, removed, X) == 0.0
    with_early = small(init=Z, early_stopping=True, n_iter_no_change=2).fit(X, y)
    assert with_early.history_[0]["valid_error"] is not None


def test_a_failed_fit_leaves_the_estimator_as_it_was() -> None:
    # first nothing fitted, then the last complete fit, whatever the failing data looked like
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    model = LDSVMClassifier(n_basis=10, random_state=0)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.zeros(40))
    with pytest.raises(NotFittedError):
        model.predict(X)
    before = model.fit(X, y).decision_function(X)
    with pytest.raises(ValueError, match="one class"):
        model.fit(rng.normal(size=(40, 5)), np.zeros(40))
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize(
    "change",
    [{"map": "linear"}, {"n_basis": 7}, {"centers": "random"}, {"gamma": 0.5}, {"multi_class": "ovo"}],
    ids=lambda change: next(iter(change)),
)
def test_a_warm_start_does_not_outlive_its_basis_or_svms(change: dict[str, Any]) -> None:
    # other basis or SVMs: the same as a fit from nothing
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 4
    model = LDSVMClassifier(n_basis=10, gamma=0.1, tol=0.1, warm_start=True, random_state=0).fit(X, y)
    again = model.set_params(**change).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(again, clone(model).fit(X, y).decision_function(X))
