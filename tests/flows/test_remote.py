"""A tracking server of somebody else's that is killed in the middle: results stay, and are tracked once it is back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from flows.deployments import post
from flows.processes import free_ports
from ldsvm.tracking import client

ROOT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).with_name("tiny.yaml")
pytestmark = pytest.mark.server


def tracked(uri: str) -> list[Any]:
    (number,) = [
        one["experiment_id"]
        for one in post(f"{uri}/api", "2.0/mlflow/experiments/search", max_results=100)["experiments"]
        if one["name"] == "tiny"
    ]
    found = post(f"{uri}/api", "2.0/mlflow/runs/search", experiment_ids=[number], max_results=1000)
    return list(found["runs"])


@pytest.mark.timeout(600)
def test_results_survive_a_server_that_is_gone_and_sync_tracks_them(
    mlflow_server: Callable[..., AbstractContextManager[subprocess.Popen[bytes]]],
    prefect: Any,
    command: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (port,) = free_ports(1)
    uri, served = f"http://127.0.0.1:{port}", tmp_path / "server"

    given = [str(TINY), f"paths.runs={tmp_path / 'runs'}", f"paths.cache={tmp_path / 'cache'}"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")  # tries again at once
    served.mkdir()
    client._make_tables(client.store_uri(served), "mlflow-artifacts:")

    def begin() -> subprocess.Popen[str]:  # a process of its own, so that it is gone when its runs are looked for
        return subprocess.Popen(
            [sys.executable, "-m", "flows", "pipeline", *given], cwd=ROOT, env={**os.environ, **prefect.variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def serve() -> AbstractContextManager[subprocess.Popen[bytes]]:
        return mlflow_server(served, port)

    with serve() as server, begin() as process:
        end = time.monotonic() + 200
        while not list((tmp_path / "runs" / "results" / "methods").glob("*/result.json")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        os.killpg(server.pid, signal.SIGKILL)
        _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert f"MLFLOW_TRACKING_URI {uri} does not answer" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert list((tmp_path / "runs" / "results").glob("tiny-*/report.html"))
    code, _, err = command("pipeline", *given)  # nobody is there from the beginning
    assert code == 2 and "does not answer" in err
    with serve():
        assert {run["info"]["status"] for run in tracked(uri)} <= {"RUNNING", "FINISHED"}
        code, out, err = command("sync", *given)
        runs = tracked(uri)
    assert code == 0, err
    assert uri in out and not (tmp_path / "runs" / "mlflow.db").exists()
    assert {run["info"]["status"] for run in runs} <= {"FINISHED", "KILLED"}
    kinds = [{tag["key"]: tag["value"] for tag in run["data"]["tags"]}.get("ldsvm.kind") for run in runs]
    assert {"problem", "method", "trial"} <= set(kinds)
    models = [path.name for path in (served / "artifacts").rglob("model.skops")]
    assert models
