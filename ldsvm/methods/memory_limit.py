"""What one fit may allocate, and what it took at its peak. Both count this process's own memory, not mapped files."""

from __future__ import annotations

import ctypes
import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from threadpoolctl import threadpool_info

from ldsvm import memory
from ldsvm.memory import MIB as MIB

# Beside the limit: libraries that a first fit loads, and stacks and heaps of its threads. Measured: 50 to 70 MiB on one
# thread, 16 more for each further one.
LIBRARIES, THREAD = 64 * MIB, 24 * MIB
MOST_BUFFERS = 64  # OpenBLAS has room for twice the threads it was built for, which are 64 in NumPy's and SciPy's
ENDLESS = -1  # as resource.RLIM_INFINITY


class OverLimit(MemoryError):
    """A call wanted more memory than its limit; the message is one sentence."""


@dataclass(frozen=True)
class MemoryLimit:
    """What one call may allocate, on so many threads, beyond what its process has when the call begins.

    mib: in MiB of 2**20 bytes; None for whatever the machine has free.

    Examples
    --------
    >>> print(MemoryLimit(500, threads=2))
    memory limit of 500 MiB
    """

    mib: float | None = None
    threads: int = 1

    def here(self) -> MemoryLimit:
        """Return the limit with the number this machine gives it now; still None if it is unknown."""
        if self.mib is not None:
            return self
        free = memory.available()
        return self if free is None else replace(self, mib=free // MIB)

    def __str__(self) -> str:
        return "no memory limit" if self.mib is None else f"memory limit of {self.mib:.10g} MiB"

    @property
    def under(self) -> str:
        """What to add to a sentence on a process that ended, perhaps because it was refused memory."""
        return "" if self.mib is None else f" under a {self}"


_current: ContextVar[MemoryLimit | None] = ContextVar("memory limit", default=None)


@contextmanager
def noted(limit: MemoryLimit | None) -> Iterator[None]:
    """Let `available` and `reached` know a limit; nothing else holds to it."""
    token = _current.set(limit)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def apply_limit(limit: MemoryLimit | None) -> Iterator[None]:
    """Hold this process to a limit, on Linux; elsewhere only the estimates know it.

    Raises OverLimit when Python is refused memory. Libraries that do not look whether they got theirs end the process.
    """
    with noted(limit):
        try:
            with _bounded(limit):
                yield
        except Exception as error:
            if (sentence := reached(error)) is None:
                raise
            raise OverLimit(sentence) from None


def available() -> int | None:
    """Return the bytes that may be allocated here: what the machine has free, or the limit if that is less."""
    limit = _current.get()
    sizes = (memory.available(), None if limit is None or limit.mib is None else int(limit.mib * MIB))
    return min((size for size in sizes if size is not None), default=None)


def reached(error: BaseException) -> str | None:
    """Return the sentence on an error that says that memory was refused under a limit; None for other errors."""
    limit = _current.get()
    refused = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    return f"stopped: {limit}" if refused and limit is not None and limit.mib is not None else None


def watch() -> Callable[[], float | None]:
    """Begin to watch the memory of this process; return a function that returns its peak in MiB.

    The peak is that of all threads since then, above what the process had at the beginning. Mapped files do not count
    (what is read of one for the first time after the peak is taken off the peak), nor does the reuse of memory that had
    been freed but not given back, as that of small arrays. The function returns None without Linux's /proc.

    Examples
    --------
    >>> peak = watch()
    >>> found = peak()
    >>> found is None or found < 10
    True
    """
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the highest size so far becomes the size now
    except OSError:
        return lambda: None
    before = _sizes()

    def peak() -> float | None:
        after = _sizes()
        if "VmHWM" not in after or "VmRSS" not in before:
            return None
        mapped = max(after.get("RssFile", 0) - before.get("RssFile", 0), 0)
        return max(after["VmHWM"] - before["VmRSS"] - mapped, 0) / MIB

    return peak


@contextmanager
def _bounded(limit: MemoryLimit | None) -> Iterator[None]:
    if limit is None or limit.mib is None or sys.platform != "linux":  # others count something else, or nothing
        yield
        return
    import resource

    _reserve(limit.threads)
    now = _sizes().get("VmData")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if now is not None:
        wanted = min(now + int(limit.mib * MIB) + LIBRARIES + limit.threads * THREAD, sys.maxsize)
        least = min(size for size in (wanted, soft, hard) if size != ENDLESS)
        resource.setrlimit(resource.RLIMIT_DATA, (least, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@cache
def _reserve(threads: int) -> None:
    """Let every OpenBLAS of this process have its buffers now: refused one later, it asks for ever or ends the process.

    It keeps what is given back, 32 MiB for each thread that computes, of which only what is used becomes real.
    """
    import scipy.linalg  # noqa: F401  (loads SciPy's OpenBLAS)

    for library in threadpool_info():
        if library["internal_api"] == "openblas":
            blas: Any = ctypes.CDLL(library["filepath"])
            if hasattr(blas, "blas_memory_alloc"):
                blas.blas_memory_alloc.restype = ctypes.c_void_p
                buffers = [blas.blas_memory_alloc(0) for _ in range(min(threads, MOST_BUFFERS))]
                for buffer in buffers:
                    blas.blas_memory_free(ctypes.c_void_p(buffer))


def _sizes() -> dict[str, int]:
    """Return Linux's figures on this process's memory, in bytes, such as VmRSS."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            words = [line.split() for line in file]
    except OSError:
        return {}
    return {w[0].rstrip(":"): int(w[1]) * 1024 for w in words if len(w) == 3 and w[2] == "kB"}
