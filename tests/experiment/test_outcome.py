"""Results of several splits as one row: means, medians, and reasons why there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.search.failure import Failure, Kind

SCORE = Score(0.1, 0.05, 0.2, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]])
RESULT = Result("p", "m", "linear_svm", [], params={"C": 1.0}, train_s=0.1, train_alone_s=0.2, score=SCORE)


@pytest.mark.parametrize("sentence", ["", "not run: x", "stopped: time limit of 5 s", "ValueError: x", "other words"])
def test_a_limit_that_was_set_is_no_fault_whatever_the_words(sentence: str) -> None:
    said = {}
    for kind in Kind:
        outcome = Outcome(Path("m"), (RESULT, replace(RESULT, split=1, score=None, failure=Failure(kind, sentence))))
        assert outcome.failure == f"{sentence} (split 1, 1 of 2 failed)"
        said[kind] = (outcome.foreseen, outcome.verdict)
    assert said == {
        Kind.NOT_RUN: (True, "not run"),
        Kind.TIME_LIMIT: (True, "stopped"),
        Kind.MEMORY_LIMIT: (True, "stopped"),
        Kind.ENDED: (False, "failed"),
        Kind.FAULT: (False, "failed"),
        Kind.ACCIDENT: (False, "failed"),
    }
    fine = Outcome(Path("m"), (RESULT,))
    assert (fine.failure, fine.foreseen) == (None, False)


def test_times_are_medians_and_a_missing_one_is_missing() -> None:
    three = [
        replace(RESULT, split=i, train_alone_s=s, score=replace(SCORE, predict_us=s))
        for i, s in enumerate((3.0, 1.0, 9.0))
    ]
    assert (Outcome(Path("m"), tuple(three)).train_alone_s, Outcome(Path("m"), tuple(three)).predict_us) == (3.0, 3.0)
    assert Outcome(Path("m"), (*three[:2], replace(RESULT, train_alone_s=None))).train_alone_s is None
