"""A page with claims, comparisons and main figures of several experiments, and links to their reports."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldsvm.report import build, html
from ldsvm.report.publish import EXTRACT


@dataclass(frozen=True)
class Entry:
    """Title and folder of results of an experiment or study, the command that runs it, whether its last run failed."""

    title: str
    results: Path
    command: str
    failed: bool

    @property
    def extract(self) -> Path:
        """The file with what the page shows of it."""
        return self.results / EXTRACT

    @property
    def made(self) -> str:
        """When that was written."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.extract.stat().st_mtime))


def overview(entries: Sequence[Entry], small: bool) -> Path:
    """Write the page beside the results of the last one, and return it. small: whether all are small versions."""
    file = entries[-1].results.parent / ("paper-small.html" if small else "paper.html")
    page = html.render("paper.html", title="The paper, reproduced", entries=entries, small=small)
    return build.write(file, page)
