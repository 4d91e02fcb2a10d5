"""What a person sees while it works: one moving line in a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

QUIET_SECONDS = 5.0
START = time.monotonic()
console = Console(stderr=True, highlight=False)
ever_shown: list[str] = []


def say(text: str) -> None:
    """Print one line with the seconds since the start."""
    console.print(f"[dim]{time.monotonic() - START:6.1f} s[/dim]  {text}", soft_wrap=True)


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show that `text` goes on; call what it yields with news, and the last news stays on the screen."""
    last, printed = "", ""
    shown = time.monotonic()
    if not console.is_terminal and not ever_shown:
        say(f"{text} …")  # where no line moves, the first wait of many seconds is announced
    ever_shown.append(text)
    with console.status(text) as status:  # draws nothing where there is no terminal

        def news(more: str) -> None:
            nonlocal last, printed, shown
            last = f"{text} · {more}"
            status.update(last)
            if not console.is_terminal and time.monotonic() - shown > QUIET_SECONDS:
                shown, printed = time.monotonic(), last
                say(last)

        yield news
    if last != printed or not last:
        say(last or text)
