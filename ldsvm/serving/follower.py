"""Looks at the registry, and has the folder of a server hold the champion."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from ldsvm.production.registry import CHAMPION, Registry, Version
from ldsvm.serving.champion import Champion
from ldsvm.serving.folder import Folder, Settings, State
from ldsvm.tracking.server import redacted

LOG = logging.getLogger(__name__)
KEPT = 4  # versions whose files stay in the folder, so that going back takes no copy


class Follower:
    """Takes each new champion into the folder, once it could be loaded here; else that is told, and the old one stays.

    registry: returns the registry; called again after the store has failed.
    """

    def __init__(self, folder: Folder, settings: Settings, registry: Callable[[], Registry]) -> None:
        self.folder, self.settings, self._registry = folder, settings, registry
        self._open: Registry | None = None
        self._have: dict[tuple[int, str], str] = {}
        self._state = State()

    def look(self) -> State:
        """Look once, and return what the folder says then. Whatever fails is told there, and in the log."""
        try:
            self._open = self._open or self._registry()
            version = self._open.require(CHAMPION)
            state = State(version.number, self._file(version), "", self._state.failures)
        except Exception as error:
            self._open = None
            said = redacted(" ".join(str(error).split()) or type(error).__name__)
            state = State(self._state.version, self._state.file, said, self._state.failures + 1)
        if (state.version, state.file, state.problem) != (self._state.version, self._state.file, self._state.problem):
            self._tell(state)
            self._state = state
            self.folder.say(state)
        elif state.failures != self._state.failures:
            self._state = state
            self.folder.say(state)
        else:
            self.folder.beat()
        return state

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

    def _tell(self, state: State) -> None:
        if state.problem:
            kept = f"; version {state.version} still answers" if state.version else ""
            LOG.warning("%s%s", state.problem.rstrip("."), kept)
        else:
            LOG.warning("%s version %d answers", self.settings.model, state.version)
