"""Assign whole groups of rows to parts, with sizes as near as possible to those wanted."""

from __future__ import annotations

import numpy as np

from ldsvm.datasets.split import Indices

ORDERS = 32  # how many orders of the groups are compared


def whole_groups(codes: Indices, counts: Indices, classes: Indices, sizes: Indices, bits: np.random.PCG64) -> Indices:
    """Return each row's part (N,), 3 where it has none, by the best of several orders of the groups."""
    rows = np.bincount(classes)
    nearest, best = np.inf, codes
    for _ in range(ORDERS):
        order = np.argsort(bits.random_raw(len(counts)), kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        part = np.searchsorted(_group_ends(counts[order], sizes), place, side="right")[codes]
        table = np.bincount(part * len(rows) + classes, minlength=4 * len(rows)).reshape(4, -1)[:3]
        # Whole numbers, the differences from the exact shares times N: the comparison is the same on every machine.
        apart = np.abs(table * len(codes) - np.outer(sizes, rows)).sum()
        if apart < nearest:
            nearest, best = apart, part
    return best


def _group_ends(rows: Indices, sizes: Indices) -> Indices:
    """Return after how many groups each part ends, nearest to its size, given the rows of each group (G,)."""
    totals = np.cumsum(np.concatenate([[0], rows]))
    ends, end = [], 0
    for part, wanted in enumerate(np.cumsum(sizes)):
        if sizes[part]:
            last = len(rows) - np.count_nonzero(sizes[part + 1 :])  # one group at least for each part to come
            end = int(np.clip(np.abs(totals - wanted).argmin(), end + 1, last))
        ends.append(end)
    return np.array(ends)
