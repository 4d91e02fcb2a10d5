"""Word left by a process that crashes, such as in a library that was refused memory, for whoever finds it gone."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WORDS = "Fatal Python error: "


@contextmanager
def reported(file: Path) -> Iterator[None]:
    """Let a crash of this process be told in a new file, which is gone when there was none.

    A signal from outside, such as SIGKILL, leaves it empty. Where its folder is not, on another machine than that of
    whoever will look, nothing is told.
    """
    try:
        stream = file.open("w")
    except OSError:
        yield
        return
    with stream:
        faulthandler.enable(stream, all_threads=False)
        try:
            yield
        finally:
            with suppress(AttributeError, ValueError, RuntimeError, OSError):  # a standard error that is no file
                faulthandler.enable(all_threads=False)
            os.unlink(file)


def crash(file: Path) -> str | None:
    """Return how the process crashed that had this file, such as "segmentation fault"; None when it is not known to."""
    try:
        first = file.read_text().partition("\n")[0]
    except OSError:
        return None
    return first.removeprefix(WORDS).lower() if first.startswith(WORDS) else None
