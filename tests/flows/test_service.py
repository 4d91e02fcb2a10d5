"""The real servers and a real worker, on free ports, in a folder of their own."""

from __future__ import annotations

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
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows import processes
from flows.processes import Process
from flows.schema import schema
from flows.service import main
from ldsvm.experiment.load import load_config

ROOT = Path(__file__).resolve().parents[2]
TINY = """
name: tiny
title: Tiny digits
dataset: {name: digits}
problems: [{name: odd or even, labels: parity}]
split: {kind: stratified, train: 200, validation: 100, test: 150}
judge: {repeats: 1}
methods:
  ours:
    estimator: ldsvm
    params: {n_basis: 20, gamma: 0.1, max_iter: 5}
    search: {C: [1, 10]}
  NN: {estimator: nearest_neighbour}
"""
LONG = TINY.replace("[1, 10]", f"{[1 + i for i in range(200)]}, gamma: {[0.1 + i / 100 for i in range(20)]}").replace(
    ", gamma: 0.1, max_iter: 5", ", max_iter: 50"
)  # minutes of trials, if nobody ends them
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@dataclass
class Service:
    """`python -m flows.service` with a folder and ports of its own, and ways to look at what it started."""

    place: Path
    prefect: int
    mlflow: int

    @property
    def runs(self) -> Path:
        return self.place / "runs"

    def call(self, action: str, **variables: str) -> subprocess.CompletedProcess[str]:
        given = {"RUNS": str(self.runs), "PREFECT_PORT": str(self.prefect), "PORT": str(self.mlflow), **variables}
        command = [sys.executable, "-m", "flows.service", action]
        return self._run(command, given)

    def parameters(self, experiment: str, *overrides: str) -> dict[str, Any]:
        """Parameters for a deployment, which is given another experiment."""
        file = self.place / "experiment.yaml"
        file.write_text(experiment, encoding="utf-8")
        return {"config": str(file), "overrides": [f"paths.cache={self.place / 'cache'}", *overrides]}

    def watch(self, experiment: str) -> int:
        """Start `pipeline/digits` with another experiment as a user does, and return the exit code."""
        given = json.dumps(self.parameters(experiment, f"paths.runs={self.runs}"))
        command = [sys.executable, "-m", "prefect", "deployment", "run", "pipeline/digits", "--watch"]
        home = str(self.place / "home")
        variables = {"PREFECT_API_URL": f"http://127.0.0.1:{self.prefect}/api", "PREFECT_HOME": home}
        return self._run([*command, "--params", given], variables).returncode

    def start(self, name: str, experiment: str, *overrides: str) -> None:
        """Start a deployment as Prefect's pages do, which is quicker."""
        (number,) = [one["id"] for one in self.ask("deployments/filter") if one["name"] == name]
        self.ask(f"deployments/{number}/create_flow_run", parameters=self.parameters(experiment, *overrides))

    def _run(self, command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        every = {**os.environ, **variables}
        return subprocess.run(command, cwd=ROOT, env=every, capture_output=True, text=True, check=False, timeout=150)

    def ask(self, path: str, **body: Any) -> Any:
        """Return the answer of Prefect's API, or of MLflow's when the path is one of those."""
        port = self.mlflow if path.startswith("2.0") else self.prefect
        data, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/{path}", data, kind)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def states(self) -> list[str]:
        """State of every flow run, oldest first."""
        runs = self.ask("flow_runs/filter")
        return [run["state"]["type"] for run in sorted(runs, key=lambda run: run["created"])]

    def tracked(self, status: str) -> int:
        return column(self.runs / "mlflow.db", "select status from runs").count(status)

    def process(self, name: str) -> Process:
        said = json.loads((self.runs / "service" / f"{name}.pid").read_text("utf-8"))
        return Process(said["pid"], said["born"])

    def processes(self) -> list[str]:
        """Command line of every process that has our folder in its environment, whoever its parent is."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"LDSVM_RUNS={self.runs}\0".encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_text("utf-8").replace("\0", " "))
            except OSError:
                continue
        return found


def column(store: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(store)) as connection:
        return [value for (value,) in connection.execute(query)]


def free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.3)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path, *free_ports())
    yield one
    if list(one.runs.glob("service/*.pid")):  # a test failed half-way
        one.call("down")


@needs_proc
@pytest.mark.skipif(
    "LDSVM_SERVICES" not in os.environ,
    reason="on a busy machine Prefect answers 503 now and then; LDSVM_SERVICES=1 runs it",
)
@pytest.mark.timeout(400)
def test_the_whole_life_of_a_service(service: Service) -> None:
    """One test of several acts, because each start of the servers takes 15 seconds."""
    up = service.call("up")
    assert up.returncode == 0, up.stderr
    for part in (f"127.0.0.1:{service.prefect}", f"127.0.0.1:{service.mlflow}", "'pipeline/digits' --watch"):
        assert part in up.stdout
    _a_run_is_green_and_both_servers_show_it(service)
    _a_run_whose_worker_was_ended_is_crashed_by_the_next_up(service)
    _its_place_is_free_and_up_in_the_middle_of_a_run_disturbs_nothing(service)
    _down_leaves_nothing_behind(service)


def _a_run_is_green_and_both_servers_show_it(service: Service) -> None:
    assert service.watch(TINY) == 0
    assert service.states() == ["COMPLETED"]
    experiments = service.ask("2.0/mlflow/experiments/search", max_results=10)["experiments"]
    (number,) = [one["experiment_id"] for one in experiments if one["name"] == "tiny"]
    found = service.ask("2.0/mlflow/runs/search", experiment_ids=[number])["runs"]
    assert [one["info"]["status"] for one in found] == ["FINISHED"] * 6  # a problem, two methods, three trials
    said = "\n".join(line["message"] for line in service.ask("logs/filter"))
    assert f"127.0.0.1:{service.mlflow}/#/experiments/{number}/runs" in said


def _a_run_whose_worker_was_ended_is_crashed_by_the_next_up(service: Service) -> None:
    service.start("digits", LONG, f"paths.runs={service.runs}")
    service.start("pcmac", LONG)  # it would write into the project's own folder
    wait_for(lambda: service.tracked("RUNNING") == 2)  # the problem and the method
    wait_for(lambda: service.states()[1:] == ["RUNNING", "CRASHED"])
    said = "\n".join(line["message"] for line in service.ask("logs/filter"))
    assert f'allowed: "paths.runs={service.runs}" in overrides' in said
    worker, servers = service.process("worker"), [service.process("prefect"), service.process("mlflow")]
    os.kill(worker.pid, signal.SIGTERM)
    wait_for(lambda: not worker.alive)
    assert service.states()[1:] == ["RUNNING", "CRASHED"]  # so Prefect believes
    status = service.call("status")
    assert (status.returncode, "died, see" in status.stdout) == (1, True)
    up = service.call("up")
    assert up.returncode == 0, up.stderr
    assert ("prefect runs already" in up.stdout, "worker runs already" in up.stdout) == (True, False)
    assert [service.process("prefect"), service.process("mlflow")] == servers
    assert service.states()[1:] == ["CRASHED", "CRASHED"]


def _its_place_is_free_and_up_in_the_middle_of_a_run_disturbs_nothing(service: Service) -> None:
    service.start("digits", LONG, f"paths.runs={service.runs}")
    wait_for(lambda: (service.tracked("KILLED"), service.tracked("RUNNING")) == (2, 2))
    service.start("digits", LONG, f"paths.runs={service.runs}")
    worker = service.process("worker")
    assert "worker runs already" in service.call("up").stdout
    assert service.process("worker") == worker
    wait_for(lambda: service.states()[3:] == ["RUNNING", "CANCELLED"])
    status = service.call("status")
    assert (status.returncode, status.stdout.count("healthy")) == (0, 3)
    for name in ("digits", "mnist10", "pcmac", "own-table"):
        assert re.search(rf"pipeline/{name} .* Europe/Berlin \(off\)", status.stdout)


def _down_leaves_nothing_behind(service: Service) -> None:
    assert len(service.processes()) > 4
    assert service.call("down").returncode == 0
    assert service.processes() == []
    for port in (service.prefect, service.mlflow):
        socket.create_server(("127.0.0.1", port)).close()
    store = service.runs / "prefect" / "prefect.db"
    states = column(store, "select state_type from flow_run order by created")
    assert states == ["COMPLETED", "CRASHED", "CRASHED", "CRASHED", "CANCELLED"]
    assert column(store, "select active_slots from concurrency_limit_v2") == [0] * 4
    # How many runs a flow had opened when it was ended depends on the machine's speed; none may stay RUNNING.
    assert service.tracked("RUNNING") == 0
    assert service.tracked("KILLED") >= 2
    assert service.call("down").stdout == "nothing runs\n"


@needs_proc
def test_when_one_does_not_start_all_are_ended_and_one_sentence_names_the_log(service: Service) -> None:
    service.runs.mkdir()
    (service.runs / "prefect").write_text("where Prefect wants a folder")
    up = service.call("up")
    assert (up.returncode, up.stdout) == (1, "")
    last = up.stderr.splitlines()[-1]
    assert last.startswith("up failed: prefect ended") and last.endswith(f"{service.runs}/logs/service-prefect.log")
    assert "Traceback" not in up.stderr
    assert service.processes() == [] and list((service.runs / "service").glob("*.pid")) == []


@needs_proc
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("PORT", "mlflow", 'PORT is "mlflow"; allowed: the number of a port, 1 to 65535.\n'),
        ("PREFECT_PORT", "70000", 'PREFECT_PORT is "70000"; allowed: the number of a port, 1 to 65535.\n'),
        ("PORT", "4200", "PREFECT_PORT and PORT are both 4200; allowed: two different ports.\n"),
        ("RUNS", "/dev/null/runs", "paths.runs is /dev/null/runs, which cannot be made (Not a directory).\n"),
    ],
)
def test_a_wrong_variable_is_one_sentence(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, usual in (("RUNS", "/dev/null/never"), ("PORT", "5000"), ("PREFECT_PORT", "4200")):
        monkeypatch.setenv(name, value if name == variable else usual)
    assert main(["up"]) == 2
    assert tuple(capsys.readouterr()) == ("", said)


@needs_proc
def test_a_port_that_is_taken_is_one_sentence_and_starts_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        service = Service(tmp_path, taken.getsockname()[1], free_ports()[0])
        up = service.call("up")
    assert (up.returncode, up.stdout) == (2, "")
    said = f"PREFECT_PORT is {service.prefect}, which cannot be used (address already in use); allowed: a free port."
    assert up.stderr.splitlines()[-1] == said
    assert "Traceback" not in up.stderr and not list(tmp_path.rglob("*.pid"))


@needs_proc
def test_a_process_that_has_the_number_now_is_never_ended(tmp_path: Path) -> None:
    """launch also gives back the default signals that this process, as a script in the background would, ignores."""
    ignored = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        mine = processes.launch(["http.server", str(free_ports()[0]), "--bind", "127.0.0.1"], tmp_path / "log")
    finally:
        signal.signal(signal.SIGTERM, ignored)
    assert mine.alive
    earlier = Process(mine.pid, str(int(mine.born) - 1))  # the same number, begun a tick before
    assert not earlier.alive and earlier.group("HOME=" + os.environ["HOME"]) == {}
    earlier.end("HOME=" + os.environ["HOME"])
    assert mine.alive
    begin = time.monotonic()
    mine.end("")
    assert time.monotonic() - begin < processes.STOP_SECONDS
    assert os.waitstatus_to_exitcode(os.waitpid(mine.pid, 0)[1]) == -signal.SIGTERM
    assert not mine.alive


@needs_proc
@pytest.mark.parametrize("ours", [True, False])
def test_a_group_without_its_leader_is_ended_if_it_has_our_mark(ours: bool) -> None:
    variables = {**os.environ, "LDSVM_TEST": "mark" if ours else "other"}
    command = ["sh", "-c", "sleep 100 & sleep 100 & echo; wait"]
    with subprocess.Popen(command, env=variables, start_new_session=True, stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None and leader.stdout.readline()
        born = Path(f"/proc/{leader.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
        group = Process(leader.pid, born)
        assert len(group.group("LDSVM_TEST=mark")) == 3
        leader.kill()
        wait_for(lambda: not group.alive)
        assert len(group.group("LDSVM_TEST=mark")) == (2 if ours else 0)
        group.end("LDSVM_TEST=mark")
        assert len(group.group("LDSVM_TEST=other")) == (0 if ours else 2)
        group.end("LDSVM_TEST=other")


def test_what_is_deployed_names_files_that_load_and_no_place_of_this_machine() -> None:
    text = (ROOT / "prefect.yaml").read_text("utf-8")
    said = yaml.safe_load(text)
    assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users|opt)\b|https?://|localhost", text)
    assert [one["name"] for one in said["deployments"]] == ["digits", "mnist10", "pcmac", "own-table"]
    for one in said["deployments"]:
        overrides = [line.replace("{{ $LDSVM_RUNS }}", "/ours") for line in one["parameters"]["overrides"]]
        assert load_config(one["parameters"]["config"], overrides, root=ROOT).paths.runs == Path("/ours")
        assert (one["entrypoint"], one["work_pool"]["name"]) == ("flows/pipeline.py:pipeline", "local")
        assert one["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
        assert [(rule["active"], "/" in rule["timezone"]) for rule in one["schedules"]] == [(False, True)]


def test_the_schema_accepts_the_experiments_and_refuses_what_they_may_not_say() -> None:
    """An independent validator reads the schema; pydantic, which wrote it, only says what the merged files are."""
    import jsonschema  # type: ignore[import-untyped]

    check = jsonschema.Draft202012Validator(json.loads(schema())).is_valid
    for file in ("digits.yaml", "own_table.yaml", "experiments/mnist10.yaml", "experiments/pcmac.yaml"):
        tree = load_config(f"conf/{file}", root=ROOT).model_dump(mode="json", exclude_unset=True)
        assert check(tree)
        assert not check({**tree, "sead": 1})
        assert not check({**tree, "split": {**tree["split"], "kind": "sorted"}})
        assert not check({key: value for key, value in tree.items() if key != "methods"})
