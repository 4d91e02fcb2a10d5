"""Files that are complete or absent, never partial, and lines that are added to a file."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name in the same folder and move it onto ``path`` only if the block succeeds.

    The folder is created if needed. The temporary file's name starts with a dot; it is always removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def append_line(path: Path, line: bytes, cut: bytes = b"") -> None:
    """Append a line with one write. A last line that a kill has truncated is ended first, with ``cut``.

    The folder is created if needed. Raises OSError if the line cannot be written as a whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        size = os.fstat(file).st_size
        # Another process may be writing that line just now; then this follows its end, as a line that says nothing.
        end = cut + b"\n" if size and os.pread(file, 1, size - 1) != b"\n" else b""
        whole = end + line + b"\n"
        # One write: with O_APPEND the system puts it behind whatever others wrote meanwhile.
        if os.write(file, whole) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
    finally:
        os.close(file)


def alone(folder: Path, *, wait: bool = True) -> AbstractContextManager[Any]:
    """Let one process at a time work in ``folder``, which is created if needed.

    wait : whether to wait until another process has ended; if not, TimeoutError is raised while there is one
    """
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / ".lock", blocking=wait, thread_local=False)
