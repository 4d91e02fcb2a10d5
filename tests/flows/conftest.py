"""Servers that tests start and always end, flows called in this process, and a browser without a window."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows import prefect_store
from flows.__main__ import main
from flows.environment import PLANNING
from flows.processes import await_answer, free_ports
from ldsvm.atomic import alone
from ldsvm.experiment.search.worker import Worker
from ldsvm.tracking import client

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
}  # fmt: skip
Running = Callable[..., AbstractContextManager["subprocess.Popen[bytes]"]]


@contextmanager
def _running(
    command: Sequence[str], log: Path, url: str | None = None, **given: Any
) -> Iterator[subprocess.Popen[bytes]]:
    given.setdefault("env", {**os.environ, **QUIET})
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, **given)
    try:
        if url is not None:
            await_answer(url, process, log)
        yield process
    finally:
        for sign in (signal.SIGTERM, signal.SIGKILL):  # the second one for what of its group is left
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)


@pytest.fixture(scope="session", autouse=True)
def fonts(shared: Path) -> Iterator[None]:
    """Let matplotlib look for the fonts of this machine once, in seconds, and not in each folder of runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(shared / "matplotlib"))
        yield


@pytest.fixture(scope="session")
def running() -> Running:
    """Runs a command, in a group of its own, for the time of a `with` block, which begins when `url` answers."""
    return _running


@pytest.fixture(scope="session")
def quiet() -> dict[str, str]:
    """Our environment without what a user has set for Prefect, and with servers that report to nobody."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")} | QUIET


class Fitter(Worker):
    """The process that fits for all flows called in this one, which has imported NumPy and its friends only once."""

    def __exit__(self, *_: object) -> None:
        """Leave it for the next flow."""


@dataclass(frozen=True)
class Prefect:
    """A Prefect server. variables: what a command needs to use it. fitter: fits for flows called in this process."""

    variables: dict[str, str]
    fitter: Fitter

    def fill(self, runs: Path) -> None:
        """Give a folder of runs databases with Prefect's and MLflow's tables, whose making takes 12 seconds."""
        prefect_store.provide({"PREFECT_HOME": str(runs / "prefect")})
        client._make_tables(client.store_uri(runs), (runs / "artifacts").as_uri())

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let flows that are called in this process use it."""
        with pytest.MonkeyPatch.context() as patch:
            for key, value in self.variables.items():
                patch.setenv(key, value)
            from prefect.settings import (
                PREFECT_API_URL,
                PREFECT_HOME,
                PREFECT_LOGGING_TO_API_ENABLED,
                temporary_settings,
            )

            url, home = self.variables["PREFECT_API_URL"], Path(self.variables["PREFECT_HOME"])
            with temporary_settings({PREFECT_API_URL: url, PREFECT_HOME: home, PREFECT_LOGGING_TO_API_ENABLED: False}):
                from flows._runtime import WORKERS

                patch.setattr(WORKERS, "worker", self.fitter)
                yield

    def call(self, *arguments: str) -> int:
        """Do what `python -m flows` with these arguments does, in this process; return the exit code."""
        with self.used(), _as_before():
            return main(arguments)


@pytest.fixture(scope="session")
def prefect(shared: Path, quiet: dict[str, str]) -> Iterator[Prefect]:
    """Prefect's server for all tests that are not about how one starts, in whichever process of pytest they are.

    The first one that needs it starts it, and the last one that has used it ends it.
    """
    home = shared / "prefect"
    with (home.with_name("users-of-prefect")).open("w") as users:
        with alone(home):
            if not (home / "started").exists():
                _start_prefect(home, quiet)
            pid, port = (home / "started").read_text("utf-8").split()
            fcntl.flock(users, fcntl.LOCK_SH)
        variables = {
            "PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_HOME": str(home),
            "PREFECT_LOGGING_TO_API_ENABLED": "false", "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
        }  # fmt: skip
        fitter = Fitter()
        yield Prefect(variables, fitter)
        fitter.close()
        with alone(home), suppress(BlockingIOError):  # another process uses it
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (home / "started").unlink()
            _end(int(pid))


def _start_prefect(home: Path, quiet: dict[str, str]) -> None:
    """Start a server, and write its process and port into the file `started`."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui", "--host", "127.0.0.1", "--port"]
    off = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in (*PLANNING, "EVENT_PERSISTER")}
    env, log = {**quiet, **off, "PREFECT_HOME": str(home)}, home / "server.log"
    new = prefect_store.provide(env)
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*command, str(port)], stdout=out, stderr=out, env=env, cwd=home, start_new_session=True
        )
    try:
        await_answer(f"http://127.0.0.1:{port}/api/health", process, log)
        if new:
            prefect_store.keep(env)
    except BaseException:
        _end(process.pid)
        raise
    process.returncode = 0  # this process may end before the server does
    (home / "started").write_text(f"{process.pid} {port}", "utf-8")


def _end(group: int) -> None:
    """End the processes of a group, which may have 15 seconds for it."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        for _ in range(150):
            time.sleep(0.1)
            with suppress(ChildProcessError):
                os.waitpid(group, os.WNOHANG)  # else what has ended is still there
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)


@pytest.fixture
def in_prefect(prefect: Prefect) -> Iterator[None]:
    """Lets flows that are called in this process use that server."""
    with prefect.used():
        yield


@contextmanager
def _as_before() -> Iterator[None]:
    """Undoes what the command line does to the process that it has to itself."""
    root, ends = logging.getLogger(), (signal.SIGTERM, signal.SIGHUP)
    handlers, level, raises = list(root.handlers), root.level, logging.raiseExceptions
    signals = [signal.getsignal(end) for end in ends]
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as Python itself: they are shown, but for those to programmers
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        try:
            yield
        finally:
            for handler in set(root.handlers) - set(handlers):
                handler.close()
            root.handlers, logging.raiseExceptions = handlers, raises
            root.setLevel(level)
            for end, handler_before in zip(ends, signals, strict=True):
                signal.signal(end, handler_before)


@pytest.fixture
def command(prefect: Prefect, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Does what `python -m flows` with these arguments does, in this process: exit code, output, errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return prefect.call(*arguments), *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def mlflow_server(running: Running) -> Running:
    """MLflow's server of a folder of runs on a port, started as `make ui` does, for the time of a `with` block."""

    def serve(runs: Path, port: int) -> AbstractContextManager[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "ldsvm.tracking.ui", str(runs), str(port)]
        elsewhere = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}  # which it does not ask
        env = {**os.environ, **QUIET, **elsewhere}
        return running(command, runs / "server.log", f"http://127.0.0.1:{port}/health", cwd=runs, env=env)

    return serve


def _page(address: str, home: Path) -> str:
    """The page once its scripts have run, in a window so wide that no column is left out."""
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={home / 'browser'}"]
    flags += ["--window-size=3000,1600", "--virtual-time-budget=30000", "--dump-dom"]
    command = [BROWSER, *flags, address]
    variables = {**os.environ, "HOME": str(home)}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture(scope="session")
def page() -> Callable[[str, Path], str] | None:
    """Returns what a browser makes of an address, given a folder for itself; None where there is no browser."""
    return None if BROWSER is None else _page


@pytest.fixture(scope="session")
def missing() -> Callable[[set[str], str, Path], set[str]] | None:
    """Tells which of these words a page does not have, looking up to three times: a machine may be busy."""

    def look(words: set[str], address: str, home: Path) -> set[str]:
        absent = words
        for _ in range(3):
            with suppress(subprocess.TimeoutExpired):
                text = _page(address, home)
                if not (absent := {word for word in words if word not in text}):
                    break
        return absent

    return None if BROWSER is None else look
