"""Results of several splits as one row: means, medians, and reasons why there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result

SCORE = Score(0.1, 0.05, 0.2, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]])
RESULT = Result("p", "m", "linear_svm", [], params={"C": 1.0}, train_s=0.1, train_alone_s=0.2, score=SCORE)


def test_a_limit_that_was_set_is_no_fault() -> None:
    def failed(reason: str) -> Outcome:
        return Outcome(Path("m"), (replace(RESULT, score=None, failure=reason),))

    for reason, verdict in (
        ("not run: needs 30 GiB", "not run"),
        ("stopped: time limit of 5 s", "stopped"),
        ("stopped: memory limit of 5 MiB", "stopped"),
        ("all 12 trials failed, the first: stopped: time limit of 5 s", "stopped"),
    ):
        assert (failed(reason).foreseen, failed(reason).verdict) == (True, verdict)
    for reason in ("ValueError: x", "all 2 trials failed, the first: ValueError: x", "stopped: its process ended"):
        assert (failed(reason).foreseen, failed(reason).verdict) == (False, "failed")


def test_times_are_medians_and_a_missing_one_is_missing() -> None:
    three = [
        replace(RESULT, split=i, train_alone_s=s, score=replace(SCORE, predict_us=s))
        for i, s in enumerate((3.0, 1.0, 9.0))
    ]
    assert (Outcome(Path("m"), tuple(three)).train_alone_s, Outcome(Path("m"), tuple(three)).predict_us) == (3.0, 3.0)
    assert Outcome(Path("m"), (*three[:2], replace(RESULT, train_alone_s=None))).train_alone_s is None
