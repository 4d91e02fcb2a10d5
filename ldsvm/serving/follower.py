"""Looks at the registry, and has the folder of a server hold the champion."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ldsvm.production.registry import CHAMPION, Registry, Version
from ldsvm.serving.champion import Champion
from ldsvm.serving.folder import Folder, Settings, State
from ldsvm.tracking.client import TrackingFailed
from ldsvm.tracking.server import redacted

LOG = logging.getLogger(__name__)
EVERY = 1.0  # seconds between two questions to a server
AGAIN = 30.0  # and to a file of this computer, to which nobody has written meanwhile
KEPT = 4  # versions whose files stay in the folder, so that going back takes no copy


class Follower:
    """Takes each new champion into the folder, once it could be loaded here; else the old one stays.

    registry: returns the registry; called again after the store has failed.
    """

    def __init__(self, folder: Folder, settings: Settings, registry: Callable[[], Registry]) -> None:
        self.folder, self.settings, self._registry = folder, settings, registry
        self._open: Registry | None = None
        self._have: dict[tuple[int, str], str] = {}
        self._state, self._due, self._full = State(), 0.0, False

    def look(self) -> State:
        """Look once, and return what the folder says then. Whatever fails is written there, and in the log."""
        before = self._state
        try:
            self._open = self._open or self._registry()
            moved = self._open.moved()
            if moved or time.monotonic() > self._due:
                self._due = time.monotonic() + (EVERY if moved is None else AGAIN)
                version = self._open.require(CHAMPION)
                self._state = State(version.number, self._file(version), "", before.failures)
        except Exception as error:
            if isinstance(error, TrackingFailed):
                self._open = None
            said = redacted(" ".join(str(error).split()) or type(error).__name__)
            self._state = replace(before, problem=said, failures=before.failures + 1)
        try:
            if self._state == before:
                self.folder.beat()
            else:
                self.folder.say(self._state)
                self._tell(before)
            self._full = False
        except OSError as error:  # such as a full disk, of which no server that answers should die
            if not self._full:
                LOG.warning(
                    "%s cannot be written to (%s); the loaded version goes on answering",
                    self.folder.path,
                    error.strerror,
                )
            self._full, self._state, self._due = True, before, time.monotonic() + EVERY
        return self._state

    def _file(self, version: Version) -> str:
        """Return the file of a version in the folder; it is there, and can be loaded."""
        key = version.number, version.run_id
        if key not in self._have:
            assert self._open is not None
            name = f"versions/{version.number}-{version.run_id}"
            place = self.folder.path / name
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            file = self._open.file(version, place)
            try:
                Champion.load(file, version.number, self.settings)
            except Exception as error:
                raise ValueError(f"{version} cannot be loaded ({type(error).__name__}: {error})") from error
            self._have[key] = str(file.relative_to(self.folder.path))
            self._prune()
        return self._have[key]

    def _prune(self) -> None:
        while len(self._have) > KEPT:
            oldest = next(iter(self._have))
            shutil.rmtree(Path(self.folder.path, self._have.pop(oldest)).parent, ignore_errors=True)

    def _tell(self, before: State) -> None:
        now = self._state
        if now.problem and now.problem != before.problem:
            kept = f"; version {now.version} goes on answering" if now.version else ""
            LOG.warning("%s%s", now.problem.rstrip("."), kept)
        elif now.version != before.version:
            LOG.warning("%s version %d now answers", self.settings.model, now.version)
