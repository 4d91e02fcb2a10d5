"""Files that are complete or absent, never partial."""

from __future__ import annotations

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


def alone(folder: Path, *, wait: bool = True) -> AbstractContextManager[Any]:
    """Let one process at a time work in ``folder``, which is created if needed.

    wait : whether to wait until another process has ended; if not, TimeoutError is raised while there is one
    """
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / ".lock", blocking=wait, thread_local=False)
