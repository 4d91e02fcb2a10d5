"""Successive halving: fit every point with few resources, the best with more, and the best of those with all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ldsvm.experiment.config.spaces import Point, StrategyConfig
from ldsvm.experiment.search.trial import Trial

Ask = tuple[int, int | None]  # place of a point, and how much of the resource it gets; None: everything


def rungs(n: int, factor: int, least: int, most: float = math.inf) -> list[tuple[int, int | None]]:
    """Return for each rung how many of n points it fits, and with how much of the resource; None: with everything.

    Each rung keeps one point in ``factor`` (rounded up) and gives it ``factor`` times as much. The last one, of fewer
    than ``factor`` points, or where that would be ``most`` or more, has everything.

    Examples
    --------
    >>> rungs(27, factor=3, least=5, most=200)
    [(27, 5), (9, 15), (3, 45), (1, None)]
    >>> rungs(27, factor=3, least=5, most=15)
    [(27, 5), (9, None)]
    """
    found: list[tuple[int, int | None]] = []
    while n >= factor and least < most:
        found.append((n, least))
        n, least = math.ceil(n / factor), least * factor
    return [*found, (n, None)]


class Halving:
    """Which of n points to fit next: call `ask` and `tell` in turn until there is nothing left to ask.

    Points are identified by their places, which trials call their order; among equals the earlier one is preferred.
    strategy: without a factor, all points are asked at once, with all resources. most: the resource of a full fit;
    infinite if unknown. The points of `ask` depend only on the trials given to `tell`: those of all points before.

    Examples
    --------
    >>> strategy = StrategyConfig(factor=2, resource="max_iter", min_resources=10)
    >>> halving = Halving(4, strategy, most=100)
    >>> while asked := halving.ask():
    ...     print(asked)
    ...     halving.tell([Trial({}, place, valid_error=1 / (1 + place)) for place, _ in asked])
    [(0, 10), (1, 10), (2, 10), (3, 10)]
    [(2, 20), (3, 20)]
    [(3, None)]
    """

    def __init__(self, n: int, strategy: StrategyConfig | None = None, most: float = math.inf) -> None:
        self._left = list(range(n))
        self._rungs: list[tuple[int, int | None]] = [(n, None)]
        if strategy is not None and strategy.factor is not None and strategy.min_resources is not None:
            self._rungs = rungs(n, strategy.factor, strategy.min_resources, most)
        self.total = sum(size for size, _ in self._rungs)

    def ask(self) -> list[Ask]:
        """Return what to fit now, nothing when the search is over."""
        return [(place, self._rungs[0][1]) for place in self._left] if self._rungs else []

    def tell(self, trials: Sequence[Trial]) -> None:
        """Take the trials of what was asked, in any order; those that failed are out of the search."""
        del self._rungs[0]
        good = sorted((trial for trial in trials if trial.valid_error is not None), key=rank)
        kept = {trial.order for trial in good[: self._rungs[0][0]]} if self._rungs else set()
        self._left = [place for place in self._left if place in kept]


def rank(trial: Trial) -> tuple[float, int, float, int]:
    """Return what to sort by, best first: loss; ties: fewer basis functions, smaller C, earlier point."""
    error = math.inf if trial.valid_error is None else trial.valid_error
    return error if trial.loss is None else trial.loss, trial.n_basis or 0, _penalty(trial.params), trial.order


def _penalty(point: Point) -> float:
    """Return C, of the classifier itself or of a step of it."""
    return next((value for key, value in point.items() if key.split("__")[-1] == "C"), 0.0)
