"""One fit over blocks of rows: more of them than memory holds, in threads, or on many machines with Ray."""

from ldsvm.blocks.actors import OnRay
from ldsvm.blocks.executors import Serial, Threads
from ldsvm.blocks.row_blocks import RowBlocks
from ldsvm.blocks.source import BlockError

__all__ = ["BlockError", "OnRay", "RowBlocks", "Serial", "Threads"]
