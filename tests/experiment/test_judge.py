"""The judge against slow counts and published numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from ldsvm.experiment.compare.judge import judge, wilson
from ldsvm.methods import Method, lookup

# The outer two are 0 and z² / (n + z²) and its mirror; the middle one is 1/2 ± z / (2 sqrt(n + z²)).
KNOWN = [
    (0, 10, 0.0, 0.277533),
    (5, 10, 0.236593, 0.763407),
    (10, 10, 0.722467, 1.0),
]


class Fixed(ClassifierMixin, BaseEstimator):
    """Predicts the first input column, and counts how often it is asked."""

    classes_ = np.array([0, 1, 2])
    calls = 0

    def predict(self, X: np.ndarray) -> np.ndarray:
        self.calls += 1
        return X[:, 0].astype(int)


METHOD = Method(
    make=Fixed,
    count=lambda fitted: 7,
    total=lambda fitted: 9,
    arrays=lambda fitted: [np.zeros(3), np.zeros(2, dtype=np.int8)],
)


@pytest.mark.parametrize(("wrong", "n", "low", "high"), KNOWN)
def test_wilson_interval_has_known_values(wrong: int, n: int, low: float, high: float) -> None:
    assert wilson(wrong, n) == pytest.approx((low, high), abs=2e-6)


def test_wilson_limits_solve_their_defining_equation() -> None:
    # At both limits the observed share is z standard deviations (of the limit) away: |p - q| = z sqrt(q (1 - q) / n).
    for limit in wilson(7, 90):
        assert abs(7 / 90 - limit) == pytest.approx(1.959964 * np.sqrt(limit * (1 - limit) / 90), rel=1e-6)


def test_score_equals_a_count_by_hand() -> None:
    true = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 2])
    said = np.array([0, 1, 2, 1, 1, 0, 0, 2, 2, 2])
    score = judge(Fixed(), METHOD, said[:, None], true, repeats=3, n_jobs=1)
    assert (score.n_wrong, score.n_test, score.error) == (4, 10, 0.4)
    assert score.confusion == [[1, 1, 1], [0, 2, 0], [2, 0, 3]]  # not symmetric: rows are the truth
    assert score.class_errors == pytest.approx([2 / 3, 0, 2 / 5])
    assert (score.n_basis, score.n_basis_sum, score.parameter_bytes) == (7, 9, 26)
    assert score.predict_us == score.predict_all_us > 0
    assert score.error_low < 0.4 < score.error_high


def test_sparse_inputs_and_models_are_measured_by_what_they_store() -> None:
    X, y = csr_matrix(np.eye(6, 40, dtype=np.float32)), np.array([0, 1, 2] * 2)
    score = judge(KNeighborsClassifier(1).fit(X, y), lookup("nearest_neighbour"), X, y, repeats=1, n_jobs=1)
    assert score.error == 0
    assert score.parameter_bytes == 6 * (4 + 4) + 7 * 4 + y.nbytes
    assert score.predict_us > 0


def test_speed_is_measured_after_one_prediction_that_warms_up() -> None:
    fitted = Fixed()
    judge(fitted, METHOD, np.zeros((4, 1)), np.zeros(4, dtype=int), repeats=5, n_jobs=1)
    assert fitted.calls == 6


def test_the_clock_runs_on_one_thread_then_on_all_and_leaves_the_model_as_it_was() -> None:
    seen: list[int | None] = []

    class Threaded(KNeighborsClassifier):
        def predict(self, X: np.ndarray) -> np.ndarray:
            seen.append(self.n_jobs)
            return super().predict(X)

    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 2] * 2)
    fitted = Threaded(n_neighbors=1, n_jobs=2).fit(X, y)
    score = judge(fitted, METHOD, X, y, repeats=2, n_jobs=3)
    assert seen == [2, 1, 1, 3, 3]
    assert score.predict_us != score.predict_all_us
    assert fitted.n_jobs == 2


def test_confusion_equals_two_loops() -> None:
    rng = np.random.default_rng(0)
    classes, true, said = np.array([2, 5, 9]), *rng.choice([2, 5, 9], size=(2, 50))
    slow = [[sum((t == a) and (s == b) for t, s in zip(true, said, strict=True)) for b in classes] for a in classes]
    fitted = Fixed()
    fitted.classes_ = classes
    assert judge(fitted, METHOD, said[:, None], true, repeats=1, n_jobs=1).confusion == slow
