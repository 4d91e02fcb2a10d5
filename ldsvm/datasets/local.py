"""Raw and prepared files on the user's disk: finding them, naming missing ones, and keeping the two kinds apart."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldsvm.datasets import cache
from ldsvm.datasets.dataset import DataError, Places
from ldsvm.datasets.entry import Entry

Folder = str | os.PathLike[str]


@dataclass(frozen=True)
class Item:
    """One thing that a data set is read from: its name, where it lies (None: nowhere), and how it is checked.

    ``check()`` reads it, and raises `DataError` when it is not what the catalogue promises.
    """

    name: str
    path: Path | None
    check: Callable[[], object]


def places(cache_dir: Folder, data_home: Folder | None = None, download: bool = True) -> Places:
    """Return where to look; without ``data_home`` the environment variable ``LDSVM_DATA_HOME`` counts, where set."""
    home = data_home or os.environ.get("LDSVM_DATA_HOME")
    return Places(Path(cache_dir), Path(home) if home else None, download)


def prepared(entry: Entry, places: Places) -> Path:
    """Return the name of the prepared file, there or not."""
    return places.cache_dir / f"{entry.name}.parquet"


def check_prepared(path: Path, sha256: str) -> None:
    """Raise `DataError` when a prepared file is damaged or has other content; nothing is rebuilt."""
    fault = cache.check(path, sha256)
    if isinstance(fault, str):
        raise DataError(f"{path}: {fault}.")


def folders(entry: Entry, places: Places) -> tuple[Path, ...]:
    """Return where raw files may lie: ``data_home`` itself, unless others are named alike, and the own folder in it."""
    if places.data_home is None:
        return ()
    own = places.data_home / entry.folder
    return (own,) if entry.only_in_folder else (places.data_home, own)


def find(entry: Entry, places: Places, *names: str) -> Path | None:
    """Return the first file or folder of one of these names; None when there is none; raise as `refuse_special`."""
    candidates = (folder / name for folder in folders(entry, places) for name in names)
    # Path.exists would raise for a folder without permission to read; its files count as missing.
    found = next((path for path in candidates if os.path.exists(path)), None)
    if found is not None:
        refuse_special(found)
    return found


def refuse_special(path: Path) -> None:
    """Raise `DataError` for a pipe, a device or a socket, since reading it may block or never end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        raise DataError(f"{path}: is a {kind}; allowed: regular files and folders of them.")


def missing(entry: Entry, places: Places, name: str, how: str) -> str:
    """Return the start of a sentence, without its end: which file is missing, how it must be, and where to put it."""
    where = (places.data_home or Path("$LDSVM_DATA_HOME")) / entry.folder
    return f"{entry.name}: {name} is missing: put it, {how}, into {where}"


def keep_apart(entry: Entry, places: Places, trees: Sequence[str] = ()) -> None:
    """Raise `DataError` when prepared files would lie beside raw ones, or anywhere inside the raw folders ``trees``."""
    target = places.cache_dir.resolve()
    raw = [folder.resolve() for folder in folders(entry, places)]
    if target in raw or any(target.is_relative_to(folder / tree) for folder in raw for tree in trees):
        raise DataError(
            f"cache_dir={str(places.cache_dir)!r} holds raw files; choose another folder for prepared data."
        )
