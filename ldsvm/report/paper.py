"""A page with claims, comparisons and main figures of several experiments, and links to their reports."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldsvm.report import build, html
from ldsvm.report.publish import EXTRACT, REPORT

FAILED = "The last run did not finish all of its work; what is shown may be of an earlier one."
SMALL = "Fewer samples, sizes and seeds than the paper has: what holds at its sizes need not hold at these."


@dataclass(frozen=True)
class Entry:
    """Title and folder of results of an experiment or study, the command that runs it, whether its last run failed."""

    title: str
    results: Path
    command: str
    failed: bool


def overview(entries: Sequence[Entry], small: bool) -> Path:
    """Write the page beside the results of the last one, and return it. small: whether all are small versions."""
    parts = [html.heading("The paper, reproduced" + (" in small" if small else ""), 1)]
    parts += [html.paragraph(SMALL, "lede")] if small else []
    for entry in entries:
        parts += [html.heading(entry.title), *_part(entry)]
    file = entries[-1].results.parent / ("paper-small.html" if small else "paper.html")
    return build.write(file, html.page("The paper, reproduced", parts))


def _part(entry: Entry) -> list[str]:
    parts = [html.paragraph(FAILED, "lede")] if entry.failed else []
    extract = entry.results / EXTRACT
    if not extract.is_file():
        return [*parts, html.paragraph(f"No result yet: {entry.command}", "soft")]
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(extract.stat().st_mtime))
    link = html.link(f"the report, of {made}", f"{entry.results.name}/{REPORT}")
    return [*parts, link, extract.read_text(encoding="utf-8", errors="replace")]
