"""Processes that outlive the command that started them, recognised later by their number and start time."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from flows import ROOT

START_SECONDS = 120.0  # a loaded machine has needed 15; the first start also creates the database
STOP_SECONDS = 20.0  # a flow run has to stop its fits and mark its runs


@dataclass(frozen=True)
class Process:
    """A process and the group that it leads. born: its start time; a later one of that number has another."""

    pid: int
    born: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        state, _, _, born = _stat(self.pid)
        return state != "Z" and born == self.born

    def group(self, mark: str) -> dict[int, int]:
        """Return the processes of the group, each with its parent.

        mark: NAME=value, a variable in the environment of all. When the leader has ended, only processes with it count,
        since another group may have got the number. When another process has the number, the group is empty.
        """
        stats = {int(path.name): _stat(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
        running = {pid: stat for pid, stat in stats.items() if stat[0] != "Z"}
        if self.pid in running and running[self.pid][3] != self.born:
            return {}
        found = {pid: parent for pid, (_, parent, group, _) in running.items() if group == self.pid}
        return found if self.pid in running else {pid: up for pid, up in found.items() if mark in _variables(pid)}

    def end(self, mark: str) -> None:
        """End the group: SIGTERM to the leader's children, such as a worker's flow runs, then to all, then SIGKILL.

        A worker that gets SIGTERM kills its flow runs, which could then not mark their MLflow runs as ended.
        """
        for sign, children in ((signal.SIGTERM, True), (signal.SIGTERM, False), (signal.SIGKILL, False)):
            asked = [pid for pid, parent in self.group(mark).items() if parent == self.pid or not children]
            for pid in asked:
                with suppress(ProcessLookupError):
                    os.kill(pid, sign)
            end = time.monotonic() + STOP_SECONDS
            while not self.group(mark).keys().isdisjoint(asked) and time.monotonic() < end:
                time.sleep(0.1)


def _stat(pid: int) -> tuple[str, int, int, str]:
    """Return state, parent, group and start time of a process; the state is Z when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return "Z", 0, 0, ""
    return fields[0], int(fields[1]), int(fields[2]), fields[19]


def _variables(pid: int) -> list[str]:
    try:
        return os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
    except OSError:  # it has ended, or belongs to another user
        return []


def launch(command: Sequence[str], log: Path) -> Process:
    """Start a Python module as a process that leads a group of its own and outlives us.

    Default signals are restored: the child of a process that ignores them, such as a script in the background, would
    ignore them too.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True, preexec_fn=_default_signals,
        )  # fmt: skip
    child.returncode = 0  # it outlives us, so nothing waits for its exit
    return Process(child.pid, _stat(child.pid)[3])


def _default_signals() -> None:
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.SIG_DFL)


def end_with_parent() -> None:
    """In a new process: let the kernel end it when its parent dies, however that happens (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def free_ports(count: int) -> list[int]:
    """Return so many ports of loopback, all different, on which nothing listens just now."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(probe.getsockname()[1]) for probe in probes]


def await_answer(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers; raise RuntimeError, which names its log, when it has ended or takes too long."""
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{url} did not answer within {START_SECONDS:.0f} s, or its server ended (log: {log})")


def check_port(port: int, variable: str, host: str = "127.0.0.1") -> None:
    """Raise ConfigError, naming the variable or option that chose it, when a port cannot be listened on."""
    from ldsvm.experiment.config.yaml_merge import ConfigError

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise ConfigError(f"{variable} is {port}, which cannot be used ({why}); allowed: a free port.") from None
