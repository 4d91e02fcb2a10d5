"""The SQLite file of the tracking store: make it fast, notice changes, and explain errors in a sentence. No MLflow."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

NAME = "mlflow.db"
LOCK_SECONDS = 20.0  # as long as MLflow itself waits inside a call
LOCAL = {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}


def store_uri(runs: Path) -> str:
    """Return the absolute address of the store in the folder `runs`."""
    return f"sqlite:///{runs.resolve() / NAME}"


def has_open_runs(runs: Path) -> bool:
    """Whether runs of the store are RUNNING, found without importing MLflow, which would take seconds."""
    file = runs / NAME
    if not file.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", timeout=LOCK_SECONDS, uri=True)) as connection:
            return connection.execute("SELECT 1 FROM runs WHERE status = 'RUNNING' LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True  # whatever it is, MLflow says it


class TrackingFailed(RuntimeError):
    """The tracking store cannot be used; one sentence that ends with what would help.

    transient: whether the same call may go well in a moment.
    """

    transient = False


class TrackingLocked(TrackingFailed):
    """Another process kept the store locked for too long."""

    transient = True


class StoreFile:
    """The file of the store in the folder `runs`."""

    def __init__(self, runs: Path) -> None:
        self.path = runs.resolve() / NAME
        self._identity: tuple[int, int] | None = None

    def check(self) -> None:
        """Raise TrackingFailed when no store can be at this path."""
        if self.path.is_dir():
            raise TrackingFailed(f"{self.path} is a folder, where a file must be; move it away.")
        if not all(os.access(place, os.W_OK) for place in (self.path.parent, self.path) if place.exists()):
            raise self._unwritable()

    def create(self, make_tables: Callable[[str, str], None]) -> None:
        """Make the file, whole or not at all: MLflow would refuse one whose making was stopped on the way.

        make_tables: makes a store at an address, with a place for artifacts.
        """
        new = self.path.with_name(f"new-{NAME}")
        for left in new.parent.glob(f"{new.name}*"):  # by a process that was killed
            left.unlink()
        make_tables(f"sqlite:///{new}", (self.path.parent / "artifacts").as_uri())
        os.replace(new, self.path)

    def prepare(self) -> None:
        """Make the file fast; waits LOCK_SECONDS for a lock, and raises what `guard` translates."""
        with closing(sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")  # fails now, and not after MLflow's minutes of trying
            connection.execute("ROLLBACK")
            if _on_local_disk(self.path.parent):
                with suppress(sqlite3.OperationalError):  # somebody reads just now: it stays as it was, only slower
                    connection.execute("PRAGMA journal_mode=WAL")

    def remember(self) -> None:
        """Remember the file that is there now, which must not be replaced."""
        self._identity = _identity(self.path)

    def written(self) -> list[tuple[int, int]]:
        """Return times and sizes of the file and of its journal, which change when somebody writes to the store."""
        found = []
        for file in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            with suppress(FileNotFoundError):
                stat = file.stat()
                found.append((stat.st_mtime_ns, stat.st_size))
        return found

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn what SQLite or the system says in the block into TrackingFailed or TrackingLocked."""
        if self._identity is not None and _identity(self.path) != self._identity:
            raise self._gone()
        try:
            yield
        except TrackingFailed:
            raise
        except Exception as error:
            cause = _root(error)
            if cause is None:
                raise
            raise self._failure(cause) from error

    def foreign(self) -> TrackingFailed:
        """Return what to raise when MLflow does not know the tables."""
        return TrackingFailed(
            f"{self.path} was made by another version of MLflow; move it away, or run mlflow db upgrade on a copy."
        )

    def _failure(self, cause: sqlite3.Error | OSError) -> TrackingFailed:
        if isinstance(cause, OSError):
            place, why = cause.filename or self.path, cause.strerror or cause
            return TrackingFailed(f"{place} cannot be used ({why}); choose another folder with paths.runs.")
        code = getattr(cause, "sqlite_errorname", "")
        if self._identity is not None and _identity(self.path) != self._identity:
            return self._gone()
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return TrackingLocked(
                f"{self.path} was locked by another process for {LOCK_SECONDS:g} s; run again when it is done."
            )
        if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return self._unwritable()
        if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return TrackingFailed(f"{self.path} is not an SQLite database, or is damaged; move it away, and run again.")
        return TrackingFailed(f"{self.path} cannot be used ({cause}); repair that, or move it away, and run again.")

    def _gone(self) -> TrackingFailed:
        return TrackingFailed(f"{self.path} was removed or replaced while it was in use; run again.")

    def _unwritable(self) -> TrackingFailed:
        return TrackingFailed(
            f"{self.path} cannot be written to; make it and its folder writable, or choose another with paths.runs."
        )


def _root(error: BaseException) -> sqlite3.Error | OSError | None:
    """Return what SQLite or the system raised at the bottom of MLflow's and SQLAlchemy's errors, if one did."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, sqlite3.Error | OSError):
        found = found.__cause__
    return None if isinstance(found, sqlite3.IntegrityError) else found  # that one is a mistake of the caller


def _on_local_disk(folder: Path) -> bool:
    """Whether Linux lists the folder's file system as one of this machine: SQLite's quick journal allows no other."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    except OSError:
        return False
    kinds = {line.partition(" - ")[2].split()[0] for line in lines if line.split()[2] == number}
    return bool(kinds & LOCAL)


class Guarded:
    """MLflow's client; its methods raise TrackingFailed where the store is the reason. file: has a `guard`."""

    def __init__(self, client: Any, file: Any) -> None:
        self.client, self.file = client, file

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):  # what copying looks for before `client` is there
            raise AttributeError(name)
        method = getattr(self.client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.file.guard():
                return method(*args, **kwargs)

        return call


@cache
def tend_connections() -> None:
    """Let this process write to stores with SQLite's fast journal without waiting for the disk at each commit.

    After a power cut the last runs may be missing from such a store, which is not damaged. Also, a connection to a file
    that has been replaced, such as by a backup, is not used again; MLflow keeps connections while a process lives.
    """
    from sqlalchemy import Engine, event
    from sqlalchemy.exc import DisconnectionError

    @event.listens_for(Engine, "connect")
    def relax(connection: Any, record: Any) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return
        with suppress(sqlite3.OperationalError):  # locked, so the journal is the other one
            files = [Path(row[2]) for row in connection.execute("PRAGMA database_list")]
            if [file.name for file in files] == [NAME]:
                record.info["file"] = files[0], _identity(files[0])
                if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                    connection.execute("PRAGMA synchronous=NORMAL")

    @event.listens_for(Engine, "checkout")
    def renew(_: Any, record: Any, __: Any) -> None:
        file, known = record.info.get("file", (None, None))
        if file is not None and (now := _identity(file)) is not None and now != known:
            raise DisconnectionError(f"{file} is another file now")  # SQLAlchemy connects anew


def _identity(file: Path) -> tuple[int, int] | None:
    """Return what identifies a file, even if another gets its name; None where there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
