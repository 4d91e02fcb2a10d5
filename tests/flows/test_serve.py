"""The champion over HTTP as README starts it: MLflow bounds no request; whatever comes, the next one is answered."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris

from flows.processes import free_ports
from ldsvm import LDSVMClassifier
from ldsvm.tracking.client import Tracker, store_uri

NAMES = ["a", "b", "c", "d"]
ROWS = load_iris().data.tolist()


def asked(url: str, body: bytes) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=200) as answer:
            return answer.status, json.load(answer)["predictions"]
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, None


def split(names: list[str], rows: list[list[float]]) -> bytes:
    return json.dumps({"dataframe_split": {"columns": names, "data": rows}}).encode()


@pytest.mark.server
@pytest.mark.filterwarnings("ignore:Operation with range is deprecated")  # of pandas, in MLflow
@pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated")
@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType")
def test_requests_too_large_or_too_wide_leave_the_server_answering(
    running: Callable[..., AbstractContextManager[Any]], quiet: dict[str, str], tmp_path: Path
) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.set_axis(NAMES, axis=1)
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(X, y)
    tracker = Tracker(tmp_path, "serve")
    with tracker.run("retrain", kind="retrain") as run:
        source = run.model(model, X[:3], "iris")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", source, "--env-manager", "local"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # MLflow calls uvicorn by its name
    variables = {**quiet, "PATH": path, "MLFLOW_TRACKING_URI": store_uri(tmp_path)}
    address = f"http://127.0.0.1:{port}"
    log = tmp_path / "serve.log"
    with running([*command, "--port", str(port)], log, f"{address}/ping", env=variables, cwd=tmp_path):
        good, right = split(NAMES, ROWS[:2]), (200, model.predict(X[:2]).tolist())
        many = split(NAMES, ROWS * 800)
        assert len(many) > 2_000_000
        for body, code in (
            (many, 200),
            (b" " * len(many), 400),
            (
                split([*NAMES, *map(str, range(20_000))], [ROWS[0] + [0.0] * 20_000]),
                200,
            ),  # what is too much is left out
            (split(NAMES, [[0.0] * 20_000]), 400),
            (split(NAMES[1:], [ROWS[0][1:]]), 400),
        ):
            assert asked(f"{address}/invocations", body)[0] == code
            assert asked(f"{address}/invocations", good) == right
