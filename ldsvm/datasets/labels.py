"""Labels read in another way (parity), and suggestions for misspelt labels."""

from __future__ import annotations

from collections import defaultdict
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.words import listing, shown

HOW = ("original", "parity")
RARE = 0.05  # share of the rows below which a class is rare
FLAGS = {"yes", "no", "true", "false", "on", "off", "y", "n"}  # words that YAML 1.1 or 1.2 takes for true and false


def coded(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted distinct values of y (N,) and the place of each row's among them (N,), as `np.unique` does.

    Of Python objects only the distinct ones are sorted. Raises TypeError for numbers and texts together.

    Examples
    --------
    >>> coded(np.array(["b", "a", "b"], dtype=object))[1].tolist()
    [1, 0, 1]
    """
    if y.dtype != object:
        return np.unique(y, return_inverse=True)
    from pandas import factorize

    places, found = factorize(y, use_na_sentinel=False)
    values, rank = np.unique(found, return_inverse=True)
    return values, rank[places]


def relabel(y: ArrayLike, how: str) -> NDArray[Any]:
    """Return the labels y (N,) unchanged (``original``), or digits as 0 for even and 1 for odd (``parity``).

    Raises `DataError` for another ``how`` and for the parity of labels that are not whole numbers.

    Examples
    --------
    >>> relabel([3, 8, 5, 0], "parity").tolist()
    [1, 0, 1, 0]
    """
    labels = np.asarray(y)
    if how not in HOW:
        raise DataError(f"how={shown(how)} is unknown; allowed: {', '.join(HOW)}.")
    if how == "original":
        return labels
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise DataError(f"labels have shape {labels.shape} and dtype {labels.dtype}; parity needs whole numbers.")
    return labels.astype(np.int64) % 2


def unknown(name: Any, known: list[Any]) -> str:
    """Return one sentence for a wanted label that no row has: the nearest of the known ones, or what to do.

    Examples
    --------
    >>> unknown("mack", ["mac", "pc"])
    "no row has label 'mack'; the nearest is 'mac'."
    """
    start = f"no row has label {shown(name)}"
    flags = [label for label in known if isinstance(label, str) and label.lower() in FLAGS]
    if flags and isinstance(name, int) and name in (0, 1):
        listed = ", ".join(map(shown, flags))
        return f"{start}, which is how YAML reads words such as yes and no; quote them: classes: [{listed}]."
    by_text = {str(value): value for value in known}
    near = [by_text[text] for text in get_close_matches(str(name), by_text, 1)]
    rest = f"the nearest is {shown(near[0])}" if near else f"the rows have {listing('label', known)}"
    return f"{start}; {rest}."


def alike(y: NDArray[Any]) -> list[str]:
    """Return a sentence about labels that are different texts but look the same, if there are any.

    Examples
    --------
    >>> alike(np.array(["cat", "dog", "Cat ", "cat"], dtype=object))
    ["labels 'Cat ', 'cat' differ only by spaces or case."]
    """
    if y.dtype.kind != "O":
        return []
    found: dict[str, list[str]] = defaultdict(list)
    for label in sorted(set(y.tolist())):
        found[" ".join(label.casefold().split())].append(label)
    pairs = [label for labels in found.values() if len(labels) > 1 for label in labels]
    return [f"{listing('label', pairs)} differ only by spaces or case."] if pairs else []


def rare_classes(y: NDArray[Any]) -> list[str]:
    """Return a sentence on the rarest class where fewer than 5 % of the rows y (N,) are of it.

    Examples
    --------
    >>> rare_classes(np.array(["no"] * 99 + ["yes"]))
    ["class 'yes' has 1 of 100 rows (1.0 %): look at its error by itself, and try params: {class_weight: balanced}."]
    """
    values, codes = coded(y)
    counts = np.bincount(codes)
    least = int(counts.argmin())
    if counts[least] >= RARE * len(y):
        return []
    share = f"{counts[least]:,} of {len(y):,} rows ({100 * counts[least] / len(y):.1f} %)"
    return [
        f"class {shown(values[least])} has {share}: look at its error by itself, and try params: "
        "{class_weight: balanced}."
    ]
