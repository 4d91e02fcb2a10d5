"""Word of a crash: what a real process leaves when it crashes, is killed, or ends well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ldsvm.experiment.search.fault_report import crash, reported

CODE = """
import os, pathlib, sys
from ldsvm.experiment.search.fault_report import reported
with reported(pathlib.Path(sys.argv[1])):
    eval(sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(
    ("act", "code", "word"), [("os.abort()", -6, "aborted"), ("os.kill(os.getpid(), 9)", -9, None), ("None", 0, None)]
)
def test_only_a_crash_is_told(tmp_path: Path, act: str, code: int, word: str | None) -> None:
    file = tmp_path / "word"
    found = subprocess.run([sys.executable, "-c", CODE, str(file), act], capture_output=True, timeout=200)
    assert found.returncode == code, found.stderr
    assert crash(file) == word
    assert file.exists() == (code != 0)


def test_without_the_folder_nothing_is_told_and_nothing_fails(tmp_path: Path) -> None:
    file, done = tmp_path / "elsewhere" / "word", []
    with reported(file):
        done.append(1)
    assert done and crash(file) is None


def test_the_way_of_a_crash_is_in_the_words_of_python(tmp_path: Path) -> None:
    file = tmp_path / "word"
    file.write_text("Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n")
    assert crash(file) == "segmentation fault"
    file.write_text("nothing of the kind\n")
    assert crash(file) is None
