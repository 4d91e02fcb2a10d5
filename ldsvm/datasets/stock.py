"""Which data sets of the catalogue are on the disk, and whether their files are intact."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ldsvm.datasets import local
from ldsvm.datasets.dataset import DataError, Places
from ldsvm.datasets.entry import Entry
from ldsvm.datasets.loading import SOURCES

MADE = ("installed", "generated")  # kinds of sources that need no files


def row(entry: Entry) -> tuple[str, ...]:
    """Return name, rows, features, classes, megabytes and licence of a data set as the cells of a table."""
    rows = f"{entry.rows:,}" + (f" + {entry.test_rows:,}" if entry.test_rows else "")
    features = "text" if entry.features is None else f"{entry.features:,}"
    size = f"{entry.size / 1e6:.1f}" if entry.size else "–"
    return entry.name, rows, features, str(entry.classes), size, entry.licence


def state(entry: Entry, places: Places) -> str:
    """Return where a data set is now; `checks` tells whether its files are intact."""
    if made := [kind for kind in MADE if kind in entry.sources]:
        return made[0]
    if local.prepared(entry, places).exists():
        return "prepared"
    found = all(item.path for item in SOURCES[entry.name].items(entry, places))
    return "raw files found" if found else "needs download"


def checks(entry: Entry, places: Places) -> Iterator[tuple[str, str]]:
    """Yield each file of a data set, with "ok", "missing", or what is wrong with it."""
    path = local.prepared(entry, places)
    items = [*SOURCES[entry.name].items(entry, places)]
    if not {*MADE} & {*entry.sources}:
        check = partial(local.check_prepared, path, entry.sha256)
        items.append(local.Item(path.name, path if path.exists() else None, check))
    if not items:
        yield "nothing on the disk", "ok"
    for item in items:
        try:
            if item.path is not None:
                item.check()
            absent = "not prepared yet" if item.name == path.name else "missing"
            yield item.name, absent if item.path is None else "ok"
        except DataError as error:
            yield item.name, f"damaged: {error}"
