"""One process at a time in a folder, and lines of a file: both also after a process that was killed."""

import subprocess
import sys

import pytest

from ldsvm.atomic import alone, append_line

OTHER = """
import sys, time
from pathlib import Path
from ldsvm.atomic import alone, append_line
with alone(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(100)
"""


@pytest.mark.slow
def test_a_folder_is_for_one_process_and_free_once_that_is_killed(tmp_path):
    folder = tmp_path / "new" / "folder"
    with subprocess.Popen([sys.executable, "-c", OTHER, str(folder)], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"in\n"
            with pytest.raises(TimeoutError), alone(folder, wait=False):
                raise AssertionError("two at a time")
        finally:
            other.kill()
    with alone(folder, wait=False):
        pass


def test_a_line_begins_anew_behind_one_that_was_cut(tmp_path):
    file = tmp_path / "new" / "lines"
    append_line(file, b"one")
    append_line(file, b"two")
    assert file.read_bytes() == b"one\ntwo\n"
    file.write_bytes(b"one\ntw")
    append_line(file, b"three")
    assert file.read_bytes() == b"one\ntw\nthree\n"
    file.write_bytes(b"tw")
    append_line(file, b"three", cut=b" cut")
    assert file.read_bytes() == b"tw cut\nthree\n"
