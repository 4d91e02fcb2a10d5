"""The one place that sets up Prefect: quiet, local, in the project's folder. Must come before `import prefect`."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from flows import ROOT

START_SECONDS = 120.0  # a loaded machine has needed 15; the first start also creates the database


def configure(runs: Path) -> None:
    """Set Prefect's environment; what the user has set stays, and with a PREFECT_API_URL all of it."""
    os.environ.setdefault("MPLCONFIGDIR", str(runs / "matplotlib"))  # else it writes to the user's home
    if os.environ.get("PREFECT_API_URL"):
        return
    settings = {
        "PREFECT_HOME": str(runs / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",  # the log goes to a file of ours
        "PREFECT_CLI_PROMPT": "false",
    }
    for key, value in settings.items():
        os.environ.setdefault(key, value)


def serve(runs: Path, api_url: str, mlflow_port: int) -> None:
    """Set the environment of `make up`: its servers, its worker, and the flow runs, which inherit the worker's.

    What the user has set for Prefect is dropped: database and address must be ours, in the folder `runs`.
    """
    for key in [key for key in os.environ if key.startswith("PREFECT_")]:
        del os.environ[key]
    configure(runs)
    os.environ |= {
        "PREFECT_API_URL": api_url,
        "PREFECT_LOGGING_TO_API_ENABLED": "true",  # a run's page shows its log
        "PREFECT_UI_STATIC_DIRECTORY": str(runs / "prefect" / "ui"),  # else the server copies it beside its code
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",  # for the name python
        "PYTHONIOENCODING": "utf-8:replace",
        "LDSVM_ROOT": str(ROOT),
        "LDSVM_RUNS": str(runs),
        "LDSVM_MLFLOW_PORT": str(mlflow_port),
    }


def attend() -> None:
    """Do for a deployed run what the command line does for its own, before the flow is loaded: a step of prefect.yaml.

    The environment is the worker's already. Opens the tracking store and writes the link to it into the run's log.
    Raises ConfigError when the run would write into another folder than that of `make up`, where MLflow's server does
    not look.
    """
    from prefect.logging.loggers import flow_run_logger
    from prefect.runtime import flow_run

    from ldsvm.experiment.load import ConfigError, load_config
    from ldsvm.experiment.tracking import Tracker, link

    given, runs = flow_run.parameters, os.environ["LDSVM_RUNS"]
    config = load_config(given["config"], given["overrides"], root=ROOT)
    logger = flow_run_logger(flow_run_id=UUID(flow_run.id), flow_run_name=flow_run.name)
    if config.paths.runs != Path(runs):
        raise ConfigError(
            f'paths.runs is {config.paths.runs}; allowed: "paths.runs={runs}" in overrides, as make up has.'
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Prefect lets every deprecation in others' code through here
        experiment_id = Tracker(config.paths.runs, config.name).experiment_id
    logger.info("MLflow UI: %s", link(experiment_id, int(os.environ["LDSVM_MLFLOW_PORT"])))


@contextmanager
def api(runs: Path) -> Iterator[Callable[[], None]]:
    """Provide Prefect's API for the time of the block: the user's PREFECT_API_URL, or a private one on loopback.

    Yields a function that waits until the API answers. Prefect starts a temporary server by itself too, but only when
    the flow begins, and it imports the server into this process first. Starting it here, at once, hides its seconds
    behind the imports and the opening of the tracking store.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield lambda: None
        return
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "prefect",
        "server",
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-ui",
    ]
    file = runs / "logs" / "prefect-server.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as log:
        # Its own session, so that a Ctrl-C meant for us does not end it before the runs are marked.
        server = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
    try:
        yield lambda: _wait(server, port, file)
    finally:
        del os.environ["PREFECT_API_URL"]
        _stop(server)


def _end_with_parent() -> None:
    """In the server's process: let the kernel end it when its parent dies, however that happens (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"Prefect's server did not answer within {START_SECONDS:.0f} s or ended; it says why in {log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
