"""A note left by a process that crashes, such as in a library that was refused memory, for the parent to read."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WORDS = "Fatal Python error: "


@contextmanager
def reported(file: Path) -> Iterator[None]:
    """Record a crash of this process in a new file, which is removed if there was none.

    A signal from outside, such as SIGKILL, leaves the file empty. On another machine, where the folder does not exist,
    nothing is recorded.
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
    """Return how the process with this file crashed, such as "segmentation fault"; None if no crash is known."""
    try:
        first = file.read_text().partition("\n")[0]
    except OSError:
        return None
    return first.removeprefix(WORDS).lower() if first.startswith(WORDS) else None
