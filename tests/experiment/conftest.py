"""Processes that other processes start: which are there, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def living(sessions: set[int]) -> list[str]:
    """Names of the living processes of these sessions, less two idle helpers of Ray that see its end a minute later."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, facts = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, _, _, session = facts.split()[:4]
        if int(session) in sessions and state != "Z":
            found.append(name.partition("(")[2])
    return [name for name in found if name not in ("ray::DashboardA", "ray::RuntimeEnv")]


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition comes true within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.05)
    return condition()
