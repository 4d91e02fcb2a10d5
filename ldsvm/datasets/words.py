"""Parts of sentences: lists cut short, and names that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray


def told(noun: str, items: Sequence[Any] | NDArray[Any]) -> str:
    """Return a list for a message: at most five of the items, then how many more.

    Examples
    --------
    >>> told("row", [3, 17, 20, 21, 35, 40, 41]), told("column", ["age"])
    ('rows 3, 17, 20, 21, 35 and 2 more', "column 'age'")
    """
    shown = ", ".join(repr(item.item() if isinstance(item, np.generic) else item) for item in items[:5])
    more = f" and {len(items) - 5:,} more" if len(items) > 5 else ""
    return f"{noun}{'s' * (len(items) != 1)} {shown}{more}"


def one_of(wrong: object, allowed: Iterable[str]) -> str:
    """Return the end of a sentence about a wrong name: the valid ones, and the nearest of them where one is near.

    Examples
    --------
    >>> one_of("minst", ["digits", "mnist"])
    'use one of digits, mnist (did you mean mnist?).'
    """
    names = list(allowed)
    near = get_close_matches(str(wrong), names, n=1)
    return f"use one of {', '.join(names)}{f' (did you mean {near[0]}?)' if near else ''}."


def unknown(what: str, key: object, allowed: Iterable[str]) -> str:
    """Return one sentence for a name that nothing knows: the nearest valid one, and all of them."""
    names = list(allowed)
    near = get_close_matches(str(key), names, n=1, cutoff=0.5)
    hint = f' (did you mean "{near[0]}"?)' if near else ""
    return f"{what} is unknown{hint}; allowed: {', '.join(names) or 'no parameters'}."
