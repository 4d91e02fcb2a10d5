"""What `make up`, `make down` and `make status` do: Prefect's server, MLflow's server and a worker, all on loopback.

Each is a process group of its own, described by a file in RUNS/service; only groups with such a file are ended. A
fourth process, the watch, restarts services that ended or stopped answering, see flows/watch.py. Flow runs belong to
the worker's group. When a worker dies, Prefect may go on believing that its flow runs are running, and then starts no
new run of their deployments. So before a worker starts, and after one was ended, the rest of its group is ended too,
and runs that Prefect still believes to be running are set to Crashed, which frees their place. Needs Linux.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from flows import ROOT, automations, deployments, environment, processes, servers, watch
from flows.deployments import POOL
from flows.service_settings import NAMES, SERVERS, WATCH, ServiceFailed, Settings
from ldsvm.tracking.store import has_open_runs

TITLES = {"prefect": "Prefect", "mlflow": "MLflow", "worker": "the worker", WATCH: "the watch"}
EPILOG = """
environment variables, with their defaults:
  RUNS           the folder of results, logs and stores (runs)
  PREFECT_PORT   the port of Prefect's server (4200)
  PORT           the port of MLflow's server (5000)
  DATA           folders, separated by :, that deployed runs may use besides data/, LDSVM_DATA_HOME and RUNS (none)
  LDSVM_WEBHOOK, LDSVM_WEBHOOK_FILE   where alarms are sent, see docs/how_to/alarms.md (nowhere)
exit codes: 0 success, 1 a service does not run as it should, 2 a mistake in the variables.
"""


def up(settings: Settings) -> int:
    """Start the services that do not run, deploy the flows, print the addresses; on failure, end what was started."""
    absent = [name for name in NAMES if not settings.alive(name)]
    for name in NAMES:
        if name not in absent:
            print(f"{name} runs already", flush=True)
    try:
        _start(settings, absent)
    except BaseException:
        for name in reversed(absent):
            servers.end(name, settings)
        if len(absent) == len(NAMES):
            shutil.rmtree(settings.folder)
        raise
    client = os.path.relpath(Path(sys.executable).with_name("prefect"))
    print(f"Prefect UI  http://127.0.0.1:{settings.prefect}\nMLflow UI   http://127.0.0.1:{settings.mlflow}")
    _say_timelines(settings)
    print(f"logs        {settings.log('*')}")
    print(f"next        PREFECT_API_URL={settings.api} {client} deployment run 'pipeline/digits' --watch")
    return 0


def _start(settings: Settings, absent: Collection[str]) -> None:
    """Start all at once: each takes seconds to import, and waits for the others that it needs."""
    wanted, reactions = deployments.wanted_deployments(), automations.wanted_automations()
    for name, variable in (("prefect", "PREFECT_PORT"), ("mlflow", "PORT")):
        if name in absent:
            processes.check_port(getattr(settings, name), variable)
    for name in SERVERS:
        if name in absent:
            servers.end(name, settings)  # a flow run may have outlived its worker
            servers.launch(name, settings)
    memory = settings.runs / "prefect" / "deployed.json"  # beside the database that has them
    deploying = deployments.Deploying(settings.api, wanted, memory, settings.log("deploy"))
    try:
        _wait(SERVERS, settings)
        if not deploying.finish():
            raise ServiceFailed(f"prefect.yaml could not be deployed (log: {settings.log('deploy')})")
        for sentence in automations.deploy(settings.api, reactions):
            print(sentence, file=sys.stderr)
    finally:
        deploying.stop()
    if absent:
        servers.end(WATCH, settings)  # it begins anew to count
        (settings.folder / watch.MEMORY).unlink(missing_ok=True)
        servers.launch(WATCH, settings)


def _wait(names: Sequence[str], settings: Settings) -> None:
    """Wait until all answer. Shows progress in one line on a terminal, elsewhere in a line for each that answers."""
    begin, moving = time.monotonic(), sys.stderr.isatty()
    waiting = list(names)
    while waiting:
        for name in list(waiting):
            passed = time.monotonic() - begin
            if servers.healthy(name, settings):
                waiting.remove(name)
                if passed > 1.0:  # what ran already is not worth a line
                    line = f"{passed:6.1f} s  {TITLES[name]} answers"
                    print(f"\r{line:60s}" if moving else line, file=sys.stderr, flush=True)
            elif not settings.alive(name) or passed > processes.START_SECONDS:
                raise ServiceFailed(f"{name} ended or did not answer in time (log: {settings.log(name)})")
        if moving and waiting:
            line = f"waiting for {', '.join(TITLES[name] for name in waiting)}, {time.monotonic() - begin:.0f} s"
            print(f"\r{line:60s}", end="", file=sys.stderr, flush=True)
        time.sleep(0.2 if waiting else 0.0)


def down(settings: Settings) -> int:
    """End what `up` started: the watch, then the worker and its flow runs, while Prefect can still record their end."""
    known = [name for name in reversed(NAMES) if settings.file(name).exists()]
    if "worker" in known and (running := len(settings.flow_runs())):
        print(f"stopping {running} flow runs; their finished work is kept", flush=True)
    for name in known:
        servers.end(name, settings)
        if name == "worker" and servers.healthy("prefect", settings):
            for sentence in deployments.mark_crashed(settings.api):
                print(sentence)
        print(f"{name} ended", flush=True)
    if "worker" in known and has_open_runs(settings.runs):  # a killed flow run left them so
        from ldsvm.tracking.client import sweep

        sweep(settings.runs)
    shutil.rmtree(settings.folder)  # with the lock in it, which others who wait for it notice
    if not known:
        print("nothing runs")
    return 0


def status(settings: Settings) -> int:
    """Print the state of each service, and the deployments; return 1 when one that `up` started is not healthy."""
    found, fine = watch.records(settings), True
    for name in NAMES:
        state = "does not run"
        if settings.alive(name):
            state = "healthy" if servers.healthy(name, settings) else "does not answer"
        elif settings.file(name).exists():
            state = f"died, see {settings.log(name)}"
        fine &= state in ("healthy", "does not run")
        more = [found[name].say()] if name in found else []
        if state.startswith("died") and not (name in found and found[name].given_up):
            more.append(f"{'the watch' if settings.alive(WATCH) else 'make up'} restarts it")
        place = {"worker": f"pool {POOL}", WATCH: "restarts services"}.get(name)
        place = place or f"http://127.0.0.1:{getattr(settings, name)}"
        print(f"{name:12s}{place:28s}{', '.join(filter(None, [state, *more]))}")
    for line in deployments.listing(settings.api) if servers.healthy("prefect", settings) else ():
        print(f"{'deployment':12s}{line}")
    _say_timelines(settings)
    return int(not fine)


def _say_timelines(settings: Settings) -> None:
    """Print the path of each production model's timeline."""
    for page in sorted(settings.runs.glob("registry/*/timeline.html")):
        print(f"{'timeline':12s}{page.parent.name}, {page}")


def _settings() -> Settings:
    """Return the settings in the environment variables."""
    from ldsvm.experiment.config.yaml_merge import ConfigError

    ports = {}
    for variable, usual in (("PREFECT_PORT", "4200"), ("PORT", "5000")):
        given = os.environ.get(variable, usual)
        if not (given.isascii() and given.isdecimal() and 0 < int(given) < 65536):
            raise ConfigError(f'{variable} is "{given}"; allowed: a port, 1 to 65535.')
        ports[variable] = int(given)
    if ports["PREFECT_PORT"] == ports["PORT"]:
        raise ConfigError(f"PREFECT_PORT and PORT are both {ports['PORT']}; allowed: two different ports.")
    runs = (ROOT / Path(os.environ.get("RUNS", "runs")).expanduser()).resolve()
    return Settings(runs, ports["PREFECT_PORT"], ports["PORT"])


def _act(action: str, settings: Settings) -> int:
    """Run an action, on the ports of the services that already run, if any do."""
    if running := [name for name in NAMES if settings.alive(name)]:
        settings = Settings(settings.runs, *settings.read(running[0])["ports"])
    environment.configure_service(settings.runs, settings.api, settings.mlflow)
    return {"up": up, "down": down, "status": status}[action](settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one action and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.service",
        description="Start, stop or show Prefect's server, MLflow's server and a worker, all on 127.0.0.1.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("up", "down", "status"))
    action = parser.parse_args(arguments).action
    from ldsvm.atomic import alone
    from ldsvm.experiment.config.places import check_runs
    from ldsvm.experiment.config.yaml_merge import ConfigError

    try:
        if sys.platform != "linux":
            raise ConfigError(f"make up needs Linux (it reads /proc); this system is {sys.platform}.")
        settings = _settings()
        check_runs(settings.runs)
        if action == "status":
            return _act(action, settings)
        with alone(settings.folder):
            return _act(action, settings)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        from ldsvm.experiment.search.failure import sentence

        why = str(error) if isinstance(error, ServiceFailed) else f"{sentence(error)} (logs: {settings.log('*')})"
        print(f"{action} failed: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped.", file=sys.stderr)
        sys.exit(130)
