"""Folder, ports and files of what `make up` starts; nothing here is slow to import."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.processes import Process

SERVERS = ("prefect", "mlflow", "worker")  # in the order of their start
WATCH = "watch"  # who starts one of them again when it ends or falls silent, see flows/watch.py
NAMES = (*SERVERS, WATCH)


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

    @property
    def folder(self) -> Path:
        """Folder of the files that describe what runs; `make down` removes it."""
        return self.runs / "service"

    def log(self, name: str) -> Path:
        """Log of a service."""
        return self.runs / "logs" / f"service-{name}.log"

    def file(self, name: str) -> Path:
        """File with number and start time of a service's process, and the two ports."""
        return self.folder / f"{name}.pid"

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of that file, with the process under the key process; {} when it cannot be read."""
        try:
            said = json.loads(self.file(name).read_text("utf-8"))
            return {"process": Process(said["pid"], said["born"]), "ports": (said["prefect"], said["mlflow"])}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def process(self, name: str) -> Process | None:
        """Return the process that was started under this name, whether it still runs or not."""
        return self.read(name).get("process")

    def alive(self, name: str) -> bool:
        """Whether that process still runs."""
        process = self.process(name)
        return process is not None and process.alive

    def flow_runs(self) -> list[int]:
        """Return the processes of the flow runs that go on: children of the worker."""
        worker = self.process("worker")
        return [] if worker is None else [pid for pid, up in worker.group("").items() if up == worker.pid]
