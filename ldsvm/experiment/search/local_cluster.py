"""Several hosts of a Ray cluster on this machine, for tests. They are processes of their own: Ray is not imported."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ldsvm.blocks.connection import LONGEST, OBJECT_STORE, ClusterFailed

START_SECONDS = 120.0  # of one node on a busy machine
READY = "Ray runtime started."
# On Linux a node ends with whoever started it, also when that is killed: PR_SET_PDEATHSIG stays through exec.
LAUNCH = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.execv(sys.executable, [sys.executable, "-m", "ray.scripts.scripts", "start", *sys.argv[1:]])
"""


class Nodes:
    """A head and further nodes of a Ray cluster on this machine, each with so many processors, as a context.

    address: what `Cluster` joins, while the context lasts. environment: what a process that joins needs in its own,
    since nobody else may. Each node is a process group of its own; at the end those groups end, and no other Ray.
    Raises ClusterFailed with one sentence when a node does not start.

    Examples
    --------
    >>> nodes = Nodes(2)  # nothing starts before `with nodes:`
    >>> nodes.address.startswith("127.0.0.1:")
    True
    """

    def __init__(self, count: int, processors: int = 1) -> None:
        self.count, self.processors = count, processors
        self.address = f"127.0.0.1:{_free_port()}"
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._folder = Path()
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Nodes:
        base = tempfile.gettempdir()
        self._folder = Path(tempfile.mkdtemp(prefix="ray-", dir=base if len(base) <= LONGEST else "/tmp"))
        head = ["--head", f"--port={self.address.partition(':')[2]}", "--include-dashboard=false"]
        try:
            self._start(*head, f"--temp-dir={self._folder}")
            for _ in range(self.count - 1):
                self._start(f"--address={self.address}")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the nodes, the head last, and remove their files."""
        for node in reversed(self._started):
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)  # asked politely, Ray would take half a minute
            node.wait()
        self._started = []
        if self._folder != Path():
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, *options: str) -> None:
        size = [f"--num-cpus={self.processors}", f"--object-store-memory={OBJECT_STORE}"]
        quiet = ["--dashboard-agent-listen-port=0", "--include-log-monitor=false", "--block"]  # nobody reads the logs
        command = [sys.executable, "-c", LAUNCH, *options, *size, *quiet]
        environment = {**os.environ, **self.environment, "RAY_USAGE_STATS_ENABLED": "0"}
        log = self._folder / f"{len(self._started)}.log"
        with log.open("wb") as file:
            node = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        self._started.append(node)
        end = time.monotonic() + START_SECONDS
        while READY not in (text := log.read_text(encoding="utf-8", errors="replace")):
            if node.poll() is not None or time.monotonic() > end:
                last = " ".join(text.split())[-200:]
                raise ClusterFailed(f"Node {len(self._started)} of {self.count} of Ray did not start ({last}).")
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
