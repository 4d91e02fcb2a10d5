"""The real servers and a real worker, on free ports, in a folder of their own, and what ends them."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from flows import deployments
from flows.deployments import post
from flows.processes import Process, free_ports
from flows.service import main
from ldsvm.production.alarms import journal

ROOT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).with_name("tiny.yaml")
Missing = Callable[[set[str], str, Path], set[str]]
LONG = TINY.with_name("long.yaml")
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
]


@dataclass
class Service:
    """`python -m flows.service` with a folder and ports of its own, and ways to look at what it started."""

    place: Path
    prefect: int
    mlflow: int

    @property
    def runs(self) -> Path:
        return self.place / "runs"

    @property
    def variables(self) -> dict[str, str]:
        given = {"RUNS": str(self.runs), "PREFECT_PORT": str(self.prefect), "PORT": str(self.mlflow)}
        given["DATA"] = os.pathsep.join([str(TINY.parent), str(self.place)])  # what deployed runs may reach
        return given

    def call(self, action: str) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, "-m", "flows.service", action], self.variables)

    def here(self, action: str) -> tuple[int, str, str]:
        """Do the same in this process, which has imported everything: exit code, output, errors."""
        out, err = io.StringIO(), io.StringIO()
        with patch.dict(os.environ, self.variables), redirect_stdout(out), redirect_stderr(err):
            code = main([action])
        return code, out.getvalue(), err.getvalue()

    def parameters(self, experiment: Path, *overrides: str) -> dict[str, Any]:
        """Parameters for a deployment, which is given another experiment; none of them says where the results go."""
        return {"config": str(experiment), "overrides": [f"paths.cache={self.place / 'cache'}", *overrides]}

    def watch(self, name: str) -> int:
        """Start a deployment as a user does, and return the exit code."""
        given = [f"--param={key}={json.dumps(value)}" for key, value in self.parameters(TINY).items()]
        command = [sys.executable, "-m", "prefect", "deployment", "run", f"pipeline/{name}", "--watch", *given]
        home = str(self.place / "home")
        variables = {"PREFECT_API_URL": f"http://127.0.0.1:{self.prefect}/api", "PREFECT_HOME": home}
        return self._run(command, variables).returncode

    def start(self, name: str, *overrides: str) -> str:
        """Start a deployment as Prefect's pages do, which is quicker; return the number of the run."""
        given = self.parameters(LONG, *overrides)
        key = str(time.monotonic_ns())  # the server knows a request that comes again
        found = self.ask(f"deployments/{self.number(name)}/create_flow_run", parameters=given, idempotency_key=key)
        return str(found["id"])

    def number(self, name: str) -> str:
        found = self.ask("deployments/filter", flows={"name": {"any_": ["pipeline"]}})
        (number,) = [one["id"] for one in found if one["name"] == name]
        return str(number)

    def _run(self, command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        every = {**os.environ, **variables}
        return subprocess.run(command, cwd=ROOT, env=every, capture_output=True, text=True, check=False, timeout=200)

    def ask(self, path: str, **body: Any) -> Any:
        """Return the answer of Prefect's API, or of MLflow's when the path is one of those."""
        port = self.mlflow if path.startswith("2.0") else self.prefect
        return post(f"http://127.0.0.1:{port}/api", path, **body)

    def state(self, number: str) -> str:
        (run,) = self.ask("flow_runs/filter", flow_runs={"id": {"any_": [number]}})
        return str(run["state"]["type"])

    def said(self, number: str) -> str:
        """All that a flow run says on its page."""
        lines = self.ask("logs/filter", logs={"flow_run_id": {"any_": [number]}})
        return "\n".join(line["message"] for line in lines)

    def tracked(self, status: str) -> int:
        return column(self.runs / "mlflow.db", "select status from runs").count(status)

    def process(self, name: str) -> Process:
        said = json.loads((self.runs / "service" / f"{name}.pid").read_text("utf-8"))
        return Process(said["pid"], said["born"])

    def processes(self) -> dict[int, str]:
        """Number and command line of every process that has our folder in its environment, whoever its parent is."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"LDSVM_RUNS={self.runs}\0".encode() in (folder / "environ").read_bytes():
                    found[int(folder.name)] = (folder / "cmdline").read_text("utf-8").replace("\0", " ")
            except OSError:
                continue
        return found

    def flow_runs(self) -> list[int]:
        """Number of every process that is a flow run."""
        return [number for number, command in self.processes().items() if "prefect.engine" in command]


def column(store: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        return [value for (value,) in connection.execute(query)]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < end, f"it did not happen: {what}"
        time.sleep(0.3)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path, *free_ports(2))
    yield one
    if list(one.runs.glob("service/*.pid")):  # a test failed half-way
        one.call("down")


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("prefect")  # whose database is then kept for the next
def test_the_whole_life_of_a_service(service: Service, missing: Missing | None) -> None:
    """One test of several acts, because each start of the servers takes 15 seconds."""
    up = service.call("up")
    assert up.returncode == 0, up.stderr
    for part in (f"127.0.0.1:{service.prefect}", f"127.0.0.1:{service.mlflow}", "'pipeline/digits' --watch"):
        assert part in up.stdout
    _a_run_is_green_and_both_servers_show_it(service)
    if missing is not None:  # there is a browser
        _so_do_prefects_own_pages(service, missing)
    _a_run_for_another_folder_is_refused(service)
    _a_run_whose_process_is_killed_is_crashed_at_once(service)
    _a_run_that_was_killed_with_its_worker_is_crashed_and_what_died_starts_again(service)
    missed = _so_is_a_run_whose_worker_was_asked_to_end(service)
    _of_the_runs_that_were_missed_one_is_made_up_for(service, missed)
    _down_leaves_nothing_behind(service)


def _a_run_is_green_and_both_servers_show_it(service: Service) -> None:
    """Its overrides are others than prefect.yaml's, and it still writes where MLflow's server looks."""
    assert service.watch("digits") == 0
    ((number, state),) = [(run["id"], run["state"]["type"]) for run in service.ask("flow_runs/filter")]
    assert state == "COMPLETED"
    experiments = service.ask("2.0/mlflow/experiments/search", max_results=10)["experiments"]
    (experiment,) = [one["experiment_id"] for one in experiments if one["name"] == "tiny"]
    found = service.ask("2.0/mlflow/runs/search", experiment_ids=[experiment])["runs"]
    assert [one["info"]["status"] for one in found] == ["FINISHED"] * 6  # a problem, two methods, three trials
    assert f"127.0.0.1:{service.mlflow}/#/experiments/{experiment}/runs" in service.said(number)
    with urllib.request.urlopen(f"http://127.0.0.1:{service.prefect}/ui-settings") as answer:
        assert json.load(answer)["api_url"] == "/api"  # so that the pages work under another name, behind a proxy


def _so_do_prefects_own_pages(service: Service, missing: Missing) -> None:
    """The run's page says Completed, and its artifacts are a table and a text with the errors of that run."""
    (run,), pages = service.ask("flow_runs/filter"), f"http://127.0.0.1:{service.prefect}"
    state = {f"<title>Flow Run: {run['name']} ", "<span>Completed</span>"}
    assert not missing(state, f"{pages}/runs/flow-run/{run['id']}", service.place)
    found = service.ask("artifacts/filter", flow_runs={"id": {"any_": [run["id"]]}})
    kinds = {one["type"]: one for one in found if one["type"] != "progress"}
    rows = json.loads(kinds["table"]["data"])
    errors = [row["error %"] for row in rows if row["method"] != "always largest class"]
    assert len(errors) == 2 and all(float(error) < 50 for error in errors)
    for one in kinds.values():
        words = {run["name"]} if one["type"] == "table" else {"<h2", "odd or even"}
        assert not missing({"error %", *errors, *words}, f"{pages}/artifacts/artifact/{one['id']}", service.place)
    assert set(kinds) == {"table", "markdown"}


def _a_run_for_another_folder_is_refused(service: Service) -> None:
    refused = service.start("pcmac", f"paths.runs={service.place / 'other'}")
    wait_for(lambda: service.state(refused) == "CRASHED", "the run is refused")
    assert f"allowed: {service.runs}, the folder of make up" in service.said(refused)
    assert not (service.place / "other").exists()


def _a_run_whose_process_is_killed_is_crashed_at_once(service: Service) -> None:
    killed = service.start("digits")
    wait_for(lambda: service.tracked("RUNNING") > 0, "the first run computes")
    (process,) = service.flow_runs()
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: service.state(killed) == "CRASHED", "the worker says that its run has died")
    assert service.tracked("RUNNING") > 0  # the tracking store hears of it from the next run


def _a_run_that_was_killed_with_its_worker_is_crashed_and_what_died_starts_again(service: Service) -> None:
    before = service.tracked("KILLED")
    left = service.start("digits")
    wait_for(lambda: service.tracked("KILLED") > before, "the second run marks what the first one left")
    wait_for(lambda: service.tracked("RUNNING") > 0, "the second run computes")
    service.ask(f"deployments/{service.number('own-table')}/pause_deployment")  # as a user does in Prefect's pages
    worker, mlflow, prefect = map(service.process, ("worker", "mlflow", "prefect"))
    for number in (worker.pid, mlflow.pid, *service.flow_runs()):
        os.kill(number, signal.SIGKILL)
    wait_for(lambda: service.state(left) == "CRASHED", "the watch has started a worker, which marks the run")
    assert service.process("worker") != worker and service.process("mlflow") != mlflow
    assert service.process("prefect") == prefect
    code, said, err = service.here("up")  # which waits until all is well
    assert code == 0, err
    assert said.count("runs already") == 4
    assert service.process("prefect") == prefect
    said = service.here("status")[1]
    assert re.search("mlflow .* healthy, restarted once", said) and re.search("worker .* healthy, restarted once", said)
    assert [one["name"] for one in service.ask("deployments/filter") if one["paused"]] == ["own-table"]


def _so_is_a_run_whose_worker_was_asked_to_end(service: Service) -> list[str]:
    """Return the runs that were due while no worker was there."""
    before = service.tracked("KILLED")
    left = service.start("digits")
    wait_for(lambda: service.tracked("KILLED") > before, "the run marks what the one before left")
    wait_for(lambda: service.tracked("RUNNING") > 0, "the run computes")
    worker = service.process("worker")
    os.kill(worker.pid, signal.SIGTERM)  # what a machine that is shut down sends
    wait_for(lambda: not worker.alive, "the worker has ended")
    assert service.state(left) == "RUNNING"  # so Prefect believes
    missed = [service.start("digits"), service.start("digits")]
    wait_for(lambda: service.state(left) == "CRASHED", "the watch has started a worker once more")
    return missed


def _of_the_runs_that_were_missed_one_is_made_up_for(service: Service, missed: list[str]) -> None:
    """It has the place of the one before, the other is cancelled, and `up` in its middle disturbs nothing."""
    wait_for(lambda: sorted(map(service.state, missed)) == ["CANCELLED", "RUNNING"], "one runs, one is cancelled")
    running = next(number for number in missed if service.state(number) == "RUNNING")
    worker = service.process("worker")
    assert "worker runs already" in service.here("up")[1]
    assert service.process("worker") == worker
    assert service.state(running) == "RUNNING"
    code, said, _ = service.here("status")
    assert (code, said.count("healthy"), said.count("restarted 2 times")) == (0, 4, 1)
    for name in deployments.wanted_deployments():
        by_hand = name.startswith(("promote/", "rollback/"))
        assert re.search(rf"{name} " if by_hand else rf"{name} .* Europe/Berlin \(off\)", said)


def _down_leaves_nothing_behind(service: Service) -> None:
    """Also when the watch and a server have been killed, each of which the status names."""
    assert len(service.processes()) > 4
    killed = [service.process(name) for name in ("watch", "mlflow")]
    for one in killed:
        os.kill(one.pid, signal.SIGKILL)
    wait_for(lambda: not any(one.alive for one in killed), "both are gone")
    code, said, _ = service.here("status")
    assert (code, said.count("died, see"), said.count("make up restarts it")) == (1, 2, 2)
    assert service.call("down").returncode == 0
    assert service.processes() == {} and not (service.runs / "service").exists()
    for port in (service.prefect, service.mlflow):
        socket.create_server(("127.0.0.1", port)).close()
    store = service.runs / "prefect" / "prefect.db"
    states = column(store, "select state_type from flow_run order by created")
    assert states[:5] == ["COMPLETED", *["CRASHED"] * 4] and sorted(states[5:]) == ["CANCELLED", "CRASHED"]
    assert column(store, "select active_slots from concurrency_limit_v2") == [0] * len(deployments.wanted_deployments())
    assert service.tracked("RUNNING") == 0
    told = [(one["kind"], one["sentence"]) for one in journal(service.runs)]
    kinds = [kind for kind, _ in told]
    assert kinds.count("failed") == 1 and kinds.count("crashed") == len(kinds) - 1 >= 3
    assert all("pipeline long" in sentence for kind, sentence in told if kind == "crashed")
    assert next(sentence for kind, sentence in told if kind == "failed").startswith("paths.runs is ")
    said = (service.runs / "logs" / "service-worker.log").read_text("utf-8")
    assert "failed to retrieve flow" not in said  # as the worker says when it looks for hooks of a run that crashed
    assert service.here("down")[:2] == (0, "nothing runs\n")


def test_when_one_does_not_start_all_are_ended_and_one_sentence_names_the_log(service: Service) -> None:
    service.runs.mkdir()
    (service.runs / "prefect").write_text("where Prefect wants a folder")
    code, out, err = service.here("up")
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("up failed: prefect ended") and last.endswith(
        f"(log: {service.runs}/logs/service-prefect.log)"
    )
    assert "Traceback" not in err
    assert service.processes() == {} and not (service.runs / "service").exists()


def test_a_port_that_is_taken_is_one_sentence_and_starts_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        service = Service(tmp_path, taken.getsockname()[1], *free_ports(1))
        up = service.call("up")
    assert (up.returncode, up.stdout) == (2, "")
    said = f"PREFECT_PORT is {service.prefect}, which cannot be used (address already in use); allowed: a free port."
    assert up.stderr.splitlines()[-1] == said
    assert "Traceback" not in up.stderr and not list(tmp_path.rglob("*.pid"))
