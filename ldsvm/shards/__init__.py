"""One fit over blocks of rows: more of them than memory holds, in threads, or on many machines with Ray."""

from ldsvm.shards.actors import OnRay
from ldsvm.shards.source import BlockError, RowBlocks
from ldsvm.shards.teams import Serial, Threads

__all__ = ["BlockError", "OnRay", "RowBlocks", "Serial", "Threads"]
