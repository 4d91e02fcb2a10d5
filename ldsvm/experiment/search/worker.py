"""A separate process for everything that is fitted and timed, so that it can be stopped, or crash, without harm."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from typing import Any, Protocol

from ldsvm.experiment.search.failure import Failure, Kind, KnownFailure, failure_of
from ldsvm.methods.memory_limit import MemoryLimit, OverLimit, apply_limit, noted

Tell = Callable[[Any], None]
START_SECONDS = 120.0  # importing NumPy and its friends on a busy machine


class Stopped(KnownFailure):
    """The call had to be ended, or its process died."""


class Runner(Protocol):
    """Calls functions in this process (`Here`) or in one that can be stopped (`Worker`)."""

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        limit_s: float,
        memory: MemoryLimit | None = None,
        tell: Tell | None = None,
    ) -> Any:
        """Return function(*arguments, tell); raise what it raises, or Stopped at one of the limits."""


class Here:
    """Calls functions in this process: they cannot be stopped, and only estimates observe the limit of memory."""

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        limit_s: float,
        memory: MemoryLimit | None = None,
        tell: Tell | None = None,
    ) -> Any:
        """Return function(*arguments, tell)."""
        with noted(memory):
            return function(*arguments, tell or _ignore)


class Worker:
    """Calls functions in a child process, which starts with the first call, and again after it had to be killed.

    Functions and arguments travel by pickle: module functions and plain values, arrays by the name of their file. What
    the function tells on its way arrives at `tell` in this process.
    """

    def __init__(self) -> None:
        self._process: Any = None
        self._thread: Any = None
        self._pipe: Any = None
        self._limit: MemoryLimit | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        limit_s: float,
        memory: MemoryLimit | None = None,
        tell: Tell | None = None,
    ) -> Any:
        """Return function(*arguments, tell); raise what it raises, or Stopped at one of the limits.

        limit_s: seconds. memory: what the call may allocate, None as much as it likes.
        """
        try:
            if self._process is None:
                self._start()
            self._limit = None if memory is None else memory.here()
            kind, value = self._ask((function, arguments, self._limit), limit_s, tell or _ignore)
        except BaseException:  # such as Ctrl-C: an answer on its way would be taken for that of the next call
            self.close()
            raise
        if kind == "failed":
            raise value
        if kind == "stopped":
            raise Stopped(value)
        return value

    def close(self) -> None:
        """End the child process, whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._thread is not None:
            self._thread.shutdown()  # what came between may have come while the process was being started
        if process.pid is not None:
            process.kill()
            process.join()
        self._pipe.close()

    def _ask(self, work: Any, limit_s: float, tell: Tell) -> tuple[str, Any]:
        """Send work, and pass on its reports until its answer is there."""
        self._pipe.send(work)
        end = time.monotonic() + limit_s
        while True:
            kind, value = self._receive(end, Failure(Kind.TIME_LIMIT, f"stopped: time limit of {limit_s:g} s"))
            if kind != "news":
                return kind, value
            tell(value)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork after threads have run may hang
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), name="ldsvm-worker")
        # The child ends with the thread that started it, and ours may be one that somebody else ends.
        self._thread = ThreadPoolExecutor(1, "ldsvm-worker")
        self._thread.submit(_start, self._process).result()
        theirs.close()
        too_late = Failure(Kind.ACCIDENT, f"stopped: no process within {START_SECONDS:g} s")
        self._receive(time.monotonic() + START_SECONDS, too_late)

    def _receive(self, end: float, too_late: Failure) -> tuple[str, Any]:
        try:
            if self._pipe.poll(max(0.0, end - time.monotonic())):
                answer: tuple[str, Any] = self._pipe.recv()
                return answer
        except (EOFError, ConnectionResetError):
            self._process.join()
            under = "" if self._limit is None else self._limit.under
            how = f"stopped: its process ended with {_cause(self._process.exitcode)}{under}"
            raise Stopped(Failure(Kind.ENDED, how)) from None
        raise Stopped(too_late)


def _start(process: Any) -> None:
    """Start a process that does not hear of Ctrl-C, which is for the parent: not while Python starts in it, either."""
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # which otherwise starts on the way and unblocks the signal afterwards
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of this thread alone, which the child inherits
    process.start()


def _serve(pipe: Any) -> None:
    """Answer calls until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who ends us
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the parent, however it dies
    pipe.send(("ready", None))
    while True:
        try:
            function, arguments, limit = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(_answer(function, arguments, limit, lambda news: pipe.send(("news", news))))
        except Exception as error:  # an answer that cannot be pickled
            pipe.send(("failed", RuntimeError(f"{type(error).__name__}: {error}")))


def _answer(
    function: Callable[..., Any], arguments: tuple[Any, ...], limit: MemoryLimit | None, tell: Tell
) -> tuple[str, Any]:
    try:
        with apply_limit(limit):
            return "done", function(*arguments, tell)
    except OverLimit as error:
        return "stopped", failure_of(error)
    except Exception as error:
        return "failed", error


def _cause(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "signal 9, as when memory runs out"
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _ignore(_: Any) -> None:
    pass
