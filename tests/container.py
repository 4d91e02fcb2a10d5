"""Build the image and try all of compose.yaml with it: `make container`, which is `python -m tests.container [WORK]`.

Where Docker or Podman runs, by its `compose`. Elsewhere as root on Debian, without an engine: buildah builds, on a base
that debootstrap makes, and each service runs as compose.yaml says in a root file system that cannot be written to, as
its user, without rights, on its volumes. All share one network without a way out, where the names of the services are
loopback; PostgreSQL is this machine's. WORK is the folder of images and volumes then (runs/container).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from tests.chroots import ENCLOSED, Chroots, enclose, missing
from tests.compose_file import ROOT

SMALL = ["methods.ours.search={n_basis: [50], C: [1]}", "problems=[{name: 10 classes, labels: original}]"]
QUICK = [*SMALL[:1], "methods.ours.params.max_iter=5"]
ROW = json.dumps({"rows": [[0.0] * 64]}).encode()
PLACE = "http://127.0.0.1:5001"


class Place(Protocol):
    """Who runs containers."""

    def build(self) -> str:
        """Build the image and return its size."""

    def alone(self, user: int, words: Sequence[str]) -> str:
        """Run a container that cannot write but to new volumes and /tmp, and return what it prints."""

    def start(self, name: str) -> None:
        """Start a service of compose.yaml and wait until it is healthy."""

    def inside(self, name: str, words: Sequence[str]) -> str:
        """Run a command in the container of a service, as its user, and return what it prints."""

    def kill(self, name: str) -> None:
        """End a container as a lack of memory would."""

    def stop(self, name: str) -> None:
        """End a container with SIGTERM; raise an error when that does not suffice."""

    def close(self) -> None:
        """Leave no container and no volume."""


class Engine:
    """Docker or Podman, with a project of its own, so that nobody's volumes are touched."""

    def __init__(self, engine: str, folder: Path) -> None:
        self._engine, self._compose = engine, [engine, "compose", "--project-name", "ldsvm-check", "--profile", "serve"]
        self._environment = {**os.environ, "LDSVM_SECRETS": str(folder)}

    def build(self) -> str:
        self._run([*self._compose, "build"])
        return self._run([self._engine, "image", "inspect", "ldsvm", "--format", "{{.Size}}"])

    def alone(self, user: int, words: Sequence[str]) -> str:
        rules = ["--user", f"{user}:0", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"]
        return self._run([self._engine, "run", "--rm", *rules, "ldsvm", *words])

    def start(self, name: str) -> None:
        self._run([*self._compose, "up", "--detach", "--wait", "--no-build", name])

    def inside(self, name: str, words: Sequence[str]) -> str:
        return self._run([*self._compose, "exec", "-T", name, *words])

    def kill(self, name: str) -> None:
        self._run([*self._compose, "kill", name])

    def stop(self, name: str) -> None:
        self._run([*self._compose, "stop", name])

    def close(self) -> None:
        self._run([*self._compose, "down", "--volumes"])

    def _run(self, words: Sequence[str]) -> str:
        asked: dict[str, Any] = {"cwd": ROOT, "env": self._environment, "stdout": subprocess.PIPE, "text": True}
        return str(subprocess.run(words, check=True, **asked).stdout)


def engine() -> str | None:
    """Return the engine that runs here and knows compose, None without one."""
    for name in ("docker", "podman"):
        if shutil.which(name) and all(
            subprocess.run([name, *words], capture_output=True, check=False).returncode == 0
            for words in (["info"], ["compose", "version"])
        ):
            return name
    return None


def try_all(place: Place, token: str) -> None:
    """Do with the containers what users do; raise an error where they do not as they should."""
    with step("a pipeline alone, as user 12345, in a root file system that cannot be written to"):
        assert "report" in place.alone(12345, ["python", "-m", "flows", "pipeline", "conf/digits.yaml", *SMALL])
    for name in ("db", "prefect", "mlflow", "worker"):
        with step(f"{name} is healthy"):
            place.start(name)
    with step("no service can write to its code, each can to its volumes"):
        for name in ("prefect", "mlflow", "worker"):
            place.inside(name, ["sh", "-c", "! touch /app/x /venv/x /x 2>/dev/null && touch /data/x /tmp/x"])
    for name, small in (("pipeline/digits", SMALL), ("retrain/digits", QUICK)):
        with step(f"deployment {name}"):
            deploy(place, name, small)
    with step("their runs are in PostgreSQL") as say:
        flows = sql(place, "prefect", "select state_type, count(*) from flow_run group by 1")
        runs = sql(place, "mlflow", "select status, count(*) from runs group by 1")
        assert flows == "COMPLETED|2" and runs.startswith("FINISHED|"), (flows, runs)
        say(f"flow_run {flows}, runs {runs}")
    with step("a worker that is killed amid a run, and started again, marks the run and is free for the next"):
        place.inside("worker", ["prefect", "deployment", "run", "pipeline/digits"])
        await_state(place, "RUNNING")
        place.kill("worker")
        place.start("worker")
        await_state(place, "CRASHED")
        deploy(place, "pipeline/digits", SMALL)
        flows = sql(place, "prefect", "select state_type, count(*) from flow_run group by 1 order by 1")
        assert flows.split() == ["COMPLETED|3", "CRASHED|1"], flows
    with step("serve is healthy and answers one row, to whoever has the token") as say:
        place.start("serve")
        assert answer("")[0] == 401
        status, said = answer(token)
        assert status == 200 and "version" in said, (status, said)
        say(json.dumps(said)[:100])
    for name in ("serve", "worker", "mlflow", "prefect"):
        with step(f"{name} ends when it is asked to"):
            place.stop(name)


def deploy(place: Place, name: str, overrides: list[str]) -> None:
    """Run a deployment to its end."""
    words = ["prefect", "deployment", "run", name, "--param", f"overrides={json.dumps(overrides)}", "--watch"]
    place.inside("worker", words)


def sql(place: Place, database: str, query: str) -> str:
    """Return the lines that PostgreSQL answers, cells divided by |."""
    return place.inside("db", ["psql", "-h", "127.0.0.1", "-U", "ldsvm", "-d", database, "-Atc", query]).strip()


def await_state(place: Place, state: str) -> None:
    """Wait until a flow run is in this state."""
    for _ in range(600):
        if sql(place, "prefect", f"select count(*) from flow_run where state_type = '{state}'") != "0":
            return
        time.sleep(0.5)
    raise AssertionError(f"no flow run is {state}")


def answer(token: str) -> tuple[int, Any]:
    """Return status and body of what the model's server answers to a row."""
    head = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{PLACE}/predict", ROW, head), timeout=30) as found:
            return found.status, json.loads(found.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@contextmanager
def step(name: str) -> Iterator[Callable[[str], None]]:
    """Print a line on what is done in the block, with its seconds; what the block says of it comes behind."""
    said: list[str] = []
    begin, how = time.monotonic(), "FAILED"
    try:
        yield said.append
        how = "ok    "
    finally:
        print(f"{time.monotonic() - begin:7.1f} s  {how}  {': '.join([name, *map(str.strip, said)])}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Try all with what is here, and return the exit code."""
    work = Path(arguments[0] if arguments else ROOT / "runs" / "container").resolve()
    found = None if ENCLOSED in os.environ else engine()
    if found is None and (lacking := missing()):
        print(f"No Docker or Podman answers; without one make container also needs {lacking}.", file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix="secrets-") as folder:  # closed to others, as docs/how_to/containers.md says
        token = secrets.token_urlsafe(24)
        for name, text in (("password", secrets.token_urlsafe(24)), ("token", token)):
            Path(folder, name).write_text(text, "utf-8")
            Path(folder, name).chmod(0o644)
        place: Place = Chroots(work, Path(folder)) if found is None else Engine(found, Path(folder))
        try:
            try:
                if ENCLOSED not in os.environ:
                    with step("build") as say:
                        say(place.build())
                    if found is None:
                        return enclose(work)
                try_all(place, token)
            finally:
                place.close()
        except (subprocess.CalledProcessError, AssertionError, RuntimeError) as error:
            print(f"{error}\n{getattr(error, 'stdout', None) or ''}", file=sys.stderr)
            return 1
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
