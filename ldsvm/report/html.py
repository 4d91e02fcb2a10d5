"""HTML pages that need nothing else: styles and pictures are inside them, and they have no scripts."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ldsvm.report import differences, metric_tables, tables
from ldsvm.report.plotting.base import Drawing


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows, in words, and the line below it; wide ones take a whole row of the page."""

    name: str
    drawing: Drawing
    alt: str
    caption: str
    wide: bool = False

    @property
    def address(self) -> str:
        """The figure itself, as an address in a page."""
        return f"data:image/png;base64,{base64.b64encode(self.drawing.png).decode('ascii')}"


def render(template: str, **values: Any) -> str:
    """Return a template of the folder `templates` filled with these values, whose text is escaped."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"tables": tables, "metrics": metric_tables, "differences": differences}
    found.globals["parts"] = found.get_template("parts.html").module
    return found
