"""Start Ray, or join a running one; a process has one at a time."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ldsvm.blocks.hosts import Node, too_small, unreachable

OBJECT_STORE = 100 * 2**20  # bytes of shared memory of a Ray that is started here; only small things pass through it
LONGEST = 27  # letters of a folder that leave room for Ray's names in the 107 of a Unix socket's


class ClusterFailed(RuntimeError):
    """Ray did not start, has ended, or cannot be joined; the message is one sentence."""


class Connection:
    """The Ray of this process. head: while it is open, the address where others join it.

    address: "host:port" of the head of a running Ray, or "auto" for one on this machine; None starts one here, with so
    many processors. threads: of what is to run there.
    """

    def __init__(self, address: str | None, processors: int, threads: int) -> None:
        self._address, self._processors, self._threads = address, processors, threads
        self._over: threading.Event | None = None  # while open, what ends it
        self._folder: Path | None = None
        self.head = ""

    @property
    def folder(self) -> Path:
        """A folder of its own until `close`."""
        if self._folder is None:
            base = tempfile.gettempdir()
            self._folder = Path(tempfile.mkdtemp(prefix="ray-", dir=base if len(base) <= LONGEST else "/tmp"))
        return self._folder

    def open(self) -> list[Node]:
        """Start or join; return the machines. Raises ClusterFailed."""
        try:
            import ray
        except ImportError as error:
            raise ClusterFailed(
                f"Ray is not installed ({error}); install it with: pip install 'ldsvm[pipeline]'."
            ) from error
        if ray.is_initialized():
            raise ClusterFailed("Ray is already in use in this process; allowed: one cluster at a time.")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._over = threading.Event()
        try:
            _hold(self._options(), self._over)
            found = nodes()
            self.head = ray.get_runtime_context().gcs_address
            _refuse(too_small(self._threads, found))
        except BaseException as error:
            self.close()
            if isinstance(error, ClusterFailed) or not isinstance(error, Exception):
                raise
            what = "did not start" if self._address is None else f"at {self._address} cannot be joined"
            lines = str(error).strip().splitlines() or ["no message"]
            raise ClusterFailed(f"Ray {what} ({type(error).__name__}: {lines[0]}).") from error
        return found

    def close(self) -> None:
        """End the Ray that was started here, or leave the one that was joined."""
        if self._over is not None:
            import ray

            ray.shutdown()  # of a cluster that was joined this ends nothing but the connection
            self._over.set()
            self._over = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _options(self) -> dict[str, Any]:
        """Return the arguments of `ray.init`: where Ray runs, and how much of this machine it may use."""
        if self._address is not None:
            _refuse(unreachable(self._address))
            return {"address": self._address}
        own = {"address": "local", "include_dashboard": False, "_temp_dir": str(self.folder)}
        return {**own, "num_cpus": self._processors, "object_store_memory": OBJECT_STORE}


def nodes() -> list[Node]:
    """Return the hosts of the cluster that this process has joined, as Ray lists them."""
    import ray

    found: list[Node] = ray.nodes()  # type: ignore[no-untyped-call]
    return found


@contextmanager
def interrupted() -> Iterator[None]:
    """Raise Ctrl-C as KeyboardInterrupt: while Ray's compiled code waits, it arrives as a SystemError."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


def _refuse(sentence: str | None) -> None:
    if sentence:
        raise ClusterFailed(sentence)


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
