"""A tracking server of somebody else's that is killed in the middle: results stay, and are tracked once it is back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.deployments import ask

ROOT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).with_name("tiny.yaml")


class Mlflow:
    """An MLflow server on a free port, with a database and artifacts of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        store = [f"sqlite:///{self.place / 'server.db'}", "--artifacts-destination", str(self.place / "artifacts")]
        command = ["server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1", "--backend-store-uri"]
        quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        with (self.place / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", *command, *store], env={**os.environ, **quiet},
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=5).close()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end
                time.sleep(0.2)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def runs(self) -> list[Any]:
        (number,) = [
            one["experiment_id"]
            for one in ask(f"{self.uri}/api", "2.0/mlflow/experiments/search", max_results=100)["experiments"]
            if one["name"] == "tiny"
        ]
        found = ask(f"{self.uri}/api", "2.0/mlflow/runs/search", experiment_ids=[number], max_results=1000)
        return list(found["runs"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Mlflow]:
    one = Mlflow(tmp_path)
    yield one
    one.kill()


def begin(name: str, place: Path, uri: str, *overrides: str) -> subprocess.Popen[str]:
    given = [f"paths.runs={place / 'runs'}", f"paths.cache={place / 'cache'}", *overrides]
    environment = {**os.environ, "MLFLOW_TRACKING_URI": uri}
    environment.pop("PREFECT_API_URL", None)
    return subprocess.Popen(
        [sys.executable, "-m", "flows", name, str(TINY), *given], cwd=ROOT, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.timeout(600)
def test_results_survive_a_server_that_is_gone_and_sync_tracks_them(server: Mlflow, tmp_path: Path) -> None:
    server.start()
    with begin("pipeline", tmp_path, server.uri) as process:
        end = time.monotonic() + 200
        while not list((tmp_path / "runs" / "results" / "methods").glob("*/result.json")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        server.kill()
        _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert f"MLFLOW_TRACKING_URI {server.uri} does not answer" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert list((tmp_path / "runs" / "results").glob("tiny-*/report.html"))
    with begin("pipeline", tmp_path, server.uri) as process:  # nobody is there from the beginning
        _, err = process.communicate(timeout=240)
    assert process.returncode == 2 and "does not answer" in err
    server.start()
    assert {run["info"]["status"] for run in server.runs()} <= {"RUNNING", "FINISHED"}
    with begin("sync", tmp_path, server.uri) as process:
        out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert server.uri in out and not (tmp_path / "runs" / "mlflow.db").exists()
    runs = server.runs()
    assert {run["info"]["status"] for run in runs} <= {"FINISHED", "KILLED"}
    kinds = [{tag["key"]: tag["value"] for tag in run["data"]["tags"]}.get("ldsvm.kind") for run in runs]
    assert {"problem", "method", "trial"} <= set(kinds)
    models = [path.name for path in (tmp_path / "artifacts").rglob("model.skops")]
    assert models
