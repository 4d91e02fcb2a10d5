"""Executors in this process: one block after the other, or several threads. The executor on Ray is in `actors`."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from ldsvm import threads
from ldsvm.blocks.source import BlockError, Rows, check_count
from ldsvm.typing import Array

T = TypeVar("T")
REPAIRED = 5  # times in a row that a piece of work is done again because workers were lost

Call = tuple[str, tuple[Any, ...]]  # of a method of `Shard`, with its arguments
Report = Callable[[str], object]  # gets words on what is done before the first iteration


class WorkerLost(RuntimeError):
    """Workers have ended, and with them what they kept; new workers with the same instructions have replaced them."""


@dataclass
class Traffic:
    """The bytes moved and the seconds worked by the shards so far, by method of `Shard`.

    calls: of all shards together. moved: for every shard seconds of work, bytes to it and bytes from it, (shards, 3).
    """

    shards: int
    calls: Counter[str] = field(default_factory=Counter)
    moved: dict[str, Array] = field(default_factory=dict)

    def note(self, method: str, shard: int, seconds: float, down: int = 0, up: int = 0) -> None:
        """Add one call of one shard."""
        self.moved.setdefault(method, np.zeros((self.shards, 3)))[shard] += seconds, down, up

    @property
    def total(self) -> Array:
        """Of all methods (shards, 3)."""
        found: Array = sum(self.moved.values(), start=np.zeros((self.shards, 3)))
        return found


def silent(_: str) -> None:
    """Report nothing."""


def repaired(work: Callable[[], T], back: Callable[[], object] = lambda: None) -> T:
    """Do the work; when workers are lost meanwhile, do it again with the new ones, at most REPAIRED times.

    Examples
    --------
    >>> tries = iter([WorkerLost("gone"), 7])
    >>> def work():
    ...     if isinstance(found := next(tries), Exception):
    ...         raise found
    ...     return found
    >>> repaired(work)
    7
    """
    lost = 0
    while True:
        try:
            if lost:
                back()
            return work()
        except WorkerLost:
            lost += 1
            if lost > REPAIRED:
                raise


class Team(ABC):
    """Shards that do the same at the same time. Use as a context."""

    def __init__(self, train: Rows, valid: Rows | None, workers: int) -> None:
        self.parts = train.divided(workers)
        valid_parts: list[Rows | None] = [None] * len(self.parts)
        if valid is not None:
            some = valid.divided(len(self.parts))
            valid_parts[: len(some)] = some
        self.valid_parts = valid_parts
        self.traffic = Traffic(len(self.parts))
        self.lost = 0  # workers that had to be replaced
        self.report: Report = silent
        self.setup_calls: dict[str, list[Call]] = {}  # by method: what a new worker must be told too

    def __len__(self) -> int:
        return len(self.parts)

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, *args: Any) -> list[Any]:
        """Call a method of every shard with the same arguments; the answers in the shards' order.

        Raises BlockError when a block cannot be read, and WorkerLost.
        """
        return self.each(method, [args] * len(self))

    def each(self, method: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The same with arguments of its own for every shard."""
        self.traffic.calls[method] += 1
        return self._each([(method, some) for some in args])

    def sum(self, method: str, *args: Any) -> Any:
        """The same, added up in the shards' order: arrays and numbers, in tuples or by key."""
        return added(self.call(method, *args))

    def tell(self, method: str, *args: Any) -> list[Any]:
        """`call`, and remember it for workers that come later."""
        return self.tell_each(method, [args] * len(self))

    def tell_each(self, method: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`each`, and remember it for workers that come later."""
        self.setup_calls[method] = [(method, some) for some in args]
        return self.each(method, args)

    @abstractmethod
    def _each(self, calls: Sequence[Call]) -> list[Any]:
        """Do one call on every shard."""

    @abstractmethod
    def close(self) -> None:
        """End what was started for the team."""


class Local(Team):
    """Shards in this process, one for each of so many threads."""

    def __init__(
        self, train: Rows, valid: Rows | None, workers: int, memory_bytes: float | None, n_threads: int
    ) -> None:
        from ldsvm.blocks.shard import Shard  # which loads numba

        super().__init__(train, valid, workers)
        beside, own = len(self), max(1, n_threads // len(self))
        share = None if memory_bytes is None else int(memory_bytes / beside)
        self.shards = [Shard(*parts, share, beside, own) for parts in zip(self.parts, self.valid_parts, strict=True)]
        self._pool = ThreadPoolExecutor(beside) if beside > 1 else None
        # With several threads each calls BLAS by itself.
        self._limits = threads.alone() if beside > 1 else threads.limit(n_threads)
        self._limits.__enter__()

    def close(self) -> None:
        self._limits.__exit__(None, None, None)
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _each(self, calls: Sequence[Call]) -> list[Any]:
        places = range(len(calls))
        if self._pool is None:
            return [self._one(i, calls[i]) for i in places]
        return list(self._pool.map(self._one, places, calls))

    def _one(self, i: int, call: Call) -> Any:
        clock = time.perf_counter()
        answer = getattr(self.shards[i], call[0])(*call[1])
        self.traffic.note(call[0], i, time.perf_counter() - clock)
        return answer


def added(answers: Sequence[Any]) -> Any:
    """Add up answers of shards, in order.

    Examples
    --------
    >>> added([(1, {"a": 2.0}), (3, {"a": 4.0})])
    (4, {'a': 6.0})
    """
    return reduce(_plus, answers)


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_plus(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return {key: _plus(a[key], b[key]) for key in a}
    return a + b


def chosen(executor: Any) -> Any:
    """Return an executor, `Serial` for None. Raises ValueError for anything that is not an executor."""
    if executor is None:
        return Serial()
    if isinstance(executor, type) or not hasattr(executor, "team"):
        name = executor.__name__ if isinstance(executor, type) else repr(executor)
        raise ValueError(
            f"executor={name} is not an executor; allowed: Serial(), Threads() or OnRay() of ldsvm.blocks."
        )
    return executor


def check_memory(memory: Any) -> None:
    """Raise BlockError unless the value is None or a number of bytes."""
    if memory is not None and (
        isinstance(memory, bool) or not isinstance(memory, Real) or not 0 <= float(memory) < np.inf
    ):
        raise BlockError(f"memory={memory!r} must be a number of bytes, or None.")


@dataclass(frozen=True)
class Serial:
    """An executor in this process: one block at a time.

    memory: bytes of inputs and features that may be kept between passes; None: half of the free memory. The rest is
    read and computed again in every pass. report: called with a text on each step before the first iteration.
    """

    memory: float | None = None
    report: Report = field(default=silent, repr=False)

    def __post_init__(self) -> None:
        check_memory(self.memory)

    def team(self, train: Rows, valid: Rows | None, n_jobs: int | None) -> Team:
        """Return the shards at work."""
        return Local(train, valid, 1, self.memory, threads.n_threads(n_jobs))


@dataclass(frozen=True)
class Threads:
    """An executor with threads of this process, one for each worker.

    memory: as in `Serial`, for all threads together. report: as in `Serial`.
    """

    workers: int | None = None
    memory: float | None = None
    report: Report = field(default=silent, repr=False)

    def __post_init__(self) -> None:
        check_memory(self.memory)
        if self.workers is not None:
            check_count("workers", self.workers, 1)

    def team(self, train: Rows, valid: Rows | None, n_jobs: int | None) -> Team:
        """Return the shards at work."""
        cores = threads.n_threads(n_jobs)
        workers = self.workers if self.workers is not None else min(cores, os.cpu_count() or 1)
        return Local(train, valid, workers, self.memory, cores)
