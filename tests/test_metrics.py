"""Metrics against scikit-learn's own functions, counts by hand, and intervals with known widths."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ldsvm.datasets import DataError, transformers
from ldsvm.known_answers import KnownAnswers
from ldsvm.metrics import OURS, Answers, Undefined, answers_of, measure, metric, reliability

BINARY = ["balanced_accuracy", "roc_auc", "log_loss", "f1_macro", "average_precision", "brier", "ece", "f1"]


def fitted(n_classes: int, names: bool = True) -> tuple[LogisticRegression, np.ndarray, np.ndarray]:
    X, y = make_classification(
        400, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=0, class_sep=0.7
    )
    y = np.array(["no", "yes", "other"])[y] if names else y
    return LogisticRegression().fit(X[:200], y[:200]), X[200:], y[200:]


def test_each_metric_is_scikit_learns_number_also_for_labels_that_are_words() -> None:
    model, X, y = fitted(2)
    answers, p, said = answers_of(model, X, y), model.predict_proba(X)[:, 1], model.predict(X)
    wanted = {
        "balanced_accuracy": theirs.balanced_accuracy_score(y, said),
        "roc_auc": theirs.roc_auc_score(y, p),
        "log_loss": theirs.log_loss(y, model.predict_proba(X)),
        "f1_macro": theirs.f1_score(y, said, average="macro"),
        "f1": theirs.f1_score(y, said, pos_label="yes"),
        "average_precision": theirs.average_precision_score(y, p, pos_label="yes"),
        "brier": theirs.brier_score_loss(y, p, pos_label="yes"),
        "error": 1 - model.score(X, y),
    }
    assert {name: metric(name).value(answers) for name in wanted} == pytest.approx(wanted)


def test_several_classes() -> None:
    model, X, y = fitted(3)
    answers, p = answers_of(model, X, y), model.predict_proba(X)
    wanted = {
        "log_loss": theirs.log_loss(y, p),
        "brier": theirs.brier_score_loss(y, p, scale_by_half=False),
        "roc_auc_ovr": theirs.roc_auc_score(y, p, multi_class="ovr"),
    }
    assert {name: metric(name).value(answers) for name in wanted} == pytest.approx(wanted)
    found = measure(["roc_auc", "f1"], answers, 0, resamples=2)
    assert found["roc_auc"].value is None and "roc_auc_ovr" in str(found["roc_auc"].reason)
    assert found["f1"].value is None and "_macro" in str(found["f1"].reason)


def test_ece_by_hand() -> None:
    # two bins: confidence 0.9 with 3 of 4 right, and 0.6 with 1 of 1 right: (4 * 0.15 + 1 * 0.4) / 5
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.4, 0.6]])
    answers = Answers(np.array([0, 1]), np.array([0, 0, 0, 1, 1]), p.argmax(axis=1), p)
    assert metric("ece").value(answers) == pytest.approx(0.2)
    np.testing.assert_allclose(reliability(answers), [[0.6, 1.0, 1], [0.9, 0.75, 4]])


@pytest.mark.slow
def test_a_method_without_probabilities_has_a_reason_and_the_rest() -> None:
    _, X, y = fitted(2)
    answers = answers_of(LinearSVC().fit(X, y), X, y)
    found = measure(BINARY, answers, 0, resamples=20)
    without = {name for name, one in found.items() if one.value is None}
    assert without == {"log_loss", "brier", "ece"}  # decision values are enough for the curves' areas
    assert {found[name].reason for name in without} == {"the method gives no probabilities"}
    neg = measure(["neg_log_loss"], answers, 0, resamples=2)["neg_log_loss"]
    assert neg.value is None and neg.reason == "the method gives no probabilities"


def test_a_class_that_the_model_does_not_know_breaks_nothing() -> None:
    model, X, y = fitted(2)
    answers = answers_of(model, X, np.where(np.arange(len(y)) < 5, "zebra", y))
    found = measure(["log_loss", "brier", "ece", "balanced_accuracy"], answers, 0, resamples=20)
    assert all(one.value is not None for one in found.values())
    assert metric("error").value(answers) >= 5 / len(y)


def test_less_is_better_is_known_in_one_place() -> None:
    assert all(metric(name).less and metric(name).loss(0.3) == 0.3 for name in OURS)
    assert metric("roc_auc").loss(0.9) == -0.9


@pytest.mark.slow
def test_the_bootstrap_interval_is_that_of_a_mean_and_seeded() -> None:
    # of an error of 20 % of 400 rows the standard deviation is 2 %
    codes = np.zeros(400, dtype=int)
    answers = Answers(np.array([0, 1]), codes, (np.arange(400) % 5 == 0).astype(int))
    found, again = (measure(["accuracy"], answers, 3, resamples=300) for _ in range(2))
    assert found == again != measure(["accuracy"], answers, 4, resamples=300)
    low, high = found["accuracy"].low, found["accuracy"].high
    assert low is not None and high is not None
    assert (high - low) / 2 == pytest.approx(1.96 * 0.02, rel=0.2)


def test_a_metric_by_import_path_sees_labels_and_needs_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user_metric.py").write_text(
        "from sklearn.metrics import make_scorer, brier_score_loss\n"
        "def found(true, said):\n    return float(((true == 'yes') & (said == 'yes')).sum())\n"
        "scorer = make_scorer(found)\nnumber = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "user_metric", raising=False)
    monkeypatch.setenv(transformers.LIST, "")
    with pytest.raises(DataError, match=r"metrics.user_metric.found is not allowed here"):
        metric("user_metric.found")
    transformers.permit(["user_metric.found", "user_metric.scorer", "user_metric.number"])
    model, X, y = fitted(2)
    answers, by_hand = answers_of(model, X, y), np.sum((y == "yes") & (model.predict(X) == "yes"))
    assert metric("user_metric.found").value(answers) == metric("user_metric.scorer").value(answers) == by_hand
    with pytest.raises(DataError, match="is not a function"):
        metric("user_metric.number")


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(DataError, match=r'metric "roc_acu" is unknown \(did you mean "roc_auc"'):
        metric("roc_acu")


def test_intervals_of_means_are_those_of_the_metric_on_each_resample() -> None:
    model, X, y = fitted(3)
    answers, rng = answers_of(model, X, y), np.random.default_rng(5)
    drawn = [answers.take(rng.integers(len(y), size=len(y))) for _ in range(50)]
    found = measure(["error", "log_loss", "brier", "ece"], answers, 5, resamples=50)
    for name, one in found.items():
        wanted = np.percentile([metric(name).value(again) for again in drawn], [2.5, 97.5])
        np.testing.assert_allclose([one.low, one.high], wanted, rtol=1e-12)


def test_the_area_by_ranks_is_scikit_learns_with_ties_resamples_and_without_values() -> None:
    model, X, y = fitted(2)
    answers, scorer = answers_of(model, X, y), theirs.get_scorer("roc_auc")
    tied = replace(answers, decisions=None, probabilities=np.round(answers.needed, 1))
    rng = np.random.default_rng(0)
    for one in (answers, tied, *(tied.take(rng.integers(200, size=30)) for _ in range(20))):
        known = KnownAnswers(np.arange(2), one.predicted, one.probabilities, one.decisions)
        assert metric("roc_auc").value(one) == pytest.approx(scorer(known, np.arange(len(one)), one.codes), abs=1e-14)
    with pytest.raises(Undefined, match="not defined on these rows"):
        metric("roc_auc").value(answers.take(np.flatnonzero(answers.codes == 1)))
    with pytest.raises(Undefined, match="neither probabilities nor decision values"):
        metric("roc_auc").value(replace(answers, decisions=None, probabilities=None))
