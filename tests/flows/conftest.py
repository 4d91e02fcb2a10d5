"""Servers that tests start and always end, flows called in this process, and a browser without a window."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.__main__ import main
from flows.processes import await_answer, free_ports

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


@pytest.fixture(scope="session")
def running() -> Running:
    """Runs a command, in a group of its own, for the time of a `with` block, which begins when `url` answers."""
    return _running


@pytest.fixture(scope="session")
def quiet() -> dict[str, str]:
    """Our environment without what a user has set for Prefect, and with servers that report to nobody."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")} | QUIET


@dataclass(frozen=True)
class Prefect:
    """A Prefect server. variables: what a command needs to use it. empty: its database, before anything ran."""

    variables: dict[str, str]
    empty: Path

    def fill(self, runs: Path) -> None:
        """Give a folder of runs a database with Prefect's tables, whose making takes a server 10 seconds."""
        (runs / "prefect").mkdir(parents=True)
        shutil.copy(self.empty, runs / "prefect" / "prefect.db")


@pytest.fixture(scope="session")
def prefect(running: Running, quiet: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    """Prefect's server for all tests that are not about how one starts."""
    home, (port,) = tmp_path_factory.mktemp("prefect"), free_ports(1)
    variables = {
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_HOME": str(home),
        "PREFECT_LOGGING_TO_API_ENABLED": "false", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1",
    }  # fmt: skip
    started = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    url, env = f"{variables['PREFECT_API_URL']}/health", {**quiet, "PREFECT_HOME": str(home)}
    with running([*started, "--no-ui"], home / "server.log", url, env=env, cwd=home):
        with (
            closing(sqlite3.connect(home / "prefect.db")) as source,
            closing(sqlite3.connect(home / "empty.db")) as copy,
        ):
            source.backup(copy)
        yield Prefect(variables, home / "empty.db")


@pytest.fixture
def in_prefect(prefect: Prefect, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets flows that are called in this process use that server."""
    for key, value in {**prefect.variables, "MPLCONFIGDIR": str(prefect.empty.parent / "matplotlib")}.items():
        monkeypatch.setenv(key, value)
    from prefect.settings import PREFECT_API_URL, PREFECT_HOME, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

    url, home = prefect.variables["PREFECT_API_URL"], prefect.empty.parent
    with temporary_settings({PREFECT_API_URL: url, PREFECT_HOME: home, PREFECT_LOGGING_TO_API_ENABLED: False}):
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
def command(in_prefect: None, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Does what `python -m flows` with these arguments does, in this process: exit code, output, errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with _as_before():
            code = main(arguments)
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def mlflow_server(running: Running) -> Running:
    """MLflow's server on a port, started as `make ui` does, for the time of a `with` block."""

    def serve(port: int, place: Path, *store: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        command = ["server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", "--backend-store-uri"]
        started = [sys.executable, "-m", "mlflow", *command, *store]
        return running(started, place / "server.log", f"http://127.0.0.1:{port}/health", cwd=place)

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
        for _ in range(3):
            text = _page(address, home)
            if not (absent := {word for word in words if word not in text}):
                break
        return absent

    return None if BROWSER is None else look
