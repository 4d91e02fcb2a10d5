"""The jobs of a search in several processes, here or on a cluster of hosts.

Functions travel by the name of their module and arguments by pickle; data travel as the names of files that every
process maps for itself, so they are never copied. On a cluster of several hosts those names must therefore mean
the same files on all of them (`paths.cache` on a shared file system), and the same packages must be installed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from ldsvm.blocks.connection import ClusterFailed, Connection, interrupted
from ldsvm.experiment.search.failure import Failure, Kind, failure_of
from ldsvm.experiment.search.fault_report import crash, reported
from ldsvm.experiment.search.memory_shares import shares
from ldsvm.experiment.search.trial import Job, Trial
from ldsvm.methods.memory_limit import MemoryLimit, apply_limit

Run = Callable[[Job], list[Trial]]

CANCELS = 3  # Ray can miss one that comes just when the job begins; further ones of a job that has ended do nothing
RETRIES = 2  # of a job whose process was killed from outside


@dataclass(eq=False)
class _Flight:
    """A running job. word: file in which its process records a crash. end: when its time is over, once it runs.

    retries: how many are left.
    """

    function: Run
    job: Job
    word: Path
    retries: int = RETRIES
    results: Any = None
    end: float = math.inf


class Cluster:
    """Processes that fit jobs, started when there are some: an executor for `search.run_search`.

    workers: jobs at a time. address: "host:port" of the head of a running Ray, or "auto" for one on this machine; None
    starts one here and ends it afterwards. threads: of each job. fit_s: seconds that one fit may take; a job of
    several points may take as many times that, counted from when it runs. fit_mib: MiB that one job may allocate; None
    divides what a machine had free when Ray started there by the jobs that it can run at a time. One cluster at a time
    in a process.
    """

    def __init__(
        self, workers: int, address: str | None, threads: int, fit_s: float, fit_mib: float | None = None
    ) -> None:
        self._workers, self._threads, self._fit_s = workers, threads, fit_s
        self._limit = MemoryLimit(fit_mib, threads)
        self._shares: dict[str, MemoryLimit] = {}  # of hosts, by Ray's names for them
        self._flights: list[_Flight] = []
        self._remote: Any = None  # what Ray calls; None while it is not started
        self._connection = Connection(address, workers * threads, threads)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, function: Run, jobs: Sequence[Job]) -> Iterator[list[Trial]]:
        """Call the function on each job and yield the results as they arrive.

        A job that takes too long, whose process ends repeatedly, or that raises an error, gives trials with this
        failure. When the caller stops early, running jobs are cancelled; Ctrl-C closes the cluster too. Raises
        ClusterFailed when Ray does not start, or ends.
        """
        if jobs:
            self._start()
        waiting = [_Flight(function, job, self._connection.folder / uuid4().hex) for job in reversed(jobs)]
        try:
            while waiting or self._flights:
                while waiting and len(self._flights) < self._workers:
                    self._flights.append(self._launch(waiting.pop()))
                yield from self._wait()
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            self._cancel()

    def close(self) -> None:
        """Cancel what runs, and end the Ray that was started here or leave the one that was joined."""
        self._cancel()
        self._remote = None
        self._connection.close()

    def _start(self) -> None:
        if self._remote is not None:
            return
        nodes = self._connection.open()
        import ray

        # No retries by Ray: its clock would not start anew with them, and those for want of memory have no end.
        self._remote = ray.remote(num_cpus=self._threads, max_retries=0, num_returns="streaming")(_serve)
        if self._limit.mib is None:
            self._shares = shares(self._workers, self._threads, nodes)

    def _launch(self, flight: _Flight) -> _Flight:
        flight.end = math.inf  # it may have to wait for a process first
        flight.results = self._remote.remote(flight.function, flight.job, self._limit, self._shares, flight.word)
        return flight

    def _wait(self) -> Iterator[list[Trial]]:
        """Wait until a job reports something or is over its time; yield the trials of those that came to an end."""
        import ray

        flights, results = [*self._flights], [flight.results for flight in self._flights]
        left = min(flight.end for flight in flights) - time.monotonic()
        with interrupted():
            ray.wait(results, timeout=None if left == math.inf else max(left, 0.0))
            ready, _ = ray.wait(results, num_returns=len(results), timeout=0)  # the first wait tells of one only
            found = [self._hear(f) if r in ready else self._stop(f) for f, r in zip(flights, results, strict=True)]
        for flight, trials in zip(flights, found, strict=True):
            if trials is not None:
                self._flights.remove(flight)
                yield trials

    def _hear(self, flight: _Flight) -> list[Trial] | None:
        """Return the trials of a job, None when it has only begun to run."""
        import ray
        from ray.exceptions import LocalRayletDiedError, RayError, RayTaskError

        try:
            trials: list[Trial] | None = ray.get(next(flight.results))
        except RayTaskError as error:
            return _failed(flight.job, failure_of(error.cause))
        except LocalRayletDiedError as error:
            raise ClusterFailed("Ray ended during the search; finished trials are kept.") from error
        except RayError:  # the process of the job, or its machine, is gone
            how = crash(flight.word)
            if how or flight.retries == 0:  # what crashed would do so again
                end = f"with {how}" if how else f"{RETRIES + 1} times"
                how = f"stopped: its process ended {end}{self._limit.under}"
                return _failed(flight.job, Failure(Kind.ENDED, how))
            flight.retries -= 1
            self._launch(flight)
            return None
        if trials is None:
            flight.end = time.monotonic() + self._fit_s * len(flight.job.points)
        return trials

    def _stop(self, flight: _Flight) -> list[Trial] | None:
        """End a job that is over its time and return its trials, None when it is not."""
        if time.monotonic() < flight.end:
            return None
        import ray

        ray.cancel(flight.results, force=True)
        how = f"stopped: time limit of {self._fit_s * len(flight.job.points):g} s"
        return _failed(flight.job, Failure(Kind.TIME_LIMIT, how))

    def _cancel(self) -> None:
        flights, self._flights = self._flights, []
        for again in range(CANCELS if flights else 0):
            import ray

            time.sleep(0.5 * (again > 0))
            for flight in flights:
                ray.cancel(flight.results, force=True)


def _serve(
    function: Run, job: Job, limit: MemoryLimit, by_machine: dict[str, MemoryLimit], word: Path
) -> Iterator[list[Trial] | None]:
    """Tell that the job runs now, then its trials; for a process of Ray's."""
    import ray

    yield None
    share = by_machine.get(ray.get_runtime_context().get_node_id(), limit)  # a machine may have joined later
    with threadpool_limits(limit.threads), reported(word), apply_limit(share.here()):
        trials = function(job)
    yield trials


def _failed(job: Job, failure: Failure) -> list[Trial]:
    return [Trial(dict(p), order, failure=failure) for p, order in zip(job.points, job.orders, strict=True)]
