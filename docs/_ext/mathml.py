"""Formulas as MathML, which every browser draws by itself: no script from a network, and no images."""

from __future__ import annotations

from typing import Any

from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def inline(translator: Any, node: Any) -> None:
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise _skip()


def block(translator: Any, node: Any) -> None:
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    translator.body.append(f'<div class="math">{number}{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise _skip()


def _skip() -> Exception:
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
