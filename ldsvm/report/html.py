"""One HTML page that needs nothing else: styles and pictures are inside it, and it has no scripts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ldsvm.report.plotting.base import Drawing
from ldsvm.report.tables import Rows


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows, in words, and the line below it; wide ones take a whole row of the page."""

    name: str
    drawing: Drawing
    alt: str
    caption: str
    wide: bool = False


def page(title: str, parts: Sequence[str]) -> str:
    """Return the whole page around parts of HTML."""
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>",
            *parts,
            "</main>\n</body>\n</html>\n",
        ]
    )


def heading(text: str, level: int = 2) -> str:
    """Return a heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph; kind: a class of the style sheet."""
    words = escape(text).replace(" %", "&nbsp;%")  # a number and its unit stay on one line
    return f'<p class="{kind}">{words}</p>' if kind else f"<p>{words}</p>"


def link(text: str, address: str) -> str:
    """Return a paragraph that is a link to another file."""
    return f'<p><a href="{escape(address)}">{escape(text)}</a></p>'


def table(header: Sequence[str], rows: Rows, *, text: Sequence[str] = (), strong: str = "") -> str:
    """Return a table. text: columns of words, set to the left; strong: the first cell of the row to stress."""
    words = {i for i, name in enumerate(header) if name in text}
    head = "".join(
        f"<th scope=col{' class=text' if i in words else ''}>{escape(name)}</th>" for i, name in enumerate(header)
    )
    lines = []
    for row in rows:
        cells = "".join(f"<td{' class=text' if i in words else ''}>{escape(cell)}</td>" for i, cell in enumerate(row))
        lines.append(f"<tr{' class=ours' if strong and row[0] == strong else ''}>{cells}</tr>")
    body = "\n".join(lines)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def facts(pairs: Mapping[str, str]) -> str:
    """Return a table of names and what they are."""
    rows = "\n".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in pairs.items())
    return f'<table class="facts"><tbody>\n{rows}\n</tbody></table>'


def figures(pictures: Sequence[Picture]) -> str:
    """Return pictures side by side, each inside the page itself."""
    return f'<div class="figures">\n{"".join(_figure(picture) for picture in pictures)}</div>'


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.drawing.png).decode("ascii")
    start = '<figure class="wide">' if picture.wide else "<figure>"
    return (
        f'{start}<img src="data:image/png;base64,{data}" alt="{escape(picture.alt)}">'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n"
    )


def details(summary: str, inner: str) -> str:
    """Return a part that opens on a click, without a script."""
    return f"<details><summary>{escape(summary)}</summary>\n{inner}\n</details>"


def code(text: str) -> str:
    """Return preformatted text."""
    return f"<pre>{escape(text)}</pre>"
