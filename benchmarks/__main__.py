"""Command line: one benchmark, its table, a line per bar, and the exit status; or all of them, one after the other."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.harness import progress, write_json
from benchmarks.names import NAMES
from ldsvm.datasets import DataError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run one benchmark or all. Exit code 0 if every bar (target) holds, else 1.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="benchmarks:\n"
        + "\n".join(f"  {name:14s} {text}" for name, text in NAMES.items())
        + "\n\nExcept large_table, pipeline, serve, story, tabular and imports, they need MNIST (data and baselines\n"
        "also 20 newsgroups): set LDSVM_DATA_HOME to the folder with the raw files, or be online. tabular needs\n"
        "CSV files with the class in the last column, in the folder tables/ there. --quick needs no data.\n\n"
        "To update the results in README and docs/results: python -m benchmarks --all --json-dir docs/measured\n"
        "(most of a day), then make measured.",
    )
    parser.add_argument("name", choices=NAMES, nargs="?", metavar="NAME", help="one of the names below")
    parser.add_argument("--all", action="store_true", help="run all, each in its own process")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write rows, bars, machine and versions to FILE")
    parser.add_argument("--json-dir", type=Path, metavar="DIR", help="write them to DIR/NAME.json")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes on scikit-learn's digits, to see that it works; bars are shown but do not count; takes"
        " seconds, or minutes for large_table, pipeline, serve, shards and story, which start servers",
    )
    parser.add_argument(
        "--full", action="store_true", help="tabular only: all rows of each table, instead of at most 5,000"
    )
    return parser


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.all == bool(arguments.name):
        parser.error("give either NAME or --all")
    if arguments.full and arguments.name != "tabular":
        parser.error("--full is for tabular only")
    if arguments.json and arguments.all:
        parser.error("--json is for one benchmark; use --json-dir with --all")
    if arguments.json_dir:
        if not arguments.json_dir.is_dir():
            parser.error(f"--json-dir {arguments.json_dir} must be an existing folder")
        if not arguments.all:
            arguments.json = arguments.json_dir / f"{arguments.name}.json"
    if arguments.json and (arguments.json.is_dir() or not arguments.json.resolve().parent.is_dir()):
        parser.error(f"--json {arguments.json} must be a file in an existing folder")
    return _run_all(arguments) if arguments.all else _run_one(arguments)


def _run_one(arguments: argparse.Namespace) -> int:
    try:
        module = import_module(f"benchmarks.{arguments.name}")
        result = module.run(quick=arguments.quick, **_more(arguments))
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    print(result.table())
    for bar in result.bars:
        print(bar)
    if arguments.json:
        write_json(arguments.json, arguments.name, result, arguments.quick)
        if hasattr(module, "picture"):
            module.picture(result, arguments.json.with_suffix(".png"))
        _journal(arguments.json).unlink(missing_ok=True)
    return 0 if arguments.quick or all(bar.holds for bar in result.bars) else 1


def _more(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what `tabular` alone takes."""
    if arguments.name != "tabular":
        return {}
    return {"full": arguments.full, "journal": arguments.json and _journal(arguments.json)}


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _run_all(arguments: argparse.Namespace) -> int:
    """Run every benchmark in a process of its own, so that none has the memory, threads or caches of another."""
    more = [*(["--quick"] if arguments.quick else [])]
    more += ["--json-dir", str(arguments.json_dir)] if arguments.json_dir else []
    codes = {}
    for name in NAMES:
        progress(f"{name}: {NAMES[name]}")
        codes[name] = subprocess.run([sys.executable, "-m", "benchmarks", name, *more], check=False).returncode
    for name, code in codes.items():
        print(f"{name}: {['all bars hold', 'a bar falls short'][code] if code in (0, 1) else f'ended with {code}'}")
    return max(abs(code) for code in codes.values())


if __name__ == "__main__":
    sys.exit(main())
