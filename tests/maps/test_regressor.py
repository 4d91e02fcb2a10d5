"""Any scikit-learn regressor as F."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR

from ldsvm import LDSVMClassifier
from ldsvm.maps import Linear
from ldsvm.maps.regressor import Regressor


@pytest.mark.parametrize("L", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_without_intercept_is_the_linear_map(L: int, weighted: bool) -> None:
    # scikit-learn minimises |Z - XW|^2 + a |W|^2: a = 2 lam / mu
    rng = np.random.default_rng(L)
    X, Z, weight = rng.normal(size=(20, 4)), rng.normal(size=(20, L)), rng.uniform(0.5, 2, 20) if weighted else None
    families = Linear(0.3), Regressor(Ridge(alpha=2 * 0.3 / 5.0, fit_intercept=False))
    ours, theirs = (f.prepare(X, weight, np.random.RandomState(0), 1).fit(Z, 5.0)(X) for f in families)
    assert ours.shape == theirs.shape == (20, L)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_the_given_regressor_is_never_fitted_and_penalty_is_its_own() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    given = KernelRidge(kernel="rbf")
    regression = Regressor(given).prepare(X, None, np.random.RandomState(0), 1)
    mapping = regression.fit(X[:, :2].astype(np.float64), 2.0)
    assert not hasattr(given, "dual_coef_") and mapping.penalty == 0.0 and mapping.n_basis == 20
    assert mapping(X).dtype == np.float32 and regression.values(mapping).dtype == np.float64
    np.testing.assert_allclose(regression.elsewhere(X[:3]).values(mapping), regression.values(mapping)[:3], atol=1e-6)


def test_randomness_comes_from_the_state_given() -> None:
    # every F-step refits with the same seed, so that the iterations differ by Z only
    X = np.random.default_rng(0).normal(size=(30, 3))
    forest = Regressor(ExtraTreesRegressor(n_estimators=3))
    regression = forest.prepare(X, None, np.random.RandomState(7), 1)
    again = forest.prepare(X, None, np.random.RandomState(7), 1)
    first = regression.fit(X[:, :1], 2.0)(X[:5] + 0.1)
    for other in (regression.fit(X[:, :1], 2.0), again.fit(X[:, :1], 2.0)):
        np.testing.assert_array_equal(first, other(X[:5] + 0.1))


def test_weights_are_refused_where_the_regressor_takes_none() -> None:
    with pytest.raises(ValueError, match=r"sample_weight cannot be used with map=KNeighborsRegressor\(\)"):
        Regressor(KNeighborsRegressor()).prepare(np.eye(3), np.ones(3), np.random.RandomState(0), 1)


def test_a_regressor_of_one_output_is_refused_by_name() -> None:
    # three classes need two outputs, which SVR does not predict
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
    with pytest.raises(
        ValueError, match=r"map=SVR\(\) could not be fitted to 2 latent dimensions .*MultiOutputRegressor"
    ):
        LDSVMClassifier(map=SVR()).fit(X, y)
