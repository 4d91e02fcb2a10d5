"""The command `python -m flows data`: list the data sets, prepare them, and verify their files. It starts no server."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldsvm.datasets.dataset import Places
    from ldsvm.datasets.entry import Entry

ACTIONS = {
    "list": "list the data sets: size, licence, and whether their files are there",
    "fetch": "load the data set NAME from raw files or by download, and keep the prepared file",
    "verify": "compare raw and prepared files of NAME, or of all, with their checksums; changes nothing",
}
EXAMPLES = """
examples:
  python -m flows data list
  python -m flows data fetch newsgroups
  python -m flows data verify
  python -m flows data fetch mnist paths.cache=elsewhere/prepared

Raw files are read from the folder in the environment variable LDSVM_DATA_HOME (see data/README.md) and never changed;
prepared files go to paths.cache (data/prepared/).
exit codes: 0 done and nothing damaged, 2 something damaged or a mistake in the command.
"""
HEADER = ("name", "rows", "features", "classes", "MB", "licence", "status")


def main(arguments: Sequence[str], *, cache_dir: Path, entries: Mapping[str, Entry] | None = None) -> int:
    """Run one action and return the exit code.

    arguments: the action, and the name of a data set. cache_dir: folder of prepared files. entries: the catalogue,
    None for the project's own.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.action == "fetch" and asked.name is None:
        parser.error("fetch needs the NAME of a data set, such as mnist")
    from ldsvm.datasets.catalog import catalogue
    from ldsvm.datasets.dataset import DataError
    from ldsvm.datasets.loading import find
    from ldsvm.datasets.local import places

    try:
        known = catalogue() if entries is None else entries
        chosen = list(known.values()) if asked.name is None else [find(asked.name, known)]
        action = {"list": show, "fetch": fetch, "verify": verify}[asked.action]
        return action(chosen, places(cache_dir))
    except DataError as error:
        print(error, file=sys.stderr)
        return 2


def show(entries: Sequence[Entry], places: Places) -> int:
    """Print the table of data sets."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from ldsvm.datasets import stock

    table = Table(box=box.SIMPLE_HEAD)
    for name in HEADER:
        right = name in ("rows", "features", "classes", "MB")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "licence")
    for entry in entries:
        table.add_row(*stock.row(entry), stock.state(entry, places))
    console = Console(highlight=False, emoji=False)
    console.width = max(console.width, 100)  # without a terminal rich assumes 80 and folds numbers
    console.print(table, markup=False)
    return 0


def fetch(entries: Sequence[Entry], places: Places) -> int:
    """Load each data set, which prepares it, and print where the prepared file is."""
    from flows._cli import say, working
    from ldsvm.datasets import load, local

    for entry in entries:
        with working(f"fetch {entry.name}"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data = load(entry.name, cache_dir=places.cache_dir, data_home=places.data_home, entries={entry.name: entry})
        for warning in caught:
            say(str(warning.message))
        path = local.prepared(entry, places)
        kept = f"{path} ({path.stat().st_size / 1e6:.1f} MB)" if path.exists() else "nothing to keep"
        print(f"{entry.name}: {kept}: {data.source}")
    return 0


def verify(entries: Sequence[Entry], places: Places) -> int:
    """Print one line for each raw and prepared file; return 2 when one is damaged and 0 otherwise."""
    from ldsvm.datasets import stock

    damaged = False
    for entry in entries:
        for what, fault in stock.checks(entry, places):
            print(f"{entry.name:14s}{what}: {fault}", flush=True)
            damaged = damaged or fault.startswith("damaged")
    return 2 if damaged else 0


def _parser() -> argparse.ArgumentParser:
    actions = "\n".join(f"  {name:8s} {what}" for name, what in ACTIONS.items())
    parser = argparse.ArgumentParser(
        prog="python -m flows data",
        description=f"List, fetch or verify the data sets of the catalogue (data/catalog.yaml).\n\nactions:\n{actions}",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", metavar="ACTION", choices=ACTIONS, help="what to do; see above")
    parser.add_argument("name", metavar="NAME", nargs="?", help="a data set (default: all; fetch needs one)")
    return parser
