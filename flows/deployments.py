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
    """Return what the API at the address `api` answers to a POST, see `send`."""
    return send(api, "POST", path, body)


def send(api: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """Return what the API at the address `api` answers, None when that is nothing.

    An answer 503 (busy) is followed by another try, after the seconds that it names, for BUSY_SECONDS in all.
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
    """Return by flow/name a digest of each deployment of prefect.yaml: of its entry, variables, and flow's source.

    Raises ConfigError when the file cannot be used.
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
    raise ConfigError(f"prefect.yaml cannot be used ({why}); allowed: what prefect deploy takes.")


def _name(one: dict[str, Any]) -> str:
    return f"{one['entrypoint'].partition(':')[2]}/{one['name']}"


def _digest(one: dict[str, Any], *more: Any) -> str:
    source = (ROOT / one["entrypoint"].partition(":")[0]).read_text("utf-8")
    return hashlib.sha256(json.dumps([one, source, *more]).encode()).hexdigest()


class Deploying:
    """Sends the deployments that are new, changed or absent on the server; the others keep what users changed in pages.

    api: address of the server, which may still be starting: what is new or changed is on its way from now on, and sent
    as soon as there is a pool. wanted: of `wanted_deployments`. memory: the file that remembers what was sent.
    """

    def __init__(self, api: str, wanted: dict[str, str], memory: Path, log: Path) -> None:
        self._api, self._wanted, self._memory, self._log = api, wanted, memory, log
        log.unlink(missing_ok=True)
        self._names = _outdated(wanted, memory)
        self._process = self._send(self._names)

    def finish(self) -> bool:
        """Wait until all is sent, and send what the server lacks; return whether that went well."""
        fine = self._process is None or not self._process.wait()
        if fine and (absent := self._wanted.keys() - _on_server(self._api).keys()):
            self._process = self._send(names := sorted(absent))
            self._names += names
            fine = self._process is None or not self._process.wait()
        if fine and self._names:
            self._memory.write_text(json.dumps(self._wanted), encoding="utf-8")
        return fine

    def stop(self) -> None:
        """End what is not finished."""
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
    crashed = {"type": "CRASHED", "name": "Crashed", "message": "its worker was ended"}
    sentences = []
    for run in post(api, "flow_runs/filter", flow_runs=states, work_pools={"name": {"any_": [POOL]}}):
        post(api, f"flow_runs/{run['id']}/set_state", state=crashed, force=True)
        sentences.append(f"flow run {run['name']} had no worker any more and is now Crashed")
    return sentences
