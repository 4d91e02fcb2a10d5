"""Run a Python module as `python -m` does, with less work at its start: `python -m flows.launcher MODULE ARGUMENT …`.

Prefect and MLflow make hundreds of thousands of objects while they are imported, and Python would look through them
again and again for garbage that is not there: a fifth of their start.
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
    """Import these modules, with a lazy search for garbage from now on, and wait until a server answers at `url`.

    So what starts after a server imports while that one does. Raises SystemExit when there is no answer in time.
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
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m flows.launcher", description="Run a module, quickly started.")
    parser.add_argument("--load", action="append", default=[], metavar="MODULE", help="imported before the wait")
    parser.add_argument("--after", metavar="URL", help="run once a server answers there")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="MODULE ARGUMENT …")
    given = parser.parse_args()
    hurry(given.load, given.after)
    run(given.command)


if __name__ == "__main__":
    main()
