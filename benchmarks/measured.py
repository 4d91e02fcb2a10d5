"""The tables of what was measured in README and docs/results, from docs/measured: `python -m benchmarks.measured`.

What a benchmark says there is its function `quoted(result)`, which returns pairs of what was measured and the figure.
Figures of earlier versions, which left no record, are in docs/measured/earlier.md; a record takes the place of all that
its benchmark said there.
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
EARLIER = RECORDS / "earlier.md"
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "results" / "measured.md")
HEADLINES = ("accuracy", "adaptive", "predict", "fit", "calibration", "shards")  # the first line of each is in README
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


def earlier_rows(records: Path = RECORDS, earlier: Path = EARLIER) -> list[tuple[str, str, str]]:
    """Return what was measured, the figure and the command, of benchmarks that have no record yet."""
    lines = [line for line in earlier.read_text(encoding="utf-8").splitlines()[2:] if line.startswith("|")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [(what, figure, name) for what, figure, name in rows if not (records / f"{name.strip('`')}.json").is_file()]


def earlier_table(records: Path = RECORDS) -> str:
    """Return the table in Markdown of what has no record yet, empty where there is nothing."""
    rows = earlier_rows(records)
    head = "| what | result | command |\n| --- | --- | --- |\n"
    return head + "".join(f"| {what} | {figure} | {name} |\n" for what, figure, name in rows) if rows else ""


def headlines(records: Path = RECORDS) -> str:
    """Return README's table: the first figure of each of HEADLINES, from its record or from an earlier version."""
    recorded = {_name_of(line): line for line in reversed(measured_table(records).splitlines()) if line.count("|") == 5}
    before = {name: (what, figure) for what, figure, name in reversed(earlier_rows(records))}
    lines = []
    for name in (f"`{name}`" for name in HEADLINES):
        if name in recorded:
            cells = recorded[name].split(" | ")
            lines.append(f"{cells[0]} | {cells[1]} | {name} |")
        elif name in before:
            lines.append(f"| {before[name][0]} | {before[name][1]} | {name}, earlier version |")
    return "| what | result | benchmark |\n| --- | --- | --- |\n" + "\n".join(lines) + "\n"


def _name_of(line: str) -> str:
    return line.split(" | ")[2]


def baseline_tables(records: Path = RECORDS) -> str:
    """Return the tables of all methods under one judge, empty where that was not measured."""
    place = records / "baselines.json"
    return baselines.quoted_tables(read_json(place)[0]) if place.is_file() else ""


def replaced(text: str, records: Path = RECORDS) -> str:
    """Return the text of a page with the tables that the records make."""
    made = {
        "figures": measured_table, "baselines": baseline_tables, "earlier": earlier_table, "headlines": headlines,
    }  # fmt: skip
    return BLOCK.sub(lambda found: found[1] + made[found[2]](records) + found[3], text)


def main() -> int:
    try:
        for page in PAGES:
            page.write_text(replaced(page.read_text("utf-8")), encoding="utf-8")
    except (ValueError, json.JSONDecodeError) as error:
        print(error, file=sys.stderr)
        return 2
    names = " and ".join(str(page.relative_to(ROOT)) for page in PAGES)
    print(f"{names} have the tables of {len(list(RECORDS.glob('*.json')))} records in {RECORDS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
