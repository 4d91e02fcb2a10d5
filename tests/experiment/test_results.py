"""Results on disk: what was written is read back, and a failure leaves the older result alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldsvm.experiment import results
from ldsvm.experiment.judge import Score
from ldsvm.experiment.results import Result
from ldsvm.experiment.trial import Trial

SCORE = Score(0.1, 0.05, 0.2, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]])
RESULT = Result(
    "p", "m", "linear_svm", [Trial({"C": 1.0}, 0, valid_error=0.2)], 0, "abc", {"C": 1.0}, 0.2, 0.1, 0.2, 1.0, SCORE
)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    folder = results.write(RESULT, tmp_path / "m")
    assert results.read(folder) == RESULT


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
