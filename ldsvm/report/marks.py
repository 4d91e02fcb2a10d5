"""Escape names, labels and messages for Markdown, so that they do not become headings, links or HTML."""

from __future__ import annotations

import re

BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")  # also what ends a line
FIRST = re.compile(r"^(?:[#+=-]+|\d+[.)])(?= |$)|^>")  # begins a heading, an item, a rule, a quotation
# Underscores inside words and lone colons mean nothing; `:smile:` is a code.
MARKS = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|:(?=[\w+-]+:)")


def escape(text: str) -> str:
    r"""Return a text as one line of Markdown that shows just this text.

    >>> print(escape("a|b *c*\n# <b>d</b> R&amp;D error_percent"))
    a\|b \*c\* # &lt;b>d&lt;/b> R&amp;amp;D error_percent
    >>> print(escape("# 1"), escape("1. x"), escape("-0.5"), escape("[x](y)"))
    \# 1 1\. x -0.5 \[x\](y)
    """
    line = MARKS.sub(r"\\\g<0>", BLANK.sub(" ", text).strip())
    line = FIRST.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", line)
    return re.sub(r"&(?=#?\w+;)", "&amp;", line).replace("<", "&lt;")
