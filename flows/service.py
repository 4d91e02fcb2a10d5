"""What `make up`, `make down` and `make status` do: Prefect's server, MLflow's server and a worker, all on loopback.

Each is a process group of its own, described by a file in RUNS/service, and only what such a file describes is ended. A
flow run belongs to the worker's group. When its worker dies, Prefect may believe for ever that it runs, and then starts
nothing new of its deployment. So before a worker starts, and after one was ended, the rest of its group is ended too,
and runs of the pool that Prefect still takes for running are set to Crashed, which frees their place. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from flows import ROOT, deployments, environment, processes
from flows._cli import working
from flows.deployments import POOL
from flows.processes import Process

NAMES = ("prefect", "mlflow", "worker")  # in the order of their start
EPILOG = """
variables: RUNS, the folder of results, logs and stores (runs); PREFECT_PORT (4200); PORT, of MLflow (5000);
DATA, folders, with : between them, that deployed runs may read and write besides data/, LDSVM_DATA_HOME and RUNS.
exit codes: 0 done, 1 something does not run as it should, 2 a mistake in the variables.
"""


class ServiceFailed(RuntimeError):
    """A service did not start; the message is one sentence and names its log."""


@dataclass(frozen=True)
class Settings:
    """Folder of results and logs, and the two ports."""

    runs: Path
    prefect: int
    mlflow: int

    @property
    def api(self) -> str:
        """Address of Prefect's API."""
        return f"http://127.0.0.1:{self.prefect}/api"

    def log(self, name: str) -> Path:
        """Log of a service."""
        return self.runs / "logs" / f"service-{name}.log"

    def file(self, name: str) -> Path:
        """File with number and start time of a service's process, and the two ports."""
        return self.runs / "service" / f"{name}.pid"

    def read(self, name: str) -> dict[str, Any]:
        """Return what that file says, with the process under the key process; nothing when it cannot be read."""
        try:
            said = json.loads(self.file(name).read_text("utf-8"))
            return {"process": Process(said["pid"], said["born"]), "ports": (said["prefect"], said["mlflow"])}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def process(self, name: str) -> Process | None:
        """Return the process that `up` started under this name, whether it still runs or not."""
        return self.read(name).get("process")

    def alive(self, name: str) -> bool:
        """Whether that process still runs."""
        process = self.process(name)
        return process is not None and process.alive

    def flow_runs(self) -> list[int]:
        """Return the processes of the flow runs that go on: children of the worker."""
        worker = self.process("worker")
        return [] if worker is None else [pid for pid, up in worker.group("").items() if up == worker.pid]


def up(settings: Settings) -> int:
    """Start what does not run, deploy, and say where all is; end what was started when a part of it fails."""
    absent = [name for name in NAMES if not settings.alive(name)]
    for name in NAMES:
        if name not in absent:
            print(f"{name} runs already")
    try:
        with working(f"start {', '.join(absent)}; deploy" if absent else "deploy"):
            _start(settings, absent)
    except BaseException:
        for name in reversed(absent):
            _end(name, settings)
        raise
    client = os.path.relpath(Path(sys.executable).with_name("prefect"))
    print(f"Prefect UI  http://127.0.0.1:{settings.prefect}\nMLflow UI   http://127.0.0.1:{settings.mlflow}")
    print(f"logs        {settings.log('*')}")
    print(f"next        PREFECT_API_URL={settings.api} {client} deployment run 'pipeline/digits' --watch")
    return 0


def down(settings: Settings) -> int:
    """End what `up` started: the worker and its flow runs first, while Prefect can still record their end."""
    known = [name for name in reversed(NAMES) if settings.file(name).exists()]
    if "worker" in known and (running := len(settings.flow_runs())):
        print(f"{running} flow runs are stopped; what they finished is kept")
    for name in known:
        _end(name, settings)
        if name == "worker" and _healthy("prefect", settings):
            deployments.mark_crashed(settings.api)
        print(f"{name} ended")
    if "worker" in known:
        from ldsvm.tracking.client import sweep

        sweep(settings.runs)  # MLflow runs that a killed flow run left RUNNING
    if not known:
        print("nothing runs")
    return 0


def status(settings: Settings) -> int:
    """Print what runs, how it is, and the deployments; return 1 when something that `up` started is not well."""
    states = {}
    for name in NAMES:
        states[name] = "does not run"
        if settings.alive(name):
            states[name] = "healthy" if _healthy(name, settings) else "does not answer"
        elif settings.file(name).exists():
            states[name] = f"died, see {settings.log(name)}"
        place = f"pool {POOL}" if name == "worker" else f"http://127.0.0.1:{getattr(settings, name)}"
        print(f"{name:12s}{place:28s}{states[name]}")
    for line in deployments.listing(settings.api) if states["prefect"] == "healthy" else ():
        print(f"{'deployment':12s}{line}")
    return int(not set(states.values()) <= {"healthy", "does not run"})


def _start(settings: Settings, names: Sequence[str]) -> None:
    from ldsvm.tracking.client import Tracker, store_uri

    wanted = deployments.wanted_deployments()
    for name, variable in (("prefect", "PREFECT_PORT"), ("mlflow", "PORT")):
        if name in names:
            processes.check_port(getattr(settings, name), variable)
    address = ["--host", "127.0.0.1", "--port"]
    if "prefect" in names:
        _launch("prefect", ["prefect", "server", "start", *address, str(settings.prefect)], settings)
    if "mlflow" in names:
        Tracker(settings.runs, "Default").client.search_experiments(max_results=1)  # creates the store, alone
        store = ["--workers", "1", "--backend-store-uri", store_uri(settings.runs)]
        _launch("mlflow", ["mlflow", "server", *address, str(settings.mlflow), *store], settings)
    _wait("prefect", settings)
    if "worker" in names:
        _end("worker", settings)  # a flow run may have outlived it
        deployments.mark_crashed(settings.api)
        worker = ["worker", "start", "--pool", POOL, "--type", "process", "--name", "worker"]
        _launch("worker", ["prefect", *worker], settings)
    _wait("worker", settings)  # it also makes the pool
    if not deployments.deploy(settings.api, wanted, settings.file("worker").parent, settings.log("deploy")):
        raise ServiceFailed(f"prefect.yaml could not be deployed (log: {settings.log('deploy')})")
    _wait("mlflow", settings)  # it starts slowest, and nothing above needs it


def _launch(name: str, command: Sequence[str], settings: Settings) -> None:
    process = processes.launch(command, settings.log(name))
    said = {**asdict(process), "prefect": settings.prefect, "mlflow": settings.mlflow}
    settings.file(name).write_text(json.dumps(said), encoding="utf-8")


def _wait(name: str, settings: Settings) -> None:
    end = time.monotonic() + processes.START_SECONDS
    while not _healthy(name, settings):
        if not settings.alive(name) or time.monotonic() > end:
            raise ServiceFailed(f"{name} ended or did not answer in time; it says why in {settings.log(name)}")
        time.sleep(0.2)


def _healthy(name: str, settings: Settings) -> bool:
    """Whether a service answers; a worker does when Prefect has had a heartbeat of it since it was started."""
    try:
        if name == "worker":
            since = settings.file(name).stat().st_mtime
            found = deployments.post(settings.api, f"work_pools/{POOL}/workers/filter")
            heard = [one["last_heartbeat_time"] for one in found if one["status"] == "ONLINE"]
            return any(datetime.fromisoformat(moment).timestamp() > since for moment in heard)
        path = {"prefect": f"{settings.api}/health", "mlflow": f"http://127.0.0.1:{settings.mlflow}/health"}[name]
        with urllib.request.urlopen(path, timeout=5):
            return True
    except (OSError, ValueError):
        return False


def _end(name: str, settings: Settings) -> None:
    if process := settings.process(name):
        process.end(f"LDSVM_RUNS={settings.runs}")
    settings.file(name).unlink(missing_ok=True)


def _settings() -> Settings:
    """Return what the variables say."""
    from ldsvm.experiment.config.load import ConfigError

    ports = {}
    for variable, usual in (("PREFECT_PORT", "4200"), ("PORT", "5000")):
        given = os.environ.get(variable, usual)
        if not (given.isascii() and given.isdecimal() and 0 < int(given) < 65536):
            raise ConfigError(f'{variable} is "{given}"; allowed: the number of a port, 1 to 65535.')
        ports[variable] = int(given)
    if ports["PREFECT_PORT"] == ports["PORT"]:
        raise ConfigError(f"PREFECT_PORT and PORT are both {ports['PORT']}; allowed: two different ports.")
    runs = (ROOT / Path(os.environ.get("RUNS", "runs")).expanduser()).resolve()
    return Settings(runs, ports["PREFECT_PORT"], ports["PORT"])


def _act(action: str, settings: Settings) -> int:
    """Run an action on the ports of what runs already, if something does."""
    if running := [name for name in NAMES if settings.alive(name)]:
        settings = Settings(settings.runs, *settings.read(running[0])["ports"])
    environment.configure_service(settings.runs, settings.api, settings.mlflow)
    return {"up": up, "down": down, "status": status}[action](settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one action and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.service",
        description="Start, end or show Prefect's server, MLflow's server and a worker, all on 127.0.0.1.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("up", "down", "status"))
    action = parser.parse_args(arguments).action
    from ldsvm.atomic import alone
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.experiment.config.places import check_runs
    from ldsvm.experiment.search.failure import sentence

    try:
        if sys.platform != "linux":
            raise ConfigError(f"the system is {sys.platform}; allowed: linux, where /proc says what runs.")
        settings = _settings()
        check_runs(settings.runs)
        if action == "status":
            return _act(action, settings)
        with alone(settings.file("worker").parent):
            return _act(action, settings)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        why = str(error) if isinstance(error, ServiceFailed) else f"{sentence(error)} (logs: {settings.log('*')})"
        print(f"{action} failed: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped.", file=sys.stderr)
        sys.exit(130)
