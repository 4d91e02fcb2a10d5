"""The folder that the processes of a server share: its settings, the version that is to answer, and files."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ldsvm.atomic import replacing

SETTINGS, STATE = "settings.json", "state.json"
TOKEN = "LDSVM_SERVE_TOKEN"  # variable of the environment with what requests must have
METRICS = "PROMETHEUS_MULTIPROC_DIR"  # and with the folder of numbers, which prometheus_client names so


@dataclass(frozen=True)
class Settings:
    """What a server was asked for. model: its name in the registry. schema, schema_file: see `served`.

    max_body: bytes of a request. max_rate: requests a second, all processes together; 0 sets no limit.
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 5001
    workers: int = 2
    max_body: int = 1_000_000
    max_rate: float = 0.0
    schema: str = "warn"
    schema_file: str | None = None


@dataclass(frozen=True)
class State:
    """Which version is to answer. version: its number, 0 while there is none. file: its model's, in the folder.

    problem: a sentence on why no newer version was taken; empty while all is well. failures: how often that was so.
    """

    version: int = 0
    file: str = ""
    problem: str = ""
    failures: int = 0


class Folder:
    """Files of one server, each of them whole or absent."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def settings(self) -> Settings:
        """Return what `keep` was given."""
        return Settings(**self._read(SETTINGS))

    def keep(self, settings: Settings) -> None:
        """Write the settings."""
        self._write(SETTINGS, asdict(settings))

    def state(self) -> State:
        """Return what `say` was given last; a state without a version before that."""
        try:
            return State(**self._read(STATE))
        except FileNotFoundError:
            return State()

    def say(self, state: State) -> None:
        """Write the state."""
        self._write(STATE, asdict(state))

    def beat(self) -> None:
        """Note that the registry was looked at just now."""
        if (self.path / STATE).exists():
            os.utime(self.path / STATE)

    def beaten(self) -> float:
        """Return when the registry was looked at last, in seconds since 1970; 0 when it never was."""
        try:
            return (self.path / STATE).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _read(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / name).read_text("utf-8"))
        return found

    def _write(self, name: str, said: dict[str, Any]) -> None:
        with replacing(self.path / name) as new:
            new.write_text(json.dumps(said), encoding="utf-8")
