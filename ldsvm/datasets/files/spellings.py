"""Numbers in spellings that are not read: what to do about decimal commas, thousands, percents, and missing values."""

from __future__ import annotations

from typing import Any

from ldsvm.datasets.catalog import optional

DECIMAL = r"^\s*[+-]?(\d+|\d{1,3}(\.\d{3})+),\d*([eE][+-]?\d+)?\s*$"
THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*$"
PERCENT = r"^\s*[+-]?\d+[.,]?\d*\s*%\s*$"
MISSING = r"(?i)^\s*(\?+|-+|\.+|\*+|na|none|nil|missing|unknown)\s*$"
REMEDIES = (
    (DECIMAL, "write a decimal point for a decimal comma, 1.5 and not 1,5"),
    (THOUSANDS, "write no separators of thousands, 1234 and not 1,234"),
    (PERCENT, "write no %, 12 and not 12%"),
    (MISSING, "leave a missing value empty or write NA for it, and no mark such as {first}"),
)


def remedies(strays: Any) -> list[str]:
    """Return how to write texts that are no numbers as such, and nothing where one of them is something else.

    Examples
    --------
    >>> import pyarrow
    >>> remedies(pyarrow.array(["1,5", "?"]))[1], remedies(pyarrow.array(["1,5", "red"]))
    ("leave a missing value empty or write NA for it, and no mark such as '?'", [])
    """
    pc = optional("pyarrow.compute")
    # 1,234 may be either, so it is a thousand where all others are.
    order = sorted(REMEDIES, key=lambda known: known[0] == DECIMAL) if _thousands(strays) else REMEDIES
    found = []
    for pattern, remedy in order:
        hit = pc.match_substring_regex(strays, pattern)
        if pc.any(hit).as_py():
            found.append(remedy.format(first=repr(strays.filter(hit)[0].as_py().strip())))
            strays = strays.filter(pc.invert(hit))
    return [] if len(strays) else found


def _thousands(strays: Any) -> bool:
    pc = optional("pyarrow.compute")
    commas = strays.filter(pc.match_substring_regex(strays, DECIMAL))
    return bool(pc.all(pc.match_substring_regex(commas, THOUSANDS)).as_py())
