"""The one place that sets up Prefect: quiet, local, in the project's folder. Must come before `import prefect`."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from uuid import UUID

from flows import ROOT, prefect_store
from flows.processes import await_answer, end_with_parent, free_ports

# What a server does besides answering, for runs that are planned, late or abandoned.
PLANNING = (
    "SCHEDULER", "LATE_RUNS", "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "PAUSE_EXPIRATIONS", "FOREMAN",
    "REPOSSESSOR", "TRIGGERS",
)  # fmt: skip


def configure(runs: Path) -> None:
    """Set Prefect's environment. Variables that the user has set stay; with a PREFECT_API_URL none is touched."""
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


def configure_service(runs: Path, api_url: str, mlflow_port: int) -> None:
    """Set the environment of `make up`, for its servers and its worker, from which flow runs inherit it.

    The user's own variables for Prefect are dropped: database and address must be ours, in the folder `runs`.
    """
    for key in [key for key in os.environ if key.startswith("PREFECT_") or key == "PYTHONDONTWRITEBYTECODE"]:
        del os.environ[key]  # the latter would let each process compile Prefect and MLflow anew
    configure(runs)
    os.environ |= {
        "PREFECT_API_URL": api_url,
        "PREFECT_LOGGING_TO_API_ENABLED": "true",  # a run's page shows its log
        "PREFECT_UI_STATIC_DIRECTORY": str(runs / "prefect" / "ui"),  # else the server copies it beside its code
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_UI_API_URL": "/api",  # else the pages ask 127.0.0.1 of the browser's machine
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",  # for the name python
        "PYTHONIOENCODING": "utf-8:replace",
        "LDSVM_ROOT": str(ROOT),
        "LDSVM_RUNS": str(runs),
        "LDSVM_DATA": os.environ.get("DATA", ""),
        "LDSVM_MLFLOW_PORT": str(mlflow_port),
    }


def set_up_deployed_run() -> None:
    """Set up a deployed run before its flow is loaded: a step of prefect.yaml.

    Opens the tracking store and logs the link to it. Raises ConfigError when the run would write into another folder
    than that of `make up`, since MLflow's server would not find its results there.
    """
    from prefect.logging.loggers import flow_run_logger
    from prefect.runtime import flow_run

    if flow_run.id is None:  # after a crash the worker itself loads the flow once more, to look for hooks
        return
    try:
        page = _open_store(flow_run.parameters, flow_run.id)
    except Exception as error:
        from flows.alarms import on_refused

        on_refused(flow_run, error)
        raise
    logger = flow_run_logger(flow_run_id=UUID(flow_run.id), flow_run_name=flow_run.name)
    logger.info("MLflow UI: %s", page)


def _open_store(given: Mapping[str, Any], number: str) -> str:
    """Open the tracking store for a deployed run and return the link to it."""
    from flows._cli import load_any
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.tracking.client import Tracker, link

    ours = os.environ["LDSVM_RUNS"]
    runs = (config := load_any(given["config"], given.get("overrides", ()))).paths.runs
    if runs != Path(ours):
        raise ConfigError(f"paths.runs is {runs}; allowed: {ours}, the folder of make up (remove the override).")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Prefect lets every deprecation in others' code through here
        experiment_id = Tracker(runs, config.name, number).experiment_id
    return link(experiment_id, int(os.environ["LDSVM_MLFLOW_PORT"]), number)


def check_api() -> None:
    """Raise ConfigError when the user has set PREFECT_API_URL and no Prefect server answers there."""
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.tracking.server import redacted

    # Asked without user and password: a server that wants them says so, which is an answer too.
    url = redacted(os.environ.get("PREFECT_API_URL", ""))
    if url and (why := _why_no_answer(url)):
        raise ConfigError(
            f'PREFECT_API_URL is "{url}", where no Prefect server answers ({why}); '
            "allowed: the address of a server, such as http://127.0.0.1:4200/api, or unset."
        )


def _why_no_answer(url: str) -> str:
    """Return why an address is not a Prefect API; "" when it is one, even if it asks for a key or is busy."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=10) as answer:
            kind = answer.headers.get_content_type()
            return "" if kind == "application/json" else f"it answers with {kind}"
    except urllib.error.HTTPError as error:
        error.close()
        return error.reason if error.code == 404 else ""
    except (OSError, ValueError, HTTPException) as error:
        return str(getattr(error, "reason", error))


@contextmanager
def api(runs: Path) -> Iterator[Callable[[], None]]:
    """Provide Prefect's API for the duration of the block: the user's PREFECT_API_URL, or a private server on loopback.

    Yields a function that waits until the API answers. Prefect would start a temporary server itself, but only when the
    flow begins, after importing it into this process. Ours starts at once, during the imports and the opening of the
    tracking store, so that users wait less.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield lambda: None
        return
    from ldsvm.atomic import alone

    (port,) = free_ports(1)
    file = runs / "logs" / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}-prefect-server.log"
    with ExitStack() as start:
        start.enter_context(alone(runs / "service"))  # two servers that make the database at once break it
        new = prefect_store.provide()
        server = _launch(port, file)
        os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"

        def wait() -> None:
            await_answer(f"http://127.0.0.1:{port}/api/health", server, file)
            if new:
                prefect_store.keep()
            start.close()

        try:
            yield wait
        finally:
            del os.environ["PREFECT_API_URL"]
            _stop(server)


def _launch(port: int, file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    idle = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in PLANNING}  # nothing is planned here
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as log:
        # Its own session, so that a Ctrl-C meant for us does not end it before the runs are marked.
        return subprocess.Popen(
            [*command, "--no-ui"], env=idle | os.environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=end_with_parent,
        )  # fmt: skip


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=3)  # every request has been answered, so it may be killed while it tidies up
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
