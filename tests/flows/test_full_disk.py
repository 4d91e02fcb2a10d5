"""A disk that fills up in the middle of a search: a real one of a few megabytes, in a namespace of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


# Both runs happen while the small disk is mounted: nobody outside of the namespace sees it.
SCRIPT = r"""
mount -t tmpfs -o size=80m tmpfs "$PLACE/disk" || exit 9
cp -r "$PLACE/filled" "$PLACE/disk/runs"
run() {
    "$PYTHON" -m flows pipeline tests/flows/tiny.yaml "paths.runs=$PLACE/disk/runs" "paths.cache=$PLACE/cache" \
        'methods.ours.params={max_iter: 40}' 'methods.ours.search.gamma=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]' > "$1" 2>&1
    echo $? > "$1.code"
}
journal="$PLACE/disk/runs/journal/tiny.2.jsonl"
( while [ ! -s "$journal" ] && [ ! -e "$PLACE/full.code" ]; do sleep 0.05; done
  cat /dev/zero > "$PLACE/disk/fill" 2> /dev/null ) &
run "$PLACE/full"
wait
cp "$journal" "$PLACE/before"
find "$PLACE/disk/runs/results" -name result.json > "$PLACE/believed"
rm "$PLACE/disk/fill"
run "$PLACE/again"
cp "$journal" "$PLACE/after"
cp "$PLACE/disk/runs/mlflow.db" "$PLACE/mlflow.db"
"""


@pytest.mark.server
@pytest.mark.skipif(not _may_mount(), reason="needs the right to mount a disk in a namespace of its own")
@pytest.mark.timeout(300)
def test_nothing_half_written_is_believed_and_the_next_run_goes_on(prefect: Any, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    prefect.fill(tmp_path / "filled")
    variables = {**os.environ, "PLACE": str(tmp_path), "PYTHON": sys.executable}
    done = subprocess.run([*MOUNT, SCRIPT], cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    full, again = ((tmp_path / name).read_text("utf-8") for name in ("full", "again"))
    assert [(tmp_path / f"{name}.code").read_text().strip() for name in ("full", "again")] == ["1", "0"], full + again
    last = full.strip().splitlines()[-1]
    assert last.startswith(f"pipeline failed: no space left in {tmp_path}/disk/runs; finished work is kept")
    assert "Traceback" not in full and (tmp_path / "believed").read_text() == ""
    finished = [json.loads(line)["key"] for line in (tmp_path / "before").read_bytes().split(b"\n")[:-1]]
    later = [json.loads(line)["key"] for line in (tmp_path / "after").read_bytes().split(b"\n") if line.startswith(b"{")
             and line.endswith(b"}")]  # fmt: skip
    assert finished and [later.count(key) for key in finished] == [1] * len(finished)
    assert len(set(later)) == 13  # two values of C, six of gamma, and the neighbours
