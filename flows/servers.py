"""Start, ask and end one service of `make up`; nothing here is slow to import."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import asdict
from datetime import datetime

from flows import deployments, prefect_store, processes
from flows.deployments import POOL
from flows.service_settings import WATCH, Settings


def launch(name: str, settings: Settings) -> None:
    """Start a service, and write the file that describes it; what was left of its group should have been ended."""
    ports = [str(settings.prefect), str(settings.mlflow)]
    command = {
        "prefect": ["flows.launcher", "prefect", "server", "start", "--host", "127.0.0.1", "--port", ports[0]],
        "mlflow": ["flows.launcher", "ldsvm.tracking.ui", str(settings.runs), ports[1]],
        "worker": ["flows.worker"],
        WATCH: ["flows.watch", str(settings.runs), *ports],
    }[name]
    if name == "prefect":
        prefect_store.provide()
    process = processes.launch(command, settings.log(name))
    said = {**asdict(process), "prefect": settings.prefect, "mlflow": settings.mlflow}
    settings.file(name).write_text(json.dumps(said), encoding="utf-8")


def healthy(name: str, settings: Settings) -> bool:
    """Whether a service answers; a worker does when Prefect has had a heartbeat of it since it was started."""
    try:
        if name == WATCH:
            return settings.alive(name)
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


def end(name: str, settings: Settings) -> None:
    """End the whole group of a service, also what is left of it when its leader has died, and remove its file."""
    if process := settings.process(name):
        process.end(f"LDSVM_RUNS={settings.runs}")
    settings.file(name).unlink(missing_ok=True)
