"""Shards in Ray's processes, on this machine or a cluster. The only file that knows how to reach them."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ldsvm.blocks.connection import ClusterFailed, Connection, interrupted, nodes
from ldsvm.blocks.executors import Call, Report, Team, WorkerLost, check_memory, silent
from ldsvm.blocks.hosts import slots
from ldsvm.blocks.source import Block, BlockError, Rows, check_count, chosen_columns, from_table, listed, pair_of

LARGE = 100_000  # bytes of a message from which on it is put into Ray's store
SECONDS = 300.0  # that a new worker may take to start, with imports on a busy disk; Ray itself waits for ever
STEP = 5.0  # seconds between two looks at the processors that the cluster has


@dataclass(frozen=True)
class ReferenceBlock(Block):
    """A pair (X, y), or an Arrow table with these columns, that Ray keeps."""

    name: str
    reference: Any
    columns: tuple[str, ...] = ()
    label: str | None = None
    rows: int | None = None

    def read(self) -> tuple[Any, Any]:
        import ray

        try:
            found = ray.get(self.reference)
        except Exception as error:  # of Ray's many kinds
            raise BlockError(f"{self.name} was lost by Ray ({type(error).__name__}).") from error
        if isinstance(found, tuple | list):
            return pair_of(found, self.name)
        if self.label is None:
            raise BlockError(
                f"{self.name} is a {type(found).__name__}; allowed: a pair (X, y), or a table with label=."
            )
        columns = self.columns or tuple(name for name in found.column_names if name != self.label)
        return from_table(found, columns, self.label, self.name)


def reference_blocks(
    source: Any, label: str | None, columns: Sequence[str] | None
) -> tuple[tuple[Block, ...], tuple[str, ...] | None]:  # fmt: skip
    """Return a block for every reference, and the names of the inputs where a dataset tells them."""
    if hasattr(source, "to_arrow_refs"):
        if label is None:
            raise BlockError("label= must name the column of labels of the dataset.")
        names = (
            chosen_columns(columns, label)
            if columns is not None
            else tuple(n for n in source.schema().names if n != label)
        )
        references = source.to_arrow_refs()
    else:
        names, references = tuple(columns or ()), listed(source, "source")
    import ray

    for i, one in enumerate(references):
        if not isinstance(one, ray.ObjectRef):
            raise BlockError(f"block {i} is a {type(one).__name__}; allowed: a reference, as from ray.put.")
    blocks = tuple(ReferenceBlock(f"block {i} of Ray", one, names, label) for i, one in enumerate(references))
    return blocks, names or None


class _Host:
    """A process of Ray's with one shard. Arguments and answers travel as bytes, so that they can be counted."""

    def __init__(self, parts: tuple[Any, ...], n_threads: int) -> None:
        from threadpoolctl import threadpool_limits

        from ldsvm.blocks.shard import Shard  # which loads numba

        self._limits = threadpool_limits(n_threads)  # for good
        self._shard = Shard(*parts)

    def here(self) -> None:
        """Answer, to show that the process has started."""

    def call(self, message: bytes) -> tuple[bytes, float]:
        """Do what a message says; return the answer, and the seconds it took."""
        clock = time.perf_counter()
        method, args = pickle.loads(message)  # from the process that started this one
        try:
            answer = getattr(self._shard, method)(*args)
        except BlockError as error:
            answer = error
        return pickle.dumps(answer, protocol=5), time.perf_counter() - clock


class Actors(Team):
    """One process for each shard. A process that ends is replaced by one with the same blocks, where Ray has room."""

    def __init__(
        self, train: Rows, valid: Rows | None, workers: int, connection: Connection | None, threads: int,
        memory_bytes: float | None,
    ) -> None:  # fmt: skip
        import ray

        super().__init__(train, valid, workers)
        self._connection, self._threads = connection, threads
        self._kind = ray.remote(num_cpus=threads, max_restarts=0)(_Host)
        beside = len(self)
        share = None if memory_bytes is None else int(memory_bytes / beside)
        self._shards = [(*parts, share, beside, threads) for parts in zip(self.parts, self.valid_parts, strict=True)]
        self._hosts: list[Any] = []
        lacking = max(0, len(self) - slots(threads, nodes()))
        if not lacking:
            self._hosts = [self._host(i) for i in range(len(self))]
            lacking = len(self._absent(range(len(self))))
        if lacking:
            self.close()
            raise ClusterFailed(
                f"Ray has no room for {lacking} of {len(self)} workers with {threads} threads each; allowed: as "
                "many as fit on its free processors."
            )

    def close(self) -> None:
        import ray

        for host in self._hosts:
            ray.kill(host)
        self._hosts = []
        if self._connection is not None:
            self._connection.close()

    def _host(self, i: int) -> Any:
        return self._kind.remote(self._shards[i], self._threads)

    def _each(self, calls: Sequence[Call]) -> list[Any]:
        messages, sizes = self._messages(calls)
        waiting = [host.call.remote(message) for host, message in zip(self._hosts, messages, strict=True)]
        answers: list[Any] = []
        lost = []
        for i, found in enumerate(_gathered(waiting)):
            if found is None:
                lost.append(i)
                continue
            answer, seconds = found
            self.traffic.note(calls[i][0], i, seconds, sizes[i], len(answer))
            answers.append(pickle.loads(answer))
        for answer in answers:
            if isinstance(answer, BlockError):
                raise answer
        if lost:
            self._replace(lost)
            raise WorkerLost(f"{len(lost)} of {len(self)} workers ended repeatedly.")
        return answers

    def _messages(self, calls: Sequence[Call]) -> tuple[list[Any], list[int]]:
        """Pickle each different call once, and count its bytes; Ray keeps a large one once on each machine."""
        import ray

        found: dict[int, tuple[Any, int]] = {}
        for call in calls:
            if id(call[1]) not in found:
                message = pickle.dumps(call, protocol=5)
                found[id(call[1])] = ray.put(message) if len(message) > LARGE else message, len(message)
        sent, sizes = zip(*(found[id(call[1])] for call in calls), strict=True)
        return list(sent), list(sizes)

    def _replace(self, lost: list[int]) -> None:
        """Start new workers for these shards, and tell them what the old ones were told."""
        import ray
        from ray.exceptions import RayError

        self.lost += len(lost)
        for i in lost:
            ray.kill(self._hosts[i])  # Ray may have lost sight of it only
            self._hosts[i] = self._host(i)
        for i in self._absent(lost):  # no machine has a processor left: one of the others' does this work too
            ray.kill(self._hosts[i])
            self._hosts[i] = self._kind.options(num_cpus=0).remote(self._shards[i], self._threads)
        for calls in self.setup_calls.values():
            waiting = [self._hosts[i].call.remote(pickle.dumps(calls[i], protocol=5)) for i in lost]
            try:
                with interrupted():
                    ray.get(waiting)
            except RayError as error:
                _check_ended(error)
                raise WorkerLost("a worker ended, and so did the one in its place.") from error

    def _absent(self, places: Sequence[int]) -> list[int]:
        """Return the workers that have not started after a while, which is short if there are too few processors."""
        import ray

        words = {self._hosts[i].here.remote(): i for i in places}
        deadline = time.monotonic() + SECONDS
        while True:
            with interrupted():
                _, waiting = ray.wait(list(words), num_returns=len(words), timeout=min(STEP, SECONDS))
            if not waiting or time.monotonic() > deadline or slots(self._threads, nodes()) < len(self):
                return [words[word] for word in waiting]


def _gathered(waiting: Sequence[Any]) -> list[tuple[bytes, float] | None]:
    """Return what the workers answer, None for those that have ended."""
    import ray
    from ray.exceptions import RayError

    try:
        with interrupted():
            found: list[tuple[bytes, float] | None] = ray.get(list(waiting))  # all at once: half the time of one by one
            return found
    except RayError as error:
        _check_ended(error)
    found = []
    for one in waiting:
        try:
            with interrupted():
                found.append(ray.get(one))
        except RayError as error:
            _check_ended(error)
            found.append(None)
    return found


def _check_ended(error: Exception) -> None:
    """Raise what a worker raised, unless the error is that its process, or its machine, is gone."""
    from ray.exceptions import ActorDiedError, ActorUnavailableError, NodeDiedError, WorkerCrashedError

    if not isinstance(error, ActorDiedError | ActorUnavailableError | NodeDiedError | WorkerCrashedError):
        raise getattr(error, "cause", error) from None


@dataclass(frozen=True)
class OnRay:
    """An executor on Ray: several worker processes, each with its own blocks.

    workers: number of processes. address: "host:port" of the head of a running Ray cluster, or "auto" for one on this
    machine; None uses the Ray that this process already runs, or starts one. threads: of each worker. memory: bytes of
    inputs and features that all workers together may keep between passes; None: half of the free memory of their
    machines. report: called with a text on each step before the first iteration. Raises ClusterFailed, with one
    sentence, if Ray does not start.
    """

    workers: int = 2
    address: str | None = None
    threads: int = 1
    memory: float | None = None
    report: Report = field(default=silent, repr=False)

    def __post_init__(self) -> None:
        check_memory(self.memory)
        check_count("workers", self.workers, 1)
        check_count("threads", self.threads, 1)

    def team(self, train: Rows, valid: Rows | None, n_jobs: int | None) -> Team:
        """Return the shards at work. `threads` decides on their threads, not n_jobs."""
        try:
            import ray
        except ImportError as error:
            raise ClusterFailed(
                f"Ray is not installed ({error}); install it with: pip install 'ldsvm[pipeline]'."
            ) from error
        connection = None
        if not ray.is_initialized():
            self.report("starting Ray" if self.address is None else f"joining Ray at {self.address}")
            connection = Connection(self.address, self.workers * self.threads, self.threads)
            connection.open()
        try:
            return Actors(train, valid, self.workers, connection, self.threads, self.memory)
        except BaseException:
            if connection is not None:
                connection.close()
            raise
