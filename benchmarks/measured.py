"""README's table of what was measured, from the records in docs/measured: `python -m benchmarks.measured` writes it.

What a benchmark says there is its function `quoted(result)`, which returns pairs of what was measured and the figure.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, read_json
from benchmarks.names import NAMES

RECORDS = ROOT / "docs" / "measured"
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- measured -->\n).*?(<!-- end of measured -->)", re.DOTALL)
HEAD = "| what | result | command | commit |\n| --- | --- | --- | --- |\n"


def measured_table(records: Path = RECORDS) -> str:
    """Return the table in Markdown, in the order of the benchmarks, and the machines below it.

    Raises ValueError for a record of `--quick`, and for one without a commit.
    """
    lines, machines = [], []
    for name in NAMES:
        if not (records / f"{name}.json").is_file():
            continue
        result, record = read_json(records / f"{name}.json")
        if record["quick"] or record["commit"] is None:
            raise ValueError(f"{name}.json is of a quick run, or of no commit; allowed: a whole run of a checkout")
        quoted = getattr(import_module(f"benchmarks.{name}"), "quoted", None)
        machine = _machine(record)
        if quoted is not None and machine not in machines:
            machines.append(machine)
        mark = "" if machines[:1] == [machine] else f", {machines.index(machine) + 1}"
        said = [] if quoted is None else quoted(result)
        lines += [f"| {what} | {figure} | `{name}` | {record['commit'][:7]}{mark} |" for what, figure in said]
    below = "; ".join(machines) if len(machines) < 2 else "; ".join(f"({i + 1}) {m}" for i, m in enumerate(machines))
    return HEAD + "\n".join(lines) + f"\n\nMachine: {below}.\n"


def _machine(record: dict[str, Any]) -> str:
    machine, versions = record["machine"], record["versions"]
    return f"{machine['cores']} cores, {machine['processor']}, Python {versions['python']}, NumPy {versions['numpy']}"


def replaced(text: str, table: str) -> str:
    """Return a text whose block between the marks of this module is the table."""
    if not BLOCK.search(text):
        raise ValueError("README.md has no lines <!-- measured --> and <!-- end of measured -->")
    return BLOCK.sub(lambda found: found[1] + table + found[2], text)


def main() -> int:
    try:
        README.write_text(replaced(README.read_text("utf-8"), measured_table()), encoding="utf-8")
    except (ValueError, json.JSONDecodeError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{README.name} has the table of {len(list(RECORDS.glob('*.json')))} records in {RECORDS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
