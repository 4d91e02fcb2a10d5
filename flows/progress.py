"""What a person sees while it works: a moving line in a terminal, else a plain line now and then; Prefect's page."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import cast
from uuid import UUID

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.text import Text

from ldsvm.report import marks

QUIET_SECONDS = 5.0
PAGE_SECONDS = 3.0  # each update of Prefect's page is a request
TRIES = 3  # that Prefect may refuse in a row; it does so when it is busy with something else
START = time.monotonic()
console = Console(stderr=True, highlight=False, emoji=False)
ever_shown: list[str] = []


def say(text: str) -> None:
    """Print one line with the seconds since the start; a deployed run's page has it in its log too."""
    console.print(f"[dim]{time.monotonic() - START:6.1f} s[/dim]  {escape(text)}", soft_wrap=True)
    if os.environ.get("LDSVM_RUNS"):  # of `make up`
        note(text)


def note(text: str) -> None:
    """Write a line into the log of Prefect's run, if one goes on."""
    from prefect import get_run_logger
    from prefect.exceptions import MissingContextError

    with suppress(MissingContextError):
        get_run_logger().info(text)


def run_name() -> str:
    """Return the name of a run, such as "retrain digits 2026-11-29 14:05"; Prefect calls it when the flow begins."""
    from prefect.runtime import flow_run

    config = Path(str(flow_run.parameters.get("config", ""))).stem
    return " ".join([flow_run.flow_name, *([config] if config else []), f"{datetime.now():%Y-%m-%d %H:%M}"])


class News:
    """Tells how one piece of work goes on: call it with a text and, when known, the share that is done, 0 to 1."""

    def __init__(self, text: str, status: Status, page: _Page) -> None:
        self._text, self._status, self._page = text, status, page
        self._last, self._printed, self._shown = "", "", time.monotonic()

    def __call__(self, more: str, share: float | None = None) -> None:
        """Replace the last news."""
        self._last = f"{self._text} · {more}"
        self._status.update(Text(self._last))  # a string would be searched for codes of emoji
        self._page.show(self._last, share)
        if not console.is_terminal and time.monotonic() - self._shown > QUIET_SECONDS:
            self._shown, self._printed = time.monotonic(), self._last
            say(self._last)

    def end(self) -> None:
        """Leave the last news on the screen."""
        if self._last != self._printed or not self._last:
            say(self._last or self._text)
        self._page.show(self._last or self._text, 1.0, last=True)


class _Page:
    """A bar with a text on the page of Prefect's task run; without `key` there is none."""

    def __init__(self, key: str | None) -> None:
        self._key, self._share, self._shown, self._left = key, 0.0, -PAGE_SECONDS, TRIES
        self._number: UUID | None = None

    def show(self, text: str, share: float | None, last: bool = False) -> None:
        """Show it, unless something has been shown just now; nobody's work ends because a bar cannot be drawn."""
        self._share = self._share if share is None else share
        if time.monotonic() - self._shown < PAGE_SECONDS and not last:
            return
        while self._key is not None and self._left:
            self._shown = time.monotonic()
            with suppress(Exception):
                self._send(text)
                self._left = TRIES
                return
            self._left -= 1
            if not last:
                return
            time.sleep(1.0)

    def _send(self, text: str) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        percent, text = round(100 * self._share, 1), marks.escape(text)
        if self._number is None:
            self._number = cast(UUID, create_progress_artifact(percent, self._key, text))
        else:
            update_progress_artifact(self._number, percent, text)


def key(*words: str) -> str:
    """Return what Prefect calls something shown on its pages: ASCII letters and digits in lower case, and dashes."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else "-" for c in word.lower()) for word in words)


@contextmanager
def working(text: str, page: str | None = None) -> Iterator[News]:
    """Show that `text` goes on; call what it yields with news, and the last news stays on the screen.

    page: key of a progress bar on the page of the task run that this is called in.
    """
    if not console.is_terminal and not ever_shown:
        say(f"{text} …")  # where no line moves, the first wait of many seconds is announced
    ever_shown.append(text)
    with console.status(Text(text)) as status:  # draws nothing where there is no terminal
        news = News(text, status, _Page(page))
        yield news
    news.end()


def time_left(seconds: float) -> str:
    """Return seconds as people say them: "about 40 s left", "about 3 min left"."""
    if seconds < 100:
        return f"about {max(1, round(seconds))} s left"
    return f"about {round(seconds / 60)} min left" if seconds < 6000 else f"about {seconds / 3600:.1f} h left"
