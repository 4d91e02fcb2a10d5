"""The key executor of a method: how it is fitted over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field, model_validator
from scipy.sparse import issparse

from ldsvm.blocks import OnRay, Serial, Threads
from ldsvm.blocks.connection import Connection
from ldsvm.blocks.inputs import KEPT
from ldsvm.blocks.row_blocks import RowBlocks
from ldsvm.blocks.source import ROWS
from ldsvm.methods.memory import NotRun
from ldsvm.methods.memory_limit import MIB, available

WORKERS = 2

Report = Callable[[str], object]


class ExecutorConfig(BaseModel, frozen=True, extra="forbid"):
    """How a method is fitted over blocks of rows, which are read from files and never held in memory all at once.

    kind: serial (one block after the other), threads (several at a time), or ray (processes on this machine or on a
    cluster whose hosts have `paths.cache` under the same path; features of large tables are computed there too).
    workers: number of threads or of Ray's processes (default: 2).
    address: host:port of the head of a running Ray cluster, or auto; None starts one on this machine for each fit.
    threads: of each of Ray's workers (default: 1); the other kinds use n_jobs.
    memory_mib: memory in MiB in which all workers together may keep rows and features. None: half of the free memory,
    or of limits.fit_mib, which does not apply on Ray.
    rows: number of rows of a block.
    """

    kind: Literal["serial", "threads", "ray"]
    workers: int | None = Field(default=None, ge=1, le=1024)
    address: str | None = None
    threads: int | None = Field(default=None, ge=1)
    memory_mib: float | None = Field(default=None, ge=0, le=1e9)
    rows: int = Field(default=ROWS, ge=1)

    @model_validator(mode="after")
    def _go_together(self) -> ExecutorConfig:
        if self.kind == "serial" and self.workers is not None:
            raise ValueError("allowed: workers with kind threads or ray only")
        if self.kind != "ray" and (self.address is not None or self.threads is not None):
            raise ValueError("allowed: address and threads with kind ray only")
        return self

    @property
    def serial(self) -> ExecutorConfig:
        """The same blocks, one after the other in this process."""
        return ExecutorConfig(kind="serial", memory_mib=self.memory_mib, rows=self.rows)

    @property
    def starts_ray(self) -> bool:
        """Whether Ray is needed and no address is given."""
        return self.kind == "ray" and self.address is None

    @contextmanager
    def joined(self) -> Iterator[ExecutorConfig]:
        """Start Ray on this machine if it is needed and no address is given; yield the settings with its address.

        So it is started once for many fits, and ended properly when one of them fails. Raises ClusterFailed.
        """
        if not self.starts_ray:
            yield self
            return
        threads = self.threads or 1
        connection = Connection(None, (self.workers or WORKERS) * threads, threads)
        connection.open()
        try:
            yield self.model_copy(update={"address": connection.head})
        finally:
            connection.close()

    def facts(self, n: int) -> dict[str, Any]:
        """Return who works on n rows, by name and without what is not known."""
        blocks = -(-n // self.rows)
        workers = 1 if self.kind == "serial" else min(self.workers or WORKERS, blocks)
        place = {} if self.address is None else {"executor_address": self.address}
        return {"executor": self.kind, "workers": workers, **place, "blocks": blocks, "rows_per_block": self.rows}

    def make(self, report: Report) -> Serial | Threads | OnRay:
        """Return the executor. report: gets words on what is done before the first iteration."""
        memory = None if self.memory_mib is None else int(self.memory_mib * MIB)
        if self.kind == "ray":
            return OnRay(self.workers or WORKERS, self.address, self.threads or 1, memory, report)
        if memory is None and (free := available()) is not None:
            memory = int(KEPT * free)
        return Serial(memory, report) if self.kind == "serial" else Threads(self.workers or WORKERS, memory, report)

    def blocks(self, X: Any, y: Any) -> RowBlocks:
        """Return rows as blocks: of a mapped array (N, D) the file's name and row numbers, with labels y (N,)."""
        if issparse(X):
            raise NotRun(
                "not run: sparse features cannot be divided into blocks of rows; leave out executor, or add pca to the "
                "features."
            )
        if isinstance(X, np.memmap):
            assert X.filename is not None
            return RowBlocks.mapped(Path(X.filename), y, self.rows)
        parts = [slice(start, start + self.rows) for start in range(0, len(y), self.rows)]
        return RowBlocks.arrays([(X[part], y[part]) for part in parts])
