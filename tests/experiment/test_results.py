"""Results on disk: what was written is read back, and a failure leaves the older result alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldsvm.experiment.compare import results
from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.trial import Trial

SCORE = Score(0.1, 0.05, 0.2, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]])
RESULT = Result(
    "p", "m", "linear_svm", [Trial({"C": 1.0}, 0, valid_error=0.2)], 0, "abc", 1.5e9, 3.0, params={"C": 1.0},
    valid_error=0.2, train_s=0.1, train_alone_s=0.2, search_s=1.0, score=SCORE,
)  # fmt: skip


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    folder = results.write(RESULT, tmp_path / "m")
    assert results.read(folder) == results.find(folder) == RESULT
    assert results.find(tmp_path / "other") is None


@pytest.mark.parametrize("kind", Kind)
def test_failures_of_results_and_trials_are_read_back(tmp_path: Path, kind: Kind) -> None:
    failure = Failure(kind, "é, whatever it says")
    failed = Result("p", "m", "linear_svm", [Trial({"C": 1.0}, 0, failure=failure)], failure=failure)
    again = results.read(results.write(failed, tmp_path / "m"))
    assert again == failed and again.failure is not None and again.trials[0].failure is not None
    assert again.failure.kind is again.trials[0].failure.kind is kind


def test_numpy_values_become_plain(tmp_path: Path) -> None:
    row = {"iteration": np.int64(0), "nested": np.float64(1.5)}
    folder = results.write(Result("p", "m", "ldsvm", [], history=[row]), tmp_path / "m")
    assert results.read(folder).history == [{"iteration": 0, "nested": 1.5}]


def test_a_failure_while_writing_leaves_the_older_result_and_nothing_else(tmp_path: Path) -> None:
    results.write(RESULT, tmp_path / "m")

    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        results.write(Result("p", "m", "other", []), tmp_path / "m", fail)
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    assert results.read(tmp_path / "m") == RESULT


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"trials": 3', "[" * 100_000])
def test_a_damaged_file_is_named_and_left_out(tmp_path: Path, text: str) -> None:
    (results.write(RESULT, tmp_path / "m") / results.FILE).write_text(text)
    with pytest.warns(UserWarning, match=r"m/result\.json is left out"):
        assert results.find(tmp_path / "m") is None
    assert results.read(results.write(RESULT, tmp_path / "m")) == RESULT


def test_two_processes_that_write_the_same_result_both_succeed(tmp_path: Path) -> None:
    """Between the removal of the old folder and the arrival of the new one the other may put its own there."""
    other = tmp_path / "other"

    def put(folder: Path) -> None:
        if not other.exists():
            results.write(RESULT, other)
            (tmp_path / "m").mkdir()
            (tmp_path / "m" / "there").write_text("x")

    results.write(RESULT, tmp_path / "m", put)
    assert results.read(tmp_path / "m") == RESULT and not (tmp_path / "m" / "there").exists()
