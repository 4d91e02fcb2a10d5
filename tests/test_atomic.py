"""One process at a time in a folder, also after one that was killed."""

import subprocess
import sys

import pytest

from ldsvm.atomic import alone

OTHER = """
import sys, time
from pathlib import Path
from ldsvm.atomic import alone
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
