"""Which process a tracking run belongs to, to find runs whose process has died."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

HOST, PID = "ldsvm.host", "ldsvm.pid"
BORN = "ldsvm.born"  # in a container that starts again the same numbers come again too


def tags() -> dict[str, str]:
    """Return the tags that name this process."""
    return {HOST: socket.gethostname(), PID: str(os.getpid()), BORN: _born(os.getpid())}


def alive(tags: Mapping[str, str]) -> bool:
    """Return whether the process that the tags of a run of this machine name still runs."""
    pid = int(tags.get(PID, 0))
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        pass
    return tags.get(BORN, "") in ("", _born(pid))


def _born(pid: int) -> str:
    """Return when a process began, in ticks of the clock since the system did; "" where /proc does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
