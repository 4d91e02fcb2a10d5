"""A classifier that says what none can mean is refused in one sentence, before a wrong number comes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from ldsvm.experiment.compare.judge import judge
from ldsvm.experiment.search.trial import Data
from ldsvm.methods import lookup
from ldsvm.metrics import Answers, Costs, Undefined, answers_of, metric
from ldsvm.model_answers import StrangeAnswers, labels_of

X, Y = np.arange(6.0)[:, None], np.array(["no", "yes"] * 3)
RIGHT = np.array([[0.7, 0.3], [0.2, 0.8]] * 3)


class Says(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Knows two classes, and says what it was made with."""

    def __init__(self, labels: Any = Y, classes: Any = ("no", "yes"), probabilities: Any = None) -> None:
        self.labels, self.probabilities = labels, probabilities
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict(self, X: Any) -> Any:
        return self.labels

    def predict_proba(self, X: Any) -> Any:
        if self.probabilities is None:
            raise NotImplementedError
        return self.probabilities


STRANGE = [
    ({"labels": Y[:, None]}, r"^Says\.predict gives an array of shape \(6, 1\) for 6 rows; allowed: one label"),
    ({"labels": "yes"}, r"of shape \(\) for 6 rows"),
    ({"labels": Y[:-1]}, r"of shape \(5,\) for 6 rows"),
    ({"labels": np.array(["other"] * 6)}, r"gives the label 'other'; allowed: its classes_, 'no', 'yes'\.$"),
    ({"labels": np.array([0, 1] * 3)}, "gives the label 0; allowed"),
    ({"classes": None}, "Says has no classes_ after fit"),
    ({"classes": ["yes", "no"]}, r"has classes_ \['yes', 'no'\]; allowed: each label of y once, sorted"),
]


@pytest.mark.parametrize(("changes", "said"), STRANGE)
def test_labels_that_none_can_mean_give_no_error_rate(changes: dict[str, Any], said: str) -> None:
    model = Says(**changes)
    with pytest.raises(StrangeAnswers, match=said):
        Data(X, Y, X, Y).valid_error(model)
    with pytest.raises(StrangeAnswers, match=said):
        judge(model, lookup("linear_svm"), X, Y, repeats=1, n_jobs=1)
    with pytest.raises(StrangeAnswers, match=said):
        answers_of(model, X, Y)


def test_labels_in_any_container_are_labels() -> None:
    for labels in (Y, Y.tolist(), Y.astype(object)):
        assert labels_of(Says(labels), X).tolist() == Y.tolist()
    assert labels_of(Says(np.array([0.0, 1.0] * 3), [0, 1]), X).tolist() == [0, 1] * 3
    assert Data(X, Y, X, Y).valid_error(Says(Y.tolist())) == 0


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        (RIGHT[:, 1], r"predict_proba gives an array of shape \(6,\); allowed: \(6, 2\)"),
        (RIGHT[:3], r"of shape \(3, 2\)"),
        (10 * RIGHT, r"gives \[7\.0, 3\.0\] in row 0; allowed: numbers that are not negative and sum to 1"),
        (np.array([[1.5, -0.5]] * 6), "in row 0"),
    ],
)
def test_probabilities_that_are_none_measure_nothing(probabilities: Any, said: str) -> None:
    with pytest.raises(StrangeAnswers, match=said):
        answers_of(Says(probabilities=probabilities), X, Y)


def test_probabilities_that_are_no_numbers_leave_the_other_metrics() -> None:
    found = answers_of(Says(probabilities=np.full((6, 2), np.nan)), X, Y)
    assert metric("error").value(found) == 0
    with pytest.raises(Undefined):
        metric("log_loss").value(found)


def test_large_costs_have_the_threshold_of_their_ratio() -> None:
    for factor in (1e308, 1.0, 1e-300):
        assert Costs(0.5 * factor, 1.5 * factor).threshold == pytest.approx(0.75)


@pytest.mark.parametrize(("said", "shown"), [(np.ones(1), "array"), ("0.5", "'0.5'"), (1j, "1j")])
def test_a_metric_of_the_users_is_a_number(said: Any, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDSVM_TRANSFORMERS", "tests.test_model_answers.given")
    monkeypatch.setitem(globals(), "given", lambda true, predicted: said)
    answers = Answers(np.array(["no", "yes"]), np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(Undefined, match=rf"it gives .*{shown}.*; allowed: a number"):
        metric("tests.test_model_answers.given").value(answers)
