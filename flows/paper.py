"""`make paper`: run every experiment and study of the paper in turn, and write an overview page."""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from flows import ROOT
from flows._cli import load_any
from ldsvm.experiment.config.load import ConfigError
from ldsvm.experiment.config.places import check_runs
from ldsvm.report import paper

LIST = ROOT / "conf" / "paper.yaml"


class Terminated(KeyboardInterrupt):
    """SIGTERM has asked this process to end."""


@dataclass(frozen=True)
class Item:
    """One experiment file, the minutes it takes, and the overrides that make it small (--fast)."""

    file: str
    minutes: float
    fast: list[str] = field(default_factory=list)
    fast_minutes: float = 1.0

    def command(self, fast: bool, more: list[str]) -> list[str]:
        """Return the command that runs it."""
        return [sys.executable, "-m", "flows", "pipeline", self.file, *self.overrides(fast, more)]

    def overrides(self, fast: bool, more: list[str]) -> list[str]:
        """Return the "key=value" lines of a run."""
        return [*(self.fast if fast else []), *more]


def items() -> list[Item]:
    """Return what conf/paper.yaml lists."""
    return [Item(**entry) for entry in yaml.safe_load(LIST.read_text(encoding="utf-8"))]


def run(found: list[Item], fast: bool, more: list[str]) -> list[Item]:
    """Run each in its own process, which skips finished work; return those that failed."""
    failed = []
    for i, item in enumerate(found):
        print(f"[{i + 1}/{len(found)}] {item.file}", flush=True)
        if _ended(subprocess.Popen(item.command(fast, more), cwd=ROOT)) != 0:
            failed.append(item)
    return failed


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process and return its exit status; when asked to stop, let the process stop and clean up first."""
    try:
        return process.wait()
    except KeyboardInterrupt as stop:
        if isinstance(stop, Terminated):
            process.terminate()  # Ctrl-C has reached it already; SIGTERM has reached us alone
        process.wait()
        raise


def overview(found: list[Item], fast: bool, more: list[str], failed: Sequence[Item] = ()) -> Path:
    """Write the overview page and return its path. failed: those whose last run failed."""
    entries = []
    for item in found:
        config = load_any(item.file, item.overrides(fast, more))
        command = shlex.join(["python", *item.command(fast, more)[1:]])
        entries.append(paper.Entry(config.title, config.results, command, item in failed))
    return paper.overview(entries, fast)


def main() -> int:
    """Print how long it will take, run, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.paper",
        description="Run the experiments of the paper (conf/paper.yaml), skip finished work, write an overview page.",
    )
    parser.add_argument("--fast", action="store_true", help="run small versions of all")
    parser.add_argument(
        "overrides", metavar="key=value", nargs="*", help="override entries of all, as in paths.runs=FOLDER"
    )
    asked = parser.parse_args()
    found = items()
    for item in found:
        print(f"{item.fast_minutes if asked.fast else item.minutes:6g} min  {item.file}")
    whole = sum(item.fast_minutes if asked.fast else item.minutes for item in found)
    print(f"{whole:6g} min in total on two cores, less where results are already stored")
    try:
        for item in found:  # mistakes show before anything runs
            check_runs(load_any(item.file, item.overrides(asked.fast, asked.overrides)).paths.runs)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _terminated)
    begun = time.monotonic()
    failed = run(found, asked.fast, asked.overrides)
    page = overview(found, asked.fast, asked.overrides, failed)
    print(f"{(time.monotonic() - begun) / 60:.0f} min; all claims: {page}")
    return int(bool(failed))


def _terminated(*_: object) -> None:
    raise Terminated


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped; finished work is kept; run the same command again to continue.", file=sys.stderr)
        sys.exit(130)
