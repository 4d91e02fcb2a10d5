"""The memory of the hosts of a Ray cluster, as it lists them. No Ray."""

from __future__ import annotations

from collections.abc import Sequence

from ldsvm.blocks.hosts import Node, processors
from ldsvm.methods.memory_limit import MIB, MemoryLimit


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
        free, slots = node["Resources"].get("memory"), min(processors(node) // threads, workers)
        if node["Alive"] and free and slots:
            found[node["NodeID"]] = MemoryLimit(free / slots // MIB, threads)
    return found
