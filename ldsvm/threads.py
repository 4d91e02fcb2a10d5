"""How many threads to use, holding those of BLAS and OpenMP to a number, and threads of our own over blocks of rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController, threadpool_limits

T = TypeVar("T")

_forked = threading.Event()  # set in a process that began as a fork of one with this module
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked.set)

TINY, SMALL = 2e5, 5e7  # multiplications: some microseconds, and some milliseconds, on one thread


def n_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``: None for the cores of this process, or as few as BLAS may use; -1 for all; n itself."""
    if n_jobs is not None:
        return int(effective_n_jobs(n_jobs))
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    found = [int(library["num_threads"]) for library in _controller().info() if library["user_api"] == "blas"]
    return min([int(cpu_count()), *found, *([int(allowed)] if allowed.isdigit() and int(allowed) > 0 else [])])


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries: milliseconds, so once


def limit(n_jobs: int | None) -> AbstractContextManager[Any]:
    """Keep BLAS and OpenMP within ``n_jobs`` threads; None leaves them as the process has them."""
    if n_jobs is None:
        return nullcontext()
    context: AbstractContextManager[Any] = _controller().limit(limits=n_threads(n_jobs))
    return context


def worth(n_jobs: int | None, operations: float) -> int | None:
    """Return ``n_jobs``, or 1 for None and so little work that waking threads, on a busy machine, takes longer than it.

    operations: multiplications, about. What BLAS does on one thread by itself stays None: changing that costs time too.

    Examples
    --------
    >>> worth(None, 1e6), worth(None, 1e9), worth(2, 1e6)
    (1, None, 2)
    """
    return 1 if n_jobs is None and TINY < operations < SMALL else n_jobs


def alone() -> AbstractContextManager[Any]:
    """Keep BLAS to the calling thread.

    Examples
    --------
    >>> with alone():
    ...     n_threads(None)
    1
    """
    return hold(1)


def hold(n_threads: int) -> AbstractContextManager[Any]:
    """Let BLAS have so many threads. Their number is the whole process's: only the main thread changes it, since two
    threads that put it back in the wrong order would leave it wrong.
    """
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    context: AbstractContextManager[Any] = _controller().limit(limits=n_threads, user_api="blas")
    return context


def openmp(n_threads: int) -> AbstractContextManager[Any]:
    """Let OpenMP have so many threads, and one in a forked process: GNU's OpenMP would wait there, for ever, for
    threads that the process before the fork had started, and that a fork leaves behind.
    """
    return threadpool_limits(1 if _forked.is_set() else n_threads, user_api="openmp")


def blocks(n_rows: int, n_threads: int, least: int = 512) -> list[slice]:
    """Split ``n_rows`` rows into at most ``n_threads`` contiguous blocks of at least ``least`` rows.

    Examples
    --------
    >>> blocks(1500, 2)
    [slice(0, 750, None), slice(750, 1500, None)]
    >>> blocks(600, 4)
    [slice(0, 600, None)]
    """
    count = max(1, min(n_threads, n_rows // least))
    edges = [n_rows * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


class Blocks(AbstractContextManager["Blocks"]):
    """Blocks of rows or problems and the threads that work on them; use as a context manager.

    ``map`` calls a function once per block and returns the results in the order of the blocks, so that sums over
    blocks give the same bits every time.
    """

    def __init__(self, count: int, n_threads: int, least: int = 512) -> None:
        self.parts = blocks(count, n_threads, least)
        self._pool = ThreadPoolExecutor(len(self.parts) - 1) if len(self.parts) > 1 else None

    def map(self, function: Callable[[slice], T]) -> list[T]:
        if self._pool is None:
            return [function(self.parts[0])]
        others = self._pool.map(function, self.parts[1:])
        return [function(self.parts[0]), *others]  # the calling thread works too: it has its core already

    def each(self, function: Callable[[int], T], numbers: Sequence[int]) -> dict[int, T]:
        """Call a function on each of some numbers, which are dealt out to the threads, and return what it gives."""
        count = len(self.parts)
        dealt = self.map(lambda part: [(k, function(k)) for k in numbers[self.parts.index(part) :: count]])
        return dict(sorted(pair for share in dealt for pair in share))

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
