"""The machines of a Ray cluster as it lists them: whether somebody answers, room for a job, memory for each. No Ray."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import Any

from ldsvm.experiment.memory_limit import MIB, MemoryLimit

KNOCK_SECONDS = 5.0  # Ray itself takes minutes to find that nobody answers
Node = dict[str, Any]


def unreachable(address: str) -> str | None:
    """Return one sentence when nobody answers at an address, None when somebody does, or it is "auto"."""
    if address == "auto":
        return None
    if not re.fullmatch(r"[\w.-]+:\d{1,5}", address):
        return f"{address!r} is no address of a Ray cluster; allowed: host:port of its head, or auto."
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
    except (OSError, OverflowError) as error:
        return f"Ray at {address} cannot be joined: nobody answers there ({error})."
    return None


def too_small(threads: int, nodes: Sequence[Node]) -> str | None:
    """Return one sentence when every job would wait for ever, None when some machine has threads enough.

    Examples
    --------
    >>> too_small(8, [{"Alive": True, "Resources": {"CPU": 4.0}}])
    '8 threads a job: no machine of the cluster has as many; allowed: up to 4.'
    """
    most = max((_threads(node) for node in nodes if node["Alive"]), default=0)
    if threads <= most:
        return None
    return f"{threads} threads a job: no machine of the cluster has as many; allowed: up to {most}."


def shares(workers: int, threads: int, nodes: Sequence[Node]) -> dict[str, MemoryLimit]:
    """Return the limit of one job by machine: what Ray found free there, divided by the jobs it runs at a time.

    Examples
    --------
    >>> node = {"Alive": True, "NodeID": "a", "Resources": {"CPU": 4.0, "memory": 8 * 2.0**30}}
    >>> shares(3, 2, [node])["a"].mib
    4096.0
    """
    found = {}
    for node in nodes:
        free, slots = node["Resources"].get("memory"), min(_threads(node) // threads, workers)
        if node["Alive"] and free and slots:
            found[node["NodeID"]] = MemoryLimit(free / slots // MIB, threads)
    return found


def _threads(node: Node) -> int:
    return int(node["Resources"].get("CPU", 0))
