"""`RelevanceScaler`: its derivatives, what it finds, and where it leaves the inputs alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from skops.io import dumps

from ldsvm import LDSVMClassifier, RelevanceScaler
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.features import describe, fit_transform, pipeline, transform
from ldsvm.datasets.relevance import PENALTY, RIDGE, _codes, _Network
from ldsvm.datasets.steps import parse
from ldsvm.experiment.storing import loads


def product(N: int, D: int = 10, seed: int = 0) -> tuple[Any, Any]:
    """Rows whose classes depend on the first two inputs only."""
    X = np.random.default_rng(seed).normal(size=(N, D))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@parametrize_with_checks([RelevanceScaler(max_iter=5, random_state=0)])  # type: ignore[untyped-decorator]
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_value_is_that_of_its_definition_and_the_derivatives_are_its_differences() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    network = _Network(x, _codes(y), np.random.RandomState(0))
    at = network.start()[0] + 0.1 * rng.normal(size=network.start()[0].size)
    center, width, logs = network.parts(at)
    apart = np.exp(logs) * (x[:, None] - center[None])
    Phi, Z = np.exp(-np.exp(width) * np.square(apart).sum(axis=2)), _codes(y)
    ridge = RIDGE + 1e-6 * np.sum(Phi**2) / len(center)
    W = np.linalg.solve(Phi.T @ Phi + ridge * np.eye(len(center)), Phi.T @ Z)
    value = 0.5 * np.sum((Phi @ W - Z) ** 2) + 0.5 * ridge * np.sum(W**2) + PENALTY * np.sum(logs**2)
    found, slope = network(at)
    assert found == pytest.approx(value, rel=1e-5)
    parts = {"centres": slice(0, center.size), "widths": slice(center.size, -3), "factors": slice(-3, None)}
    for name, part in parts.items():
        step = np.zeros(at.size)
        step[part] = rng.normal(size=step[part].size)
        ends = [network(at + sign * 0.02 * step)[0] for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 0.04 == pytest.approx(float(slope @ step), rel=0.02, abs=0.01), name


@pytest.mark.slow
def test_inputs_that_decide_get_larger_factors_and_a_kernel_errs_less_with_them() -> None:
    (X, y), (X_test, y_test) = product(500), product(2_000, seed=1)
    scaler = RelevanceScaler(random_state=0).fit(X, y)
    assert scaler.power_ > 0 and scaler.scale_[:2].min() > 1.5 > 1 > scaler.scale_[2:].max()
    plain, scaled = (model.fit(X, y).score(X_test, y_test) for model in (SVC(), make_pipeline(scaler, SVC())))
    assert scaled > plain + 0.03
    ours = make_pipeline(scaler, LDSVMClassifier(n_basis=100, random_state=0)).fit(X, y)
    assert ours.score(X_test, y_test) > plain + 0.03


@pytest.mark.slow
def test_where_all_inputs_count_alike_or_none_does_little_is_changed() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    noise = RelevanceScaler(random_state=0).fit(rng.normal(size=(400, 6)), y)
    assert noise.power_ == 0
    assert_array_equal(noise.scale_, np.ones(6))
    alike = RelevanceScaler(random_state=0).fit(rng.normal(size=(400, 6)) + 1.2 * y[:, None], y)
    assert alike.scale_.min() > 0.6 and alike.scale_.max() < 1.6


def test_the_mean_variance_stays_and_so_does_the_precision() -> None:
    X, y = product(300)
    found = RelevanceScaler(random_state=0).fit(X, y)
    assert np.var(found.transform(X), axis=0).mean() == pytest.approx(np.var(X, axis=0).mean())
    assert_allclose(found.transform(X), X * found.scale_)
    assert found.transform(X.astype(np.float32)).dtype == np.float32
    assert list(found.get_feature_names_out(list("abcdefghij"))) == list("abcdefghij")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_and_an_offset_and_a_unit_change_nothing() -> None:
    X, y = product(300)
    first, again = (RelevanceScaler(random_state=0).fit(X, y).scale_ for _ in range(2))
    assert_array_equal(first, again)
    moved = RelevanceScaler(random_state=0).fit(1e-3 * X + 5.0, y)
    assert_allclose(moved.scale_, first, rtol=1e-3)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((40, 3)), np.repeat([0, 1], 20)),
        (np.eye(40), np.zeros(40)),
        (np.eye(40), np.repeat(np.arange(20), 2)),
        (np.arange(12.0).reshape(6, 2), np.repeat(["a", "b"], 3)),
        (1e300 * np.random.default_rng(0).normal(size=(40, 2)), np.repeat([0, 1], 20)),
        (1e-300 * np.random.default_rng(0).normal(size=(40, 2)), np.repeat([0, 1], 20)),
    ],
    ids=["constant", "one class", "a class for two rows", "few", "huge", "tiny"],
)
def test_hard_inputs_give_finite_factors(X: Any, y: Any) -> None:
    found = RelevanceScaler(random_state=0).fit(X, y)
    assert np.isfinite(found.scale_).all() and (found.scale_ > 0).all() and np.isfinite(found.transform(X)).all()


@pytest.mark.parametrize("max_iter", [0, 2.5, "many"])
def test_max_iter_is_checked(max_iter: Any) -> None:
    with pytest.raises(ValueError, match=r"^max_iter is .*; allowed: a whole number of at least 1\.$"):
        RelevanceScaler(max_iter=max_iter).fit(*product(30))


@pytest.mark.slow
def test_the_step_of_an_experiment() -> None:
    X, y = product(300)
    pipe = pipeline(parse(["scale", "relevance"]), kind="dense", missing="refuse", seed=3)
    Z = fit_transform(pipe, X, y=y.astype(str))
    scaler = RelevanceScaler(random_state=3).fit(StandardScaler().fit_transform(X.astype(np.float32)), y)
    assert Z.dtype == np.float32 and describe(pipe)[1].startswith("relevance: 10 columns, factors from 0.")
    assert_allclose(Z, transform(pipe, X))
    assert_allclose(pipe[-1].scale_, scaler.scale_, rtol=1e-4)
    assert_array_equal(transform(loads(dumps(pipe)), X), transform(pipe, X))
    with pytest.raises(
        DataError, match=r"^features\.relevance needs dense numbers, but the inputs are sparse; allowed"
    ):
        pipeline(parse(["relevance"]), kind="sparse", missing="refuse", seed=0)
    with pytest.raises(DataError, match=r"^features\.relevance\.max_iter is 0; allowed: a whole number of at least 1"):
        parse([{"relevance": {"max_iter": 0}}])
