"""What compose.yaml says, read as an engine reads it; no engine."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::-([^}]*))?\}|(\w+))")


@dataclass(frozen=True)
class Service:
    """One service of the file."""

    name: str
    said: dict[str, Any]

    @property
    def words(self) -> list[str]:
        """What it runs."""
        return [*self.said.get("entrypoint", []), *shlex.split(self.said.get("command", ""))]

    @property
    def health(self) -> list[str]:
        """What tells whether it is healthy, by its exit code."""
        kind, *words = self.said["healthcheck"]["test"]
        return words if kind == "CMD" else ["sh", "-c", *words]

    @property
    def user(self) -> tuple[int, int]:
        """Numbers of the user and the group."""
        user, _, group = self.said["user"].partition(":")
        return int(user), int(group)


def read(variables: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the whole file with the variables replaced."""

    def replace(said: Any) -> Any:
        if isinstance(said, dict):
            return {key: replace(one) for key, one in said.items()}
        if isinstance(said, list):
            return [replace(one) for one in said]
        if not isinstance(said, str):
            return said
        return VARIABLE.sub(lambda m: m[1] or variables.get(m[2] or m[4]) or m[3] or "", said)

    found: dict[str, Any] = replace(yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8")))
    return found


def services(variables: Mapping[str, str] = os.environ) -> dict[str, Service]:
    """Return the services by name."""
    return {name: Service(name, said) for name, said in read(variables)["services"].items()}
