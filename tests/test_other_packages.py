"""What scikit-learn, MAPIE, crepes and polars do with a classifier works on ours, unchanged."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import TunedThresholdClassifierCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ldsvm import LDSVMClassifier


def rows(classes: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(600, 6, n_informative=4, n_redundant=0, n_classes=classes, class_sep=1.5, random_state=0)


def model(**params: Any) -> LDSVMClassifier:
    return LDSVMClassifier(n_basis=40, random_state=0, n_jobs=1, **params)


@pytest.fixture(scope="module")
def peers(two: Any, three: Any) -> list[CalibratedClassifierCV]:
    """Classifiers of scikit-learn's for the same rows."""
    return [CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y) for _, X, y in (two, three)]


@pytest.fixture(scope="module")
def two() -> tuple[LDSVMClassifier, np.ndarray, np.ndarray]:
    X, y = rows(2)
    return model().fit(X[:400], y[:400]), X[400:], y[400:]


@pytest.fixture(scope="module")
def three() -> tuple[LDSVMClassifier, np.ndarray, np.ndarray]:
    X, y = rows(3)
    return model().fit(X[:400], y[:400]), X[400:], y[400:]


@pytest.mark.parametrize("name", get_scorer_names())
def test_every_scorer_takes_ours_where_it_takes_scikit_learns(name: str, peers: Any, two: Any, three: Any) -> None:
    for peer, (fitted, X, y) in zip(peers, (two, three), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = get_scorer(name)(peer, X, y)
            except (ValueError, AttributeError, TypeError):
                continue  # not for labels like these, whosever they are
            found = get_scorer(name)(fitted, X, y)
        assert np.isfinite(found) == np.isfinite(wanted)


@pytest.mark.slow
def test_scikit_learns_own_wrappers(two: Any) -> None:
    fitted, X, y = two
    tuned = TunedThresholdClassifierCV(model(), scoring="balanced_accuracy", cv=3).fit(X, y)
    assert 0 < tuned.best_threshold_ < 1 and tuned.score(X, y) > 0.85
    found = permutation_importance(fitted, X, y, n_repeats=3, random_state=0, scoring="neg_log_loss")
    assert found.importances_mean.max() > 10 * abs(found.importances_mean.min())  # two of the columns are noise
    sigmoid = CalibratedClassifierCV(model(calibration=None), ensemble=False, cv=3).fit(X, y)
    np.testing.assert_allclose(sigmoid.predict_proba(X).sum(axis=1), 1.0)


def test_weights_are_routed(two: Any) -> None:
    _, X, y = two
    weight = np.where(y == 1, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        ours = model().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ours)
        routed = pipe.fit(X, y, sample_weight=weight)
        scores = cross_validate(pipe, X, y, cv=2, params={"sample_weight": weight}, error_score="raise")
    direct = model().fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_array_equal(routed[-1].latent_coef_, direct.latent_coef_)
    assert scores["test_score"].min() > 0.8


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_coordinates_as_a_table(package: str, three: Any) -> None:
    _, X, y = three
    fitted = model().set_output(transform=package).fit(X, y)
    found = fitted.transform(X)
    assert type(found).__module__.split(".")[0] == package
    assert list(found.columns) == fitted.get_feature_names_out().tolist() and found.shape == (len(X), 2)


def test_mapies_sets_have_their_coverage(three: Any) -> None:
    from mapie.classification import SplitConformalClassifier

    fitted, X, y = three
    sets = SplitConformalClassifier(fitted, confidence_level=0.9, prefit=True).conformalize(X[:100], y[:100])
    _, found = sets.predict_set(X[100:])
    covered = found[np.arange(100), y[100:], 0].mean()
    assert 0.8 <= covered <= 1 and found.sum(axis=1).mean() < 2  # 0.9 but for chance, and smaller than all classes


def test_crepes_p_values_have_their_level(three: Any) -> None:
    from crepes import WrapClassifier

    fitted, X, y = three
    wrapped = WrapClassifier(fitted)
    wrapped.calibrate(X[:100], y[:100], seed=0)
    p_values = wrapped.predict_p(X[100:], all_classes=True, seed=0)
    assert 0.8 <= np.mean(p_values[np.arange(100), y[100:]] > 0.1) <= 1  # 0.9 but for chance
