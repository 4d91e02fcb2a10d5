"""The jobs of a search in several processes, here or on a cluster of machines: the only file that knows Ray.

Functions travel by the name of their module and arguments by pickle; data travel as the names of files that every
process maps for itself, so they are never copied. On a cluster of several machines those names must therefore mean
the same files on all of them (`paths.cache` on a shared file system), and the same packages must be installed.
"""

from __future__ import annotations

import logging
import math
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from ldsvm.experiment.trial import Job, Trial, sentence

Run = Callable[[Job], list[Trial]]

RETRIES = 2  # of a job whose process was killed from outside
OBJECT_STORE = 100 * 2**20  # bytes of shared memory; only trials pass through it
LONGEST = 27  # letters of a folder that leave room for Ray's names in the 107 of a Unix socket's
KNOCK_SECONDS = 5.0  # Ray itself takes minutes to find that nobody answers


class ClusterFailed(RuntimeError):
    """Ray did not start, ended, or is nowhere to be joined; the message is one sentence."""


@dataclass(eq=False)
class _Flight:
    """A job on its way. end: when its time is over, known once it runs. retries: how many are left."""

    function: Run
    job: Job
    retries: int = RETRIES
    results: Any = None
    end: float = math.inf


class Cluster:
    """Processes that fit jobs, started when there are some: an executor for `search.run_search`.

    workers: jobs at a time. address: "host:port" of the head of a running Ray, or "auto" for one on this machine; None
    starts one here and ends it afterwards. threads: of each job. fit_s: seconds that one fit may take; a job of
    several points may take as many times that, counted from when it runs. One cluster at a time in a process.
    """

    def __init__(self, workers: int, address: str | None, threads: int, fit_s: float) -> None:
        self._workers, self._address, self._threads, self._fit_s = workers, address, threads, fit_s
        self._flights: list[_Flight] = []
        self._remote: Any = None  # what Ray calls; None while it is not started
        self._over = threading.Event()
        self._folder: str | None = None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, function: Run, jobs: Sequence[Job]) -> Iterator[list[Trial]]:
        """Call the function on each job and yield the results as they arrive.

        A job that takes too long, whose process ends again and again, or that raises, gives trials that say so. When
        the caller stops early, what still runs is cancelled; Ctrl-C closes the cluster too. Raises ClusterFailed when
        Ray does not start, or ends.
        """
        waiting = [_Flight(function, job) for job in reversed(jobs)]
        if waiting:
            self._start()
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
        if self._remote is not None:
            import ray

            self._remote = None
            ray.shutdown()  # of a cluster that was joined this ends nothing but the connection
            self._over.set()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start(self) -> None:
        if self._remote is not None:
            return
        try:
            import ray
        except ImportError as error:
            raise ClusterFailed(f"Ray is not installed ({error}); allowed: pip install 'ldsvm[pipeline]'.") from error
        if ray.is_initialized():
            raise ClusterFailed("Ray is in use in this process already; allowed: one cluster at a time.")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # No retries by Ray: its clock would not start anew with them, and those for want of memory have no end.
        self._remote = ray.remote(num_cpus=self._threads, max_retries=0, num_returns="streaming")(_serve)
        self._over = threading.Event()
        try:
            _hold(self._options(), self._over)
            _check_room(self._threads, ray.nodes())  # type: ignore[no-untyped-call]
        except BaseException as error:
            self.close()
            if isinstance(error, ClusterFailed) or not isinstance(error, Exception):
                raise
            what = "did not start" if self._address is None else f"at {self._address} cannot be joined"
            raise ClusterFailed(f"Ray {what} ({sentence(error)}).") from error

    def _options(self) -> dict[str, Any]:
        """Return where Ray runs, and what of this machine it may take, as `ray.init` wants it."""
        if self._address is not None:
            _knock(self._address)
            return {"address": self._address}
        base = tempfile.gettempdir()
        self._folder = tempfile.mkdtemp(prefix="ray-", dir=base if len(base) <= LONGEST else "/tmp")
        own = {"address": "local", "include_dashboard": False, "_temp_dir": self._folder}
        return {**own, "num_cpus": self._workers * self._threads, "object_store_memory": OBJECT_STORE}

    def _launch(self, flight: _Flight) -> _Flight:
        flight.end = math.inf  # it may have to wait for a process first
        flight.results = self._remote.remote(flight.function, flight.job, self._threads)
        return flight

    def _wait(self) -> Iterator[list[Trial]]:
        """Wait until a job tells something or is over its time; yield the trials of those that came to an end."""
        import ray

        flights, results = [*self._flights], [flight.results for flight in self._flights]
        left = min(flight.end for flight in flights) - time.monotonic()
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
            return _failed(flight.job, sentence(error.cause))
        except LocalRayletDiedError as error:
            raise ClusterFailed("Ray ended in the middle of a search; its finished trials are kept.") from error
        except RayError:  # the process of the job, or its machine, is gone
            if flight.retries == 0:
                return _failed(flight.job, f"stopped: its process ended {RETRIES + 1} times")
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
        return _failed(flight.job, f"stopped: time limit of {self._fit_s * len(flight.job.points):g} s")

    def _cancel(self) -> None:
        flights, self._flights = self._flights, []
        for flight in flights:
            import ray

            ray.cancel(flight.results, force=True)


def _serve(function: Run, job: Job, threads: int) -> Iterator[list[Trial] | None]:
    """Tell that the job runs now, then its trials; for a process of Ray's."""
    yield None
    with threadpool_limits(threads):
        yield function(job)


def _failed(job: Job, reason: str) -> list[Trial]:
    return [Trial(dict(p), order, failure=reason) for p, order in zip(job.points, job.orders, strict=True)]


def _check_room(threads: int, nodes: list[dict[str, Any]]) -> None:
    """Refuse a cluster on which every job would wait for ever."""
    most = max((int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]), default=0)
    if threads > most:
        raise ClusterFailed(f"{threads} threads a job: no machine of the cluster has as many; allowed: up to {most}.")


def _knock(address: str) -> None:
    """Refuse an address where nobody answers."""
    if address == "auto":
        return
    if not re.fullmatch(r"[\w.-]+:\d{1,5}", address):
        raise ClusterFailed(f"{address!r} is no address of a Ray cluster; allowed: host:port of its head, or auto.")
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterFailed(f"Ray at {address} cannot be joined: nobody answers there ({error}).") from error


def _hold(options: dict[str, Any], over: threading.Event) -> None:
    """Start Ray in a thread that lives until `over`: on Linux Ray ends with the thread that started it.

    Besides, in the main thread Ray would take over the answer to SIGTERM, which may be somebody else's.
    """
    import ray

    started: Future[None] = Future()

    def start() -> None:
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except BaseException as error:
            started.set_exception(error)
        else:
            started.set_result(None)
            over.wait()

    threading.Thread(target=start, name="ldsvm-ray", daemon=True).start()
    try:
        started.result()
    finally:
        wait([started])  # also after Ctrl-C: half a Ray could not be ended
