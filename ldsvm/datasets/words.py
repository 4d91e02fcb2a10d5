"""Parts of messages: values and lists cut short, and suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 40  # characters of a value that a message shows


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most ``longest`` characters, the last of them "…" where some were cut off.

    Examples
    --------
    >>> cut("a text too long", 7), cut("short", 7)
    ('a text…', 'short')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shown(value: Any) -> str:
    """Return one value, or the name of a column or a class, for a message: quoted where it is text, and cut.

    Examples
    --------
    >>> shown("age"), shown(np.int64(3)), shown("x" * 50) == repr("x" * 39 + "…")
    ("'age'", '3', True)
    """
    plain = value.item() if isinstance(value, np.generic) else value
    return repr(cut(plain)) if isinstance(plain, str) else cut(repr(plain))


def listing(noun: str, items: Sequence[Any] | NDArray[Any], total: int | None = None) -> str:
    """Return a list for a message: at most five of the items, then how many more.

    total: how many there are where ``items`` are only the first of them.

    Examples
    --------
    >>> listing("row", [3, 17, 20, 21, 35, 40, 41]), listing("column", ["age"])
    ('rows 3, 17, 20, 21, 35 and 2 more', "column 'age'")
    """
    n = len(items) if total is None else total
    more = f" and {n - 5:,} more" if n > 5 else ""
    return f"{noun}{'s' * (n != 1)} {', '.join(map(shown, items[:5]))}{more}"


def row_list(rows: Sequence[Any] | NDArray[Any]) -> str:
    """Return rows for a message as people count them who look at the file; every message on rows has it from here.

    rows: their numbers from 0, or pairs of such.

    Examples
    --------
    >>> row_list([7]), row_list([(0, 4)])
    ('row 8, counted from 1 without a header', 'row (1, 5), counted from 1 without a header')
    """
    first = (np.asarray(rows[:5]) + 1).tolist()
    items = [tuple(one) if isinstance(one, list) else one for one in first]
    return f"{listing('row', items, len(rows))}, counted from 1 without a header"


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
    """Return one sentence for an unknown name: the nearest valid one, and all of them."""
    names = list(allowed)
    near = get_close_matches(str(key), names, n=1, cutoff=0.5)
    hint = f' (did you mean "{near[0]}"?)' if near else ""
    return f"{what} is unknown{hint}; allowed: {', '.join(names) or 'no parameters'}."


def slug(name: str) -> str:
    """Return a name as part of a file name: lower case, underscores for everything but letters and digits."""
    return "".join(c if c.isalnum() else "_" for c in name.lower())
