"""Restart services that ended or stopped answering: `python -m flows.watch RUNS PREFECT_PORT PORT`, run by `make up`.

It imports neither Prefect nor MLflow. It waits while `make up` or `make down` works in the same folder.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from flows import servers
from flows.processes import START_SECONDS
from flows.service_settings import SERVERS, WATCH, Settings
from ldsvm.atomic import alone, replacing
from ldsvm.production.alarms import Message, send

LOOK_SECONDS = 2.0
SILENT_SECONDS = 60.0  # without an answer, until a server is started again; a busy one has needed 10
MOST, WINDOW_SECONDS = 5, 600.0  # so many restarts in so long a time, and it is given up
MEMORY = "watch.json"


@dataclass
class Record:
    """The restarts of one service since `make up`: what `make status` shows, and what the pauses depend on."""

    restarts: int = 0
    last: str = ""
    given_up: str = ""
    recent: list[float] = field(default_factory=list)
    started: float | None = None  # when it was started again and has not answered yet
    silent: float | None = None
    due: float | None = None
    why: str = ""

    def say(self) -> str:
        """Return what `make status` adds to the state of the service; "" when nothing happened."""
        if self.given_up or not self.restarts:
            return self.given_up
        times = "once" if self.restarts == 1 else f"{self.restarts} times"
        return f"restarted {times}, last at {self.last}"


class Watch:
    """Looks at each service again and again. tell: gets a sentence on everything done. clock: seconds."""

    def __init__(
        self, settings: Settings, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings, self._tell, self._clock = settings, tell, clock
        self.records = {name: Record() for name in SERVERS}

    def look(self) -> None:
        """Look at each service once, and restart those that are due."""
        for name, record in self.records.items():
            if not record.given_up and self.settings.file(name).exists():
                self._look(name, record)

    def _look(self, name: str, record: Record) -> None:
        now = self._clock()
        if record.due is None:
            record.why = self._wrong(name, record, now)
            if not record.why:
                return
            record.recent = [one for one in record.recent if now - one < WINDOW_SECONDS]
            if len(record.recent) >= MOST:
                record.given_up = (
                    f"{record.why}; given up after {MOST} restarts in {WINDOW_SECONDS / 60:.0f} minutes: "
                    f"see {self.settings.log(name)}, then run make up"
                )
                self._note(f"{name} {record.given_up}")
                send(Message("given_up", f"{name} {record.given_up}"), self.settings.runs, self._tell)
                return
            record.due = now + (pause := 2.0 ** len(record.recent))
            self._tell(f"{name} {record.why}; restarting it in {pause:.0f} s")
        if now < record.due:
            return
        if self.settings.alive(name) and servers.healthy(name, self.settings):
            record.silent = record.due = None  # it was only busy
            return
        servers.end(name, self.settings)  # its flow runs, or what else is left of it
        servers.launch(name, self.settings)
        record.recent.append(now)
        record.restarts, record.last = record.restarts + 1, f"{datetime.now():%Y-%m-%d %H:%M:%S}"
        record.started, record.silent, record.due = now, None, None
        self._note(f"{name} {record.why} and was restarted")

    def _wrong(self, name: str, record: Record, now: float) -> str:
        """Return what is wrong with a service, "" when nothing is (or not for long enough)."""
        if not self.settings.alive(name):
            return "ended"
        unasked = name == "worker" and not servers.healthy("prefect", self.settings)  # only Prefect knows
        if unasked or servers.healthy(name, self.settings):
            record.silent = None
            record.started = record.started if unasked else None
            return ""
        record.silent = now if record.silent is None else record.silent
        patience = SILENT_SECONDS if record.started is None else START_SECONDS
        return f"has not answered for {patience:.0f} s" if now - record.silent >= patience else ""

    def _note(self, sentence: str) -> None:
        self._tell(sentence)
        with replacing(self.settings.folder / MEMORY) as new:
            new.write_text(json.dumps({name: asdict(record) for name, record in self.records.items()}), "utf-8")


def records(settings: Settings) -> dict[str, Record]:
    """Return the record of each service in the watch's file."""
    try:
        said: dict[str, Any] = json.loads((settings.folder / MEMORY).read_text("utf-8"))
        return {name: Record(**one) for name, one in said.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _tell(sentence: str) -> None:
    print(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {sentence}", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Look every LOOK_SECONDS, until a signal ends this process or its file is gone."""
    runs, *ports = arguments
    settings = Settings(Path(runs), *map(int, ports))
    watch = Watch(settings, _tell)
    _tell("watching")
    while True:
        time.sleep(LOOK_SECONDS)
        with suppress(ChildProcessError):  # those that we started: what has ended is forgotten by the system
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        try:
            with alone(settings.folder, wait=False):
                mine = settings.process(WATCH)
                if mine is None or mine.pid != os.getpid():
                    return
                watch.look()
        except TimeoutError:  # make up or make down works here
            continue
        except OSError as error:  # such as a full disk
            _tell(f"{type(error).__name__}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
