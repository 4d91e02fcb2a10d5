"""Which results on the disk are believed: complete ones, of the data at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ldsvm.experiment import outcome, results
from ldsvm.experiment.judge import Score
from ldsvm.experiment.outcome import Outcome, split_folder
from ldsvm.experiment.results import Result

SCORE = Score(0.1, 0.05, 0.2, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]])
RESULT = Result("p", "m", "linear_svm", [], params={"C": 1.0}, train_s=0.1, train_alone_s=0.2, score=SCORE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two splits of one method, of the data "one" and "two"."""
    for i, data in enumerate(("one", "two")):
        results.write(replace(RESULT, split=i, data=data), split_folder(tmp_path / "m", i))
    return tmp_path / "m"


def test_complete_results_are_read(folder: Path) -> None:
    found = outcome.read(folder, ["one", "two"])
    assert found is not None and [r.data for r in found.results] == ["one", "two"]


@pytest.mark.parametrize("digests", [["one", "other"], ["two", "one"], ["one", "two", "three"]])
def test_results_of_other_data_or_too_few_are_not(folder: Path, digests: list[str]) -> None:
    assert outcome.read(folder, digests) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"trials": 3', "[" * 100_000])
def test_a_damaged_file_is_named_and_left_out(folder: Path, text: str) -> None:
    (split_folder(folder, 1) / results.FILE).write_text(text)
    with pytest.warns(UserWarning, match=r"split-1/result\.json is left out"):
        assert outcome.read(folder, ["one", "two"]) is None


def test_a_limit_that_was_set_is_no_fault() -> None:
    def failed(reason: str) -> Outcome:
        return Outcome(Path("m"), (replace(RESULT, score=None, failure=reason),))

    assert [failed(r).foreseen for r in ("not run: needs 30 GiB", "stopped: time limit of 5 s", "ValueError: x")] == [
        True, True, False,
    ]  # fmt: skip
    assert [failed(r).verdict for r in ("not run: needs 30 GiB", "ValueError: x")] == ["not run", "failed"]


def test_times_are_medians_and_a_missing_one_is_missing() -> None:
    three = [
        replace(RESULT, split=i, train_alone_s=s, score=replace(SCORE, predict_us=s))
        for i, s in enumerate((3.0, 1.0, 9.0))
    ]
    assert (Outcome(Path("m"), tuple(three)).train_alone_s, Outcome(Path("m"), tuple(three)).predict_us) == (3.0, 3.0)
    assert Outcome(Path("m"), (*three[:2], replace(RESULT, train_alone_s=None))).train_alone_s is None
