"""The version that a process answers with, kept as the folder says."""

from __future__ import annotations

import asyncio
import logging
import time

from ldsvm.serving import metrics
from ldsvm.serving.champion import Champion
from ldsvm.serving.folder import Folder, Settings, State

LOG = logging.getLogger(__name__)
EVERY = 0.2  # seconds between two looks at the folder
KEPT = 2  # loaded versions: going back takes no time


class Current:
    """The loaded champion, or None. If a version cannot be loaded, the one before it stays."""

    def __init__(self, folder: Folder, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.champion: Champion | None = None
        self._state = State()
        self._failed: State | None = None
        self._loaded: dict[tuple[int, str], Champion] = {}
        self._alone = asyncio.Lock()

    async def follow(self) -> None:
        """Look at the folder from time to time, for ever."""
        while True:
            await asyncio.sleep(EVERY)
            await self.look()

    async def look(self) -> None:
        """Take the version that the folder says, if it is another one; requests are answered while it is loaded."""
        async with self._alone:
            await self._look()

    async def _look(self) -> None:
        try:
            self._state = state = self.folder.state()
            key = state.version, state.file
            if state.version and state != self._failed and (self.champion is None or key not in self._answering()):
                if key not in self._loaded:
                    file = self.folder.path / state.file
                    self._loaded[key] = await asyncio.to_thread(Champion.load, file, state.version, self.settings)
                self._take(key)
        except Exception:
            self._failed = self._state
            metrics.LOAD_FAILURES.inc()
            LOG.exception("Version %d cannot be loaded.", self._state.version)
        metrics.FAILURES.set(self._state.failures)
        metrics.LOOKED.set(self.folder.beaten())

    def sentence(self) -> str:
        """Return why there is no version, or no newer one; empty where all is well."""
        model = self.settings.model
        if self.champion is None:
            why = "; the log of the server has the reason" if self._state.problem or self._failed else ""
            return f"No version of {model} is loaded yet{why}."
        if self._failed == self._state:
            return f"Version {self._state.version} of {model} cannot be loaded; the log of the server has the reason."
        return (
            "The champion cannot be read or loaded; the log of the server has the reason."
            if self._state.problem
            else ""
        )

    def _answering(self) -> list[tuple[int, str]]:
        return [key for key, one in self._loaded.items() if one is self.champion]

    def _take(self, key: tuple[int, str]) -> None:
        self.champion = self._loaded.pop(key)
        self._loaded[key] = self.champion  # the last one
        while len(self._loaded) > KEPT:
            del self._loaded[next(iter(self._loaded))]
        metrics.VERSION.set(key[0])
        metrics.LOADED.set(time.time())
