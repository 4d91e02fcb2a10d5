"""Servers that tests start and always end, and a browser without a window to look at them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from flows.processes import await_answer

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
