"""Run a Python module as `python -m` does, with less work at its start: `python -m flows.launcher MODULE ARGUMENT …`.

Prefect and MLflow create hundreds of thousands of objects while they are imported. Python's garbage collector would
scan them again and again and find nothing, which takes a fifth of the start.
"""

from __future__ import annotations

import argparse
import gc
import runpy
import sys
import time
import urllib.request
from collections.abc import Sequence
from importlib import import_module

from flows.processes import START_SECONDS

MANY = 100_000  # new objects after which Python looks for garbage; by default 700, or 2,000 from Python 3.13 on


def hurry(modules: Sequence[str] = (), url: str | None = None) -> None:
    """Import these modules with a lazy garbage collector, then wait until a server answers at `url`.

    So the imports run while the server starts. Raises SystemExit when there is no answer in time.
    """
    gc.set_threshold(MANY)
    for module in modules:
        import_module(module)
    end = time.monotonic() + START_SECONDS
    while url is not None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > end:
                sys.exit(f"{url} did not answer within {START_SECONDS:.0f} s")
            time.sleep(0.1)


def run(command: Sequence[str]) -> None:
    """Run the module command[0] with the other words as its arguments."""
    sys.argv = list(command)
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m flows.launcher", description="Run a module with a faster start.")
    parser.add_argument("--load", action="append", default=[], metavar="MODULE", help="import before waiting for URL")
    parser.add_argument("--after", metavar="URL", help="wait until a server answers there")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="MODULE ARGUMENT …")
    given = parser.parse_args()
    hurry(given.load, given.after)
    run(given.command)


if __name__ == "__main__":
    main()
