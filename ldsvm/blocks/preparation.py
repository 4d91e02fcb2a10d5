"""What is done once before MAC begins: classes, the width and the centres of the basis. Each is a sum over shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldsvm.blocks.executors import Team
from ldsvm.blocks.inputs import joined
from ldsvm.blocks.source import BlockError
from ldsvm.checks import LARGEST
from ldsvm.maps.kmeans import kmeans_work, lloyd
from ldsvm.maps.landmarks import as_centers
from ldsvm.maps.rbf import RBF, Gaussians, check_spread, distinct_rows, warn_of_size
from ldsvm.typing import Array

DOUBLED = 5  # how often rows are drawn at most to find as many distinct ones as centres, each time twice as many
MANY = 2**24  # rows up to which centres are drawn as in memory, which takes an array of all row numbers


Moments = tuple[Array, Array]  # mean and variance of the columns (D,)


@dataclass(frozen=True)
class Facts:
    """Facts about all rows: classes (K,) and rows of each, rows in each shard, inputs D."""

    classes: Any
    counts: Array
    sizes: list[int]
    D: int

    @property
    def N(self) -> int:
        """All training rows."""
        return sum(self.sizes)

    @property
    def offsets(self) -> list[int]:
        """Number of the first row of each shard."""
        return [sum(self.sizes[:i]) for i in range(len(self.sizes))]


def look(team: Team, largest: float = LARGEST) -> Facts:
    """Let every shard read its blocks. Raises ValueError for blocks that do not go together.

    largest: size of a value that the arithmetic can stand.
    """
    count = sum(len(part.blocks) for part in team.parts)
    team.report(f"reading the rows, blocks: {count:,}")
    found = team.tell("look", largest)
    widths = {width for _, _, width in found}
    if len(widths) > 1:
        raise BlockError(f"the blocks have different numbers of inputs: {', '.join(map(str, sorted(widths)))}.")
    names = [part.blocks[0].name for part in team.parts]
    classes = np.unique(joined(list(zip(names, [labels for labels, _, _ in found], strict=True))))
    counts = np.zeros(len(classes), dtype=np.int64)
    for labels, some, _ in found:
        if len(labels):  # of an empty shard they are of any type
            counts[np.searchsorted(classes, labels.astype(classes.dtype))] += some
    sizes = [int(some.sum()) for _, some, _ in found]
    return Facts(classes, counts, sizes, widths.pop())


def gaussians(
    team: Team, facts: Facts, family: RBF, random_state: np.random.RandomState, moments: Moments
) -> tuple[Gaussians, float]:
    """Return the basis to begin with, and the spread of the data: the root of the mean variance of the columns."""
    within = moments[1]
    check_spread(2.0 * float(np.sqrt(within.max())))  # at least, of values with this deviation
    if not isinstance(family.centers, str):
        centers = as_centers(family.centers, facts.D)
        return Gaussians(centers, family.width_of(*moments)), float(np.sqrt(within.mean())) or 1.0
    start = _drawn(team, facts.N, family, random_state)
    centers = start if family.centers == "random" else _lloyd(team, facts.N, start, float(within.mean()))
    return Gaussians(centers, family.width_of(*moments)), float(np.sqrt(within.mean())) or 1.0


def moments_of(team: Team, facts: Facts) -> Moments:
    """Return mean and variance of the columns (D,)."""
    mean = team.sum("column_sums") / facts.N
    return mean, team.sum("column_squares", mean) / facts.N


def _drawn(team: Team, N: int, family: RBF, random_state: np.random.RandomState) -> Array:
    """Distinct rows, drawn at random (M, D): those that a fit in memory draws where all rows are distinct."""
    assert family.n_basis is not None
    M = family.n_basis
    for size in M * 2 ** np.arange(DOUBLED):  # equal rows count once: with many of them more must be drawn
        X = drawn_rows(team, _numbers(N, min(int(size), N), random_state)).astype(np.float32)
        X = X[distinct_rows(X)]
        if len(X) >= M or size >= N:
            break
    if family.asked:
        warn_of_size(M, len(X))
    return X if len(X) <= M else X[np.sort(random_state.choice(len(X), M, replace=False))]


def _numbers(N: int, size: int, random_state: np.random.RandomState) -> Array:
    if N > MANY:
        from sklearn.utils.random import sample_without_replacement

        return np.sort(sample_without_replacement(N, size, random_state=random_state))
    return np.sort(random_state.choice(N, size, replace=False))


def drawn_rows(team: Team, numbers: Array) -> Array:
    """Return the inputs (n, D) of the rows with these numbers, ascending."""
    return np.concatenate([inputs for _, inputs in team.call("inputs", numbers)])


def _lloyd(team: Team, N: int, start: Array, variance: float) -> Array:
    """k-means from a start (M, D), as in memory."""
    stride, most = kmeans_work(N, len(start))
    team.tell("draw", stride)
    found = lloyd(lambda centers: team.sum("nearest", centers), start, most, variance, team.report)
    team.tell("draw", 0)
    return found
