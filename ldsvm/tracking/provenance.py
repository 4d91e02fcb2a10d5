"""Where and with what an experiment ran."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import distributions
from pathlib import Path


def environment() -> str:
    """Return the machine and every installed distribution with its version, one to a line."""
    known = [one.metadata for one in distributions()]  # a file that is read at each access
    found = {f"{one['Name']}=={one['Version']}" for one in known if one["Name"]}
    system = f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} processors"
    return "\n".join([f"# {system}", f"# Python {platform.python_version()}", *sorted(found, key=str.lower), ""])


def commit(folder: Path) -> str | None:
    """Return the commit of the checkout in `folder`, marked when files differ from it; None where there is none."""
    found = _git(folder, "rev-parse", "HEAD")
    if found is None:
        return None
    return f"{found} (changed)" if _git(folder, "status", "--porcelain", "--untracked-files=no") else found


@cache
def source_tags() -> dict[str, str]:
    """Return the tags by which MLflow's pages show who ran what: user, program, and our commit where there is one."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user id without a name, as in containers
        user = "unknown"
    program = Path(sys.argv[0]).name if sys.argv else ""
    found = {"mlflow.user": user, "mlflow.source.name": program or "python", "mlflow.source.type": "LOCAL"}
    here = Path(__file__)
    ours = _git(here.parent, "ls-files", "--error-unmatch", here.name)  # installed, it may lie in somebody's checkout
    known = commit(here.parent) if ours else None
    return found if known is None else {**found, "mlflow.source.git.commit": known}


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):  # no git, no checkout, or one of another user
        return None
    return done.stdout.strip()
