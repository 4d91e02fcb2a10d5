"""The gate in metrics by name, from the file to the card: on real files and real models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldsvm.experiment.compare import record
from ldsvm.experiment.config.load import ConfigError
from ldsvm.metrics import answers_of, metric
from ldsvm.production import promotion
from ldsvm.report.card import verdict
from tests.production.test_retraining import config, fit, known, place, rows, trained

__all__ = ["place"]  # a fixture
GATE = "production.gate={metric: log_loss, metrics: {balanced_accuracy: {threshold: 0.6}}}"


@pytest.mark.slow
def test_a_challenger_is_promoted_and_refused_by_log_loss(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config(place, GATE, "production.drift.alarm_share=1")
    first = trained(settings, None)
    assert first.verdict.promote and [check.name for check in first.verdict.checks] == ["balanced_accuracy"]
    rows(400, 1, angle=1.0).to_parquet(place / "in" / "1.parquet")
    made = promotion.challenge(settings, known(first))
    fit(made)
    monkeypatch.setattr(promotion, "answers_for", None)  # whoever is asked again breaks
    second = promotion.compare(made)
    assert second.verdict.promote and second.champion is not None
    assert [check.name for check in second.verdict.checks] == [
        "balanced_accuracy", "log_loss better", "randomisation log_loss better"
    ]  # fmt: skip
    assert second.verdict.checks[-1].value == pytest.approx(1e-4)
    text = verdict(second.verdict)
    assert "| holds | log_loss significantly better (paired randomisation test) | enough evidence" in text
    X, y = made.prepared.arrays("test", "original")
    folder = record.place(made.config, made.prepared, made.config.problems[0], "ours")
    kept = record.answers(folder)
    assert kept is not None and second.score.metrics["log_loss"].value == metric("log_loss").value(kept)
    again = answers_of(promotion._challenger(made.config, made.prepared), X, y)
    for name, part in vars(again).items():
        np.testing.assert_array_equal(getattr(kept, name), part)
    undone = promotion.compare(promotion.replace(made, champion=second.score, answers=kept))
    assert undone.verdict.checks[-1].value == 1  # a model is no better than itself
    assert not undone.verdict.promote


@pytest.mark.slow
def test_a_champion_without_probabilities_stays_and_it_is_said(place: Path) -> None:
    bare = METHOD_WITHOUT.format("null")
    first = trained(config(place, bare), None)
    rows(200, 1).to_parquet(place / "in" / "1.parquet")
    second = trained(config(place, METHOD_WITHOUT.format("auto"), GATE), known(first))
    assert second.verdict.sentence.startswith(
        "Refused: the champion has no log_loss (the method gives no probabilities); choose another metric in "
        "production.gate."
    )


METHOD_WITHOUT = (
    "methods.ours={{estimator: ldsvm, params: {{gamma: 0.3, max_iter: 5, n_basis: 10, C: 1, calibration: {}}}}}"
)


def test_settings_of_the_gate_are_checked_and_the_error_changes_no_digest(place: Path) -> None:
    with pytest.raises(ConfigError, match=r'production\.gate\.metric: metric "log_los" is unknown \(did you mean'):
        config(place, "production.gate.metric=log_los")
    with pytest.raises(ConfigError, match=r'production\.gate\.metrics: metric "roc" is unknown'):
        config(place, "production.gate.metrics={roc: {threshold: 1}}")
    with pytest.raises(ConfigError, match=r'"production\.gate\.metrics\.brier\.min_absolute_change" has value -1'):
        config(place, "production.gate.metrics={brier: {min_absolute_change: -1}}")
    plain = promotion.settings_digest(config(place))
    assert plain != promotion.settings_digest(config(place, "production.gate.metric=brier"))
    assert plain == promotion.settings_digest(config(place, "production.gate.metric=error"))
    assert promotion._metrics(config(place, GATE, "metrics=[error, brier]")) == (
        "error", "brier", "log_loss", "balanced_accuracy"
    )  # fmt: skip
