"""A disk that fills up in the middle of a search: a real one of a few megabytes, in a namespace of its own."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOUNT = ["unshare", "--map-root-user", "--mount", "sh", "-c"]


def _may_mount() -> bool:
    try:
        done = subprocess.run([*MOUNT, "mount -t tmpfs tmpfs /tmp"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


# Nobody outside of the namespace sees the small disk, so what it holds in the end is kept elsewhere.
SCRIPT = r"""
mount -t tmpfs -o size=80m tmpfs "$PLACE/disk" || exit 9
cp -r "$PLACE/filled" "$PLACE/disk/runs"
journal="$PLACE/disk/runs/journal/tiny.2.jsonl"
( while [ ! -s "$journal" ] && [ ! -e "$PLACE/full.code" ]; do sleep 0.05; done
  cat /dev/zero > "$PLACE/disk/fill" 2> /dev/null ) &
"$PYTHON" -m flows "$@" > "$PLACE/full" 2>&1
echo $? > "$PLACE/full.code"
wait
cp "$journal" "$PLACE/before"
find "$PLACE/disk/runs/results" -name result.json > "$PLACE/believed"
cp -r "$PLACE/disk/runs" "$PLACE/kept"
"""


@pytest.mark.server
@pytest.mark.skipif(not _may_mount(), reason="needs the right to mount a disk in a namespace of its own")
@pytest.mark.timeout(300)
def test_nothing_half_written_is_believed_and_the_next_run_goes_on(
    prefect: Any, command: Callable[..., tuple[int, str, str]], undrawn: None, tmp_path: Path
) -> None:
    runs = tmp_path / "disk" / "runs"
    runs.parent.mkdir()
    prefect.fill(tmp_path / "filled")
    variables = {**os.environ, "PLACE": str(tmp_path), "PYTHON": sys.executable}
    given = ["pipeline", "tests/flows/tiny.yaml", f"paths.runs={runs}", f"paths.cache={tmp_path / 'cache'}"]
    given += ["methods.ours.params={max_iter: 40}", "methods.ours.search.gamma=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]"]
    script = [*MOUNT, SCRIPT, "sh", *given]
    done = subprocess.run(script, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    full = (tmp_path / "full").read_text("utf-8")
    assert (tmp_path / "full.code").read_text().strip() == "1", full
    last = full.strip().splitlines()[-1]
    assert last.startswith(f"pipeline failed: no space left in {tmp_path}/disk/runs; finished work is kept")
    assert "Traceback" not in full and (tmp_path / "believed").read_text() == ""
    (tmp_path / "kept").rename(runs)
    with closing(sqlite3.connect(runs / "prefect" / "prefect.db")) as database:  # which the next server opens
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    code, _, err = command(*given)
    assert code == 0, err
    finished = [json.loads(line)["key"] for line in (tmp_path / "before").read_bytes().split(b"\n")[:-1]]
    lines = (runs / "journal" / "tiny.2.jsonl").read_bytes().split(b"\n")
    later = [json.loads(line)["key"] for line in lines if line.startswith(b"{") and line.endswith(b"}")]
    assert finished and [later.count(key) for key in finished] == [1] * len(finished)
    assert len(set(later)) == 13  # two values of C, six of gamma, and the neighbours
