"""Prefect's database in a new folder: a copy of the first empty one, since making its tables takes ten seconds.

Prefect makes them by over a hundred migrations. What the first server of an installation has made is kept beside the
installed packages, where that folder can be written, under the name of Prefect's version.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path

from ldsvm.atomic import replacing

ELSEWHERE = ("CONNECTION_URL", "HOST", "NAME", "DRIVER")  # settings of a database that is no file of ours


def pattern() -> Path:
    """Return the name of the empty database, there or not."""
    return Path(sys.prefix) / "share" / "ldsvm" / f"prefect-{version('prefect')}.db"


def provide(variables: Mapping[str, str] = os.environ) -> bool:
    """Copy the empty database to where a server with these variables looks for one.

    Returns whether the server must make its own, since there is none to copy: False too where there is a database
    already, or where the user has named another.
    """
    file = _place(variables)
    if file is None or file.exists():
        return False
    if not pattern().is_file():
        return True
    with suppress(OSError), replacing(file) as copy:  # Prefect says what is wrong with the folder
        shutil.copyfile(pattern(), copy)
    return False


def keep(variables: Mapping[str, str] = os.environ) -> None:
    """Keep the database that a server has just made, before anything is in it, for the next folder."""
    file, kept = _place(variables), pattern()
    if file is None or kept.exists():
        return
    with (
        suppress(OSError, sqlite3.Error),  # without it the next folder only takes longer
        replacing(kept) as copy,
        closing(sqlite3.connect(file)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


def _place(variables: Mapping[str, str]) -> Path | None:
    prefixes = ("PREFECT_SERVER_DATABASE_", "PREFECT_API_DATABASE_")
    if any(variables.get(f"{prefix}{name}") for prefix in prefixes for name in ELSEWHERE):
        return None
    home = variables.get("PREFECT_HOME")
    return Path(home) / "prefect.db" if home else None
