"""Ray nodes on this machine: they start, they can be joined, and they end with whoever started them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from ldsvm.blocks.connection import ClusterFailed
from ldsvm.blocks.hosts import unreachable
from ldsvm.experiment.search import local_cluster
from ldsvm.experiment.search.local_cluster import Nodes
from tests.experiment.conftest import living, until

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

DRIVER = """
import time
from ldsvm.experiment.search.local_cluster import Nodes
with Nodes(1) as nodes:
    print(*[node.pid for node in nodes._started], flush=True)
    time.sleep(600)
"""


def test_nodes_answer_while_the_context_lasts_and_nothing_of_them_is_left() -> None:
    with Nodes(2) as cluster:
        sessions = {node.pid for node in cluster._started}
        folder = cluster._folder
        assert unreachable(cluster.address) is None
        assert len([name for name in living(sessions) if "raylet" in name]) == 2
    # only the first of a node's processes is waited for; the others are killed at the same time, and end soon
    assert until(lambda: "nothing answers there" in (unreachable(cluster.address) or ""), 10)
    assert until(lambda: living(sessions) == [], 10) and not folder.exists()


def test_nodes_end_when_their_driver_is_killed() -> None:
    short = tempfile.mkdtemp(prefix="t")  # where Ray may leave its files when it is killed
    env = {**os.environ, "TMPDIR": short}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True, env=env)
    assert driver.stdout is not None
    sessions = {int(pid) for pid in driver.stdout.readline().split()}
    assert living(sessions)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    shutil.rmtree(short, ignore_errors=True)
    assert until(lambda: not living(sessions), 30), living(sessions)


def test_a_node_that_does_not_start_is_one_sentence_and_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        local_cluster, "LAUNCH", "print('no room', end=' ', flush=True); raise SystemExit('for so much')"
    )
    cluster = Nodes(2)
    with pytest.raises(ClusterFailed, match=r"^Node 1 of 2 of Ray did not start \(no room for so much\)\.$"), cluster:
        pytest.fail("it did not start")
    assert not cluster._folder.exists()
