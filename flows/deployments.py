"""Requests of `make up` to Prefect's server: deploy prefect.yaml, list deployments, mark runs as crashed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from flows import ROOT

POOL = "local"
FILE = ROOT / "prefect.yaml"
BUSY_SECONDS = 30.0  # how long a request is repeated: the database is one file, which may be locked


def post(api: str, path: str, **body: Any) -> Any:
    """Return the API's answer to a POST request; see `send`."""
    return send(api, "POST", path, body)


def send(api: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """Return the answer of the API at the address `api`, None when it is empty.

    When the answer is 503 (busy), the request is sent again after the pause that it names, for BUSY_SECONDS in all.
    """
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{api}/{path}", json.dumps(body or {}).encode(), kind, method=method)
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=max(1.0, end - time.monotonic())) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            error.close()
            named = error.headers.get("Retry-After", "")
            pause = float(named) if named.isdecimal() else 0.5
            if error.code != 503 or time.monotonic() + pause > end:
                raise
        time.sleep(pause)


def wanted_deployments() -> dict[str, str]:
    """Return, by flow/name, a digest of each deployment of prefect.yaml: its entry, variables, and its flow's source.

    Raises ConfigError when the file is not valid.
    """
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.experiment.search.failure import sentence

    try:
        text = FILE.read_text("utf-8")
        said = yaml.safe_load(text)
        values = [os.environ.get(name) for name in re.findall(r"\{\{\s*\$(\w+)", text)]
        return {_name(one): _digest(one, said["pull"], values) for one in said["deployments"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        why = sentence(error)
    raise ConfigError(f"prefect.yaml is not valid ({why}); allowed: what prefect deploy accepts.")


def _name(one: dict[str, Any]) -> str:
    return f"{one['entrypoint'].partition(':')[2]}/{one['name']}"


def _digest(one: dict[str, Any], *more: Any) -> str:
    source = (ROOT / one["entrypoint"].partition(":")[0]).read_text("utf-8")
    return hashlib.sha256(json.dumps([one, source, *more]).encode()).hexdigest()


class Deploying:
    """Sends deployments that are new, changed or missing to the server; others keep what users changed on its pages.

    api: address of the server. It may still be starting: a process waits for its pool and then sends what is new or
    changed. wanted: from `wanted_deployments`. memory: the file that remembers what was sent.
    """

    def __init__(self, api: str, wanted: dict[str, str], memory: Path, log: Path) -> None:
        self._api, self._wanted, self._memory, self._log = api, wanted, memory, log
        log.unlink(missing_ok=True)
        self._names = _outdated(wanted, memory)
        self._process = self._send(self._names)

    def finish(self) -> bool:
        """Wait until all is sent, then send what the server still lacks; return whether that succeeded."""
        fine = self._process is None or not self._process.wait()
        if fine and (absent := self._wanted.keys() - _on_server(self._api).keys()):
            self._process = self._send(names := sorted(absent))
            self._names += names
            fine = self._process is None or not self._process.wait()
        if fine and self._names:
            self._memory.write_text(json.dumps(self._wanted), encoding="utf-8")
        return fine

    def stop(self) -> None:
        """Kill the process that sends, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _send(self, names: Collection[str]) -> subprocess.Popen[bytes] | None:
        if not names:
            return None
        load = [f"--load={name}" for name in ("prefect.cli.deploy", "flows._runtime")]
        quick = ["flows.launcher", *load, f"--after={self._api}/work_pools/{POOL}"]
        command = [*quick, "prefect", "--no-prompt", "deploy", *(f"--name={name}" for name in names)]
        with self._log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", *command], cwd=ROOT, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )


def _outdated(wanted: dict[str, str], memory: Path) -> list[str]:
    try:
        sent = dict(json.loads(memory.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        sent = {}
    return [name for name, digest in wanted.items() if sent.get(name) != digest]


def _on_server(api: str) -> dict[str, Any]:
    """Return the server's deployments by flow/name."""
    flows = {flow["id"]: flow["name"] for flow in post(api, "flows/filter")}
    return {f"{flows[one['flow_id']]}/{one['name']}": one for one in post(api, "deployments/filter")}


def listing(api: str) -> list[str]:
    """Return one line for each deployment: its name, and its schedules."""
    lines = []
    for name, found in _on_server(api).items():
        times = [(one["schedule"], "" if one["active"] else " (off)") for one in found["schedules"]]
        when = ", ".join(f"{rule.get('cron')} {rule.get('timezone')}{off}" for rule, off in times)
        lines.append(f"{name:28s}{when}")
    return sorted(lines)


def mark_crashed(api: str) -> list[str]:
    """Set the unfinished runs of an ended worker to Crashed, and return a sentence on each.

    Call it only when no worker and no flow run is left.
    """
    states = {"state": {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}}
    crashed = {"type": "CRASHED", "name": "Crashed", "message": "its worker was stopped"}
    sentences = []
    for run in post(api, "flow_runs/filter", flow_runs=states, work_pools={"name": {"any_": [POOL]}}):
        post(api, f"flow_runs/{run['id']}/set_state", state=crashed, force=True)
        sentences.append(f"flow run {run['name']} no longer has a worker and is now marked Crashed")
    return sentences
