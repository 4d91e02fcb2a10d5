"""The champion over HTTP: single rows by one client and by eight, as the alias moves, and as processes are killed.

Two versions of a model of the digits are in a registry. The clients (`serve_load.py`) are closed loops in one process
on the same cores as the server. Each answer is compared with what the version that it names says of that row. Beside
it, in the same run and by the same clients, is `mlflow models serve`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, Bar, Result, progress
from benchmarks.serve_load import Clients, Traffic, request
from flows.processes import await_answer, free_ports

CONFIG = "conf/production/digits.yaml"
ROWS = slice(1200, 1400)  # that are asked, of the digits
SIZES = (100, 50)  # basis functions of the two versions
NEAR = 1e-9  # difference of probabilities that are the same


def run(quick: bool) -> Result:
    count, moves, kills = (400, 4, 1) if quick else (20_000, 100, 5)
    result = Result(
        settings={"requests": count, "moves": moves, "kills": kills, "workers": 2, "loop": "closed", "columns": 64}
    )
    with TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        progress("serve: two versions")
        models = store(runs)
        X, names = digits()
        ours = [request("/predict", json.dumps({"rows": [dict(zip(names, row, strict=True))]}).encode()) for row in X]
        right = {number: expected(model, X) for number, model in enumerate(models, 1)}
        with serving(runs) as (port, server):
            traffic = {"1 client": _asked(port, ours, 1, count // 4), "8 clients": _asked(port, ours, 8, count)}
            traffic |= {f"{moves} moves": moving(port, ours, runs, moves)}
            traffic |= {f"{kills} kills": killing(port, ours, server, kills)}
        wrong = {what: wrongs(one, right) for what, one in traffic.items()}
        result.rows += [{"server": "ldsvm", "what": k, **one.row(), "wrong": wrong[k]} for k, one in traffic.items()]
        theirs = [request("/invocations", json.dumps(_split(names, row)).encode()) for row in X]
        with mlflow_serving(runs) as port:
            for what, clients, many in (("1 client", 1, count // 20), ("8 clients", 8, count // 10)):
                progress(f"serve: mlflow models serve, {what}")
                one = _asked(port, theirs, clients, many)
                result.rows.append({"server": "mlflow", "what": what, **one.row(), "wrong": 0})
    eight = result.row(server="ldsvm", what="8 clients")
    result.bars += [
        Bar("p50_ms_of_8_clients", eight["p50_ms"], "<=", 3),
        Bar("p99_ms_of_8_clients", eight["p99_ms"], "<=", 10),
    ]
    every = [row for row in result.rows if row["server"] == "ldsvm"]
    result.bars += [
        Bar("wrong_answers", sum(wrong.values()), "<=", 0),
        Bar("lost_requests", sum(row["lost"] + row["failed"] for row in every), "<=", 0),
        Bar("versions_that_answered_while_the_alias_moved", len(_versions(traffic[f"{moves} moves"])), ">=", 2),
    ]
    return result


def digits() -> tuple[list[list[float]], list[str]]:
    """Return rows of the digits that are asked, and the names of their columns."""
    from sklearn.datasets import load_digits

    X = load_digits().data[ROWS] / 16
    return X.tolist(), [f"p{place}" for place in range(X.shape[1])]


def store(runs: Path) -> list[Any]:
    """Make a registry with two versions, the second of them the champion and the first the one before it."""
    import pandas
    from sklearn.datasets import load_digits

    from ldsvm import LDSVMClassifier
    from ldsvm.production.registry import Registry
    from ldsvm.tracking.client import Tracker

    data = load_digits()
    X = pandas.DataFrame((data.data / 16).astype(np.float32), columns=[f"p{place}" for place in range(64)])
    registry, models, before = Registry(Tracker(runs, "retrain_digits"), "digits"), [], None
    for size in SIZES:
        model = LDSVMClassifier(
            map="adaptive_rbf", n_basis=size, gamma=0.05, alpha=0.01, center_steps=200, random_state=0
        )
        model.fit(X[:1000], data.target[:1000], eval_set=(X[1000:1200], data.target[1000:1200]))
        with registry.tracker.run("retrain", kind="retrain") as made, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of MLflow's own
            version = registry.register(made, made.model(model, X[:3], "digits"), {})
        registry.promote(version, before)
        models.append(model)
        before = version
    return models


def expected(model: Any, X: Sequence[Any]) -> list[tuple[int, float]]:
    """Return class and probability of each row, by the model itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without names
        P = model.predict_proba(np.array(X))
        return list(zip(model.predict(np.array(X)).tolist(), P.max(axis=1).tolist(), strict=True))


def wrongs(traffic: Traffic, right: dict[int, list[tuple[int, float]]]) -> int:
    """Return how many answers are not what the version that they name says."""
    found = 0
    for number, status, body in traffic.answers:
        if status == 200:
            said = json.loads(body)
            (answer,) = said["answers"]
            label, likely = right[said["version"]][number]
            found += answer["class"] != label or abs(answer["probability"] - likely) > NEAR
    return found


def _versions(traffic: Traffic) -> set[int]:
    return {json.loads(body)["version"] for _, status, body in traffic.answers if status == 200}


def _asked(port: int, requests: Sequence[bytes], clients: int, count: int) -> Traffic:
    Clients(port, requests, clients).run(lambda done: done < 50)  # what is only slow at first
    return Clients(port, requests, clients).run(lambda done: done < count)


@contextmanager
def serving(runs: Path, *options: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run `python -m flows serve` for the time of the block; yields its port and its process."""
    (port,) = free_ports(1)
    command = ["-m", "flows", "serve", CONFIG, f"paths.runs={runs}", "--port", str(port), *options]
    with _running(command, runs.parent / "serve.log", f"http://127.0.0.1:{port}/ready", {}) as server:
        yield port, server


@contextmanager
def mlflow_serving(runs: Path) -> Iterator[int]:
    """Run `mlflow models serve` of the champion for the time of the block; yields its port."""
    (port,) = free_ports(1)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # MLflow calls uvicorn by its name
    own = {"PATH": path, "MLFLOW_TRACKING_URI": f"sqlite:///{runs / 'mlflow.db'}", "MLFLOW_DISABLE_TELEMETRY": "true"}
    command = ["-m", "mlflow", "models", "serve", "-m", "models:/digits@champion", "--env-manager", "local"]
    address = ["--host", "127.0.0.1", "--port", str(port), "--workers", "2"]
    with _running([*command, *address], runs.parent / "mlflow.log", f"http://127.0.0.1:{port}/ping", own):
        yield port


@contextmanager
def _running(command: Sequence[str], log: Path, url: str, own: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as out:
        server = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=os.environ | own, stdout=out, stderr=out, start_new_session=True
        )
    try:
        _await(url, server, log)
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _await(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server is ready; 503 means not yet."""
    end = time.monotonic() + 120
    await_answer(url.replace("/ready", "/health"), server, log)
    while time.monotonic() < end:
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{url} was not ready in time; it says why in {log}")


def moving(port: int, requests: Sequence[bytes], runs: Path, moves: int) -> Traffic:
    """Ask by eight clients while another process moves the alias, each time as soon as the last move was followed."""
    progress(f"serve: the alias moves {moves} times")
    mover = multiprocessing.get_context("spawn").Process(target=move, args=(runs, port, moves))
    mover.start()
    traffic = Clients(port, requests, 8).run(lambda _: mover.is_alive())
    mover.join()
    if mover.exitcode:
        raise RuntimeError(f"the process that moves the alias ended with {mover.exitcode}")
    return traffic


def move(runs: Path, port: int, moves: int) -> None:
    """Swap champion and previous so many times, and wait each time until the new champion answers."""
    from ldsvm.production.registry import Registry
    from ldsvm.tracking.client import Tracker

    registry = Registry(Tracker(runs, "retrain_digits"), "digits")
    for _ in range(moves):
        now, _ = registry.rollback()
        end = time.monotonic() + 120  # eight clients and this process share the cores
        while _ready(port) != now.number:
            if time.monotonic() > end:
                raise RuntimeError(f"version {now.number} did not answer within 120 s")
            time.sleep(0.1)


def _ready(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10) as answer:
        found: int = json.load(answer)["version"]
        return found


def killing(port: int, requests: Sequence[bytes], server: subprocess.Popen[bytes], kills: int) -> Traffic:
    """Ask by eight clients while one of the processes that answer is killed, again and again."""
    progress(f"serve: {kills} processes are killed")
    killer = threading.Thread(target=_kill, args=(server.pid, kills))
    killer.start()
    return Clients(port, requests, 8).run(lambda _: killer.is_alive())


def _kill(pid: int, kills: int) -> None:
    for turn in range(kills):
        time.sleep(1.0)
        os.kill(workers(pid)[turn % 2], signal.SIGKILL)
    time.sleep(2.0)


def workers(pid: int) -> list[int]:
    """Return the processes that answer: those below the server's which have none below them."""
    import psutil  # type: ignore[import-untyped]

    return sorted(one.pid for one in psutil.Process(pid).children(recursive=True) if not one.children())


def _split(names: list[str], row: list[float]) -> dict[str, Any]:
    return {"dataframe_split": {"columns": names, "data": [row]}}


def quoted(result: Result) -> list[tuple[str, str]]:
    def said(server: str, what: str) -> str:
        row = result.row(server=server, what=what)
        return f"median {row['p50_ms']:.1f} ms, 99 of 100 within {row['p99_ms']:.1f} ms, {row['per_s']:,.0f} a second"

    whole = [row for row in result.rows if row["server"] == "ldsvm"]
    asked, again = (sum(row[key] for row in whole) for key in ("requests", "repeated"))
    wrong, lost = result.bar("wrong_answers"), result.bar("lost_requests")
    return [
        ("single rows of 64 columns over HTTP by `python -m flows serve`, 8 clients", said("ldsvm", "8 clients")),
        ("the same by `mlflow models serve`", said("mlflow", "8 clients")),
        (
            f"{asked:,.0f} answers while the alias moved {result.settings['moves']} times and "
            f"{result.settings['kills']} processes were killed",
            f"{wrong:.0f} wrong, {lost:.0f} lost, {again:,.0f} requests sent again",
        ),
    ]
