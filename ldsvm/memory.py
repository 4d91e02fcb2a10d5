"""How much memory this process may still allocate."""

from __future__ import annotations

import os
from pathlib import Path

GIB = 2**30
MIB = 2**20
# Directory, limit, usage, and the part of the usage that the system gives back when asked: pages of files.
CGROUP_2 = ("", "memory.max", "memory.current", "inactive_file")
CGROUP_1 = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def available(root: Path = Path("/")) -> int | None:
    """Return the bytes this process may still allocate; None if it is unknown.

    That is what Linux calls available, less where a control group of this process, or one around it, allows less.
    root: where the directories proc and sys are.
    """
    found = [_system(root), *_groups(root)]
    return min((left for left in found if left is not None), default=None)


def _system(root: Path) -> int | None:
    sizes = _table(root / "proc/meminfo")
    if "MemAvailable" in sizes:
        return sizes["MemAvailable"] * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such name on this system
        return None


def _groups(root: Path) -> list[int]:
    """Bytes left in every control group with a limit that this process is in, of version 1 or 2."""
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or "memory" in controllers.split(","):
            folder, *names = CGROUP_2 if number == "0" else CGROUP_1
            top = root / "sys/fs/cgroup" / folder
            own = top / path.lstrip("/")
            # in a container the path may be the host's, and the group is then what is mounted at the top
            left += [_group(place, *names) for place in (own, *own.parents) if place.is_relative_to(top)]
    return [size for size in left if size is not None]


def _group(place: Path, limit: str, usage: str, reclaimable: str) -> int | None:
    limit, usage = _text(place / limit).strip(), _text(place / usage).strip()
    if not (limit.isdigit() and usage.isdigit()):  # no such group, or "max"
        return None
    files = _table(place / "memory.stat").get(reclaimable, 0)
    return max(0, int(limit) - int(usage) + files)


def _table(file: Path) -> dict[str, int]:
    """Read lines such as "MemAvailable:  123 kB" or "inactive_file 123"."""
    words = [line.replace(":", " ").split() for line in _text(file).splitlines()]
    return {w[0]: int(w[1]) for w in words if len(w) > 1 and w[1].isdigit()}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except OSError:
        return ""
