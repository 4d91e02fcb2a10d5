"""The machines of a Ray cluster as it lists them: whether somebody answers, and room for what is to run. No Ray."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import Any

KNOCK_SECONDS = 5.0  # Ray itself takes minutes to find that nobody answers
Node = dict[str, Any]


def unreachable(address: str) -> str | None:
    """Return one sentence when nobody answers at an address, None when somebody does, or it is "auto"."""
    if address == "auto":
        return None
    if not re.fullmatch(r"[\w.-]+:\d{1,5}", address):
        return f"{address!r} is not the address of a Ray cluster; allowed: host:port of its head, or auto."
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
    except (OSError, OverflowError) as error:
        return f"Ray at {address} cannot be joined: nothing answers there ({error})."
    return None


def too_small(threads: int, nodes: Sequence[Node]) -> str | None:
    """Return one sentence when every job would wait for ever, None when some machine has threads enough.

    Examples
    --------
    >>> too_small(8, [{"Alive": True, "Resources": {"CPU": 4.0}}])
    '8 threads per job, more than any machine of the cluster has; allowed: up to 4.'
    """
    most = max((processors(node) for node in nodes if node["Alive"]), default=0)
    if threads <= most:
        return None
    return f"{threads} threads per job, more than any machine of the cluster has; allowed: up to {most}."


def processors(node: Node) -> int:
    """Return how many processors of a machine Ray may use."""
    return int(node["Resources"].get("CPU", 0))


def slots(threads: int, nodes: Sequence[Node]) -> int:
    """Return how many workers with so many threads the machines of a cluster have processors for.

    Examples
    --------
    >>> slots(2, [{"Alive": True, "Resources": {"CPU": 5.0}}, {"Alive": True, "Resources": {"CPU": 2.0}}])
    3
    """
    return sum(processors(node) // threads for node in nodes if node["Alive"])
