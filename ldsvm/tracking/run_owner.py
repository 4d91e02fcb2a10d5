"""Which process a tracking run belongs to, so that one whose process died can be told from one that goes on."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

HOST, PID = "ldsvm.host", "ldsvm.pid"


def tags() -> dict[str, str]:
    """Return the tags that name this process."""
    return {HOST: socket.gethostname(), PID: str(os.getpid())}


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
        return True
    return True
