"""Tables and figures of metrics, from scores that are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldsvm.experiment.compare import results
from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.search.trial import Trial
from ldsvm.metrics import Answers, Measured
from ldsvm.report.metric_tables import metric_rows, names, reasons, standing_in
from ldsvm.report.plotting.answers import MethodAnswers, answer_curves
from ldsvm.report.tables import trial_rows

PLAIN = Score(0.1, 0.05, 0.2, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]])
FOUND = {
    "error": Measured(0.1, 0.05, 0.2),
    "roc_auc": Measured(0.9, 0.85, 0.95),
    "brier": Measured(None, reason="the method gives no probabilities"),
}


def outcome(*metrics: dict[str, Measured]) -> Outcome:
    made = [Result("p", "m", "linear_svm", [], score=replace(PLAIN, metrics=found)) for found in metrics]
    return Outcome(Path(), tuple(made))


def test_cells_have_intervals_and_what_is_missing_has_its_reason() -> None:
    found = [outcome(FOUND)]
    assert metric_rows(found) == (["method", "roc_auc ↑", "brier ↓"], [["m", "0.9000 (0.8500 – 0.9500)", "–"]])
    assert reasons(found) == ["No brier of m: the method gives no probabilities."]
    assert found[0].metrics == {"roc_auc": 0.9, "roc_auc_low": 0.85, "roc_auc_high": 0.95}


def test_thresholds_are_a_column_where_there_are_some(tmp_path: Path) -> None:
    scored = replace(PLAIN, metrics=FOUND, threshold=1 / 6, threshold_of="probability")
    with_one = Outcome(Path(), (Result("p", "m", "linear_svm", [], score=scored),))
    header, rows = metric_rows([with_one, outcome(FOUND)])
    assert header[-1] == "threshold of 1"
    assert [row[-1] for row in rows] == ["probability ≥ 0.1667", "–"]
    assert results.read(results.write(with_one.first, tmp_path / "r")).score == scored


def test_trials_show_the_metric_that_chose_with_its_own_sign() -> None:
    trials = [Trial({"C": 1.0}, 0, 0.1, loss=-0.93), Trial({"C": 2.0}, 1)]
    header, rows = trial_rows(Result("p", "m", "linear_svm", trials), "roc_auc")
    assert header[1:3] == ["chosen by roc_auc ↑", "validation error %"] and [r[1] for r in rows] == ["0.9300", "–"]
    assert all(len(row) == len(header) for row in rows)
    assert "chosen" not in " ".join(trial_rows(Result("p", "m", "linear_svm", trials))[0])


def test_several_splits_have_mean_and_deviation() -> None:
    two = outcome({"roc_auc": Measured(0.8)}, {"roc_auc": Measured(0.9)})
    assert metric_rows([two])[1] == [["m", "0.8500 (std 0.0707)"]]


def test_where_mistakes_cost_the_cost_stands_first_and_in_one_line() -> None:
    found = [outcome(FOUND | {"cost": Measured(0.4)}, FOUND | {"cost": Measured(0.3)})]
    assert names(found) == ["cost", "roc_auc", "brier"]
    assert (standing_in("cost", found), standing_in("brier", found)) == ("m 0.3500", "m –")


def test_the_error_alone_has_no_table() -> None:
    assert names([outcome({"error": FOUND["error"]})]) == []


def test_metrics_survive_the_disk(tmp_path: Path) -> None:
    result = outcome(FOUND).first
    assert results.read(results.write(result, tmp_path / "r")) == result


@pytest.mark.slow
def test_figures_of_two_and_three_classes() -> None:
    rng, shapes = np.random.default_rng(0), []
    for classes in (2, 3):
        p = rng.dirichlet(np.ones(classes), 50)
        said = MethodAnswers("a", Answers(np.arange(classes), rng.integers(classes, size=50), p.argmax(axis=1), p))
        drawing = answer_curves([said], "title")
        assert drawing.png == answer_curves([said], "title").png
        marked = answer_curves([replace(said, marked=True)], "title").png
        assert (marked != drawing.png) is (classes == 2)  # a point on the curves of two classes
        shapes.append(int.from_bytes(drawing.png[16:20], "big"))  # the width
    assert shapes[0] > 2 * shapes[1]  # three panels, and one
