"""README's tables of what was measured, from the records in docs/measured: `python -m benchmarks.measured` writes them.

What a benchmark says there is its function `quoted(result)`, which returns pairs of what was measured and the figure.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import baselines
from benchmarks.harness import ROOT, read_json
from benchmarks.names import NAMES

RECORDS = ROOT / "docs" / "measured"
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
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


def baseline_tables(records: Path = RECORDS) -> str:
    """Return the tables of all methods under one judge, empty where that was not measured."""
    place = records / "baselines.json"
    return baselines.quoted_tables(read_json(place)[0]) if place.is_file() else ""


def replaced(text: str, records: Path = RECORDS) -> str:
    """Return README's text with the tables that the records make."""
    made = {"figures": measured_table, "baselines": baseline_tables}
    return BLOCK.sub(lambda found: found[1] + made[found[2]](records) + found[3], text)


def main() -> int:
    try:
        README.write_text(replaced(README.read_text("utf-8")), encoding="utf-8")
    except (ValueError, json.JSONDecodeError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{README.name} has the tables of {len(list(RECORDS.glob('*.json')))} records in {RECORDS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
