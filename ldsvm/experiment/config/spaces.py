"""Search spaces: lists and ranges of values, how points are chosen from them, and the points themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Discriminator, Field, FiniteFloat, Tag, field_validator, model_validator

Scalar = bool | int | float | str | None
Ends = Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]
WholeEnds = Annotated[list[Annotated[int, Field(ge=-(2**31), lt=2**31)]], Field(min_length=2, max_length=2)]
Point = dict[str, Any]
SAMPLERS = ("tpe", "random")
ROWS = "n_samples"  # the resource of halving that is no parameter of an estimator


class Range(BaseModel, frozen=True, extra="forbid"):
    """A range [low, high], both ends included, from which values are drawn. Give one of these keys.

    uniform: uniform on the range. log_uniform: uniform on a logarithmic scale, above zero.
    uniform_int, log_uniform_int: the same for whole numbers.
    """

    uniform: Ends | None = None
    log_uniform: Ends | None = None
    uniform_int: WholeEnds | None = None
    log_uniform_int: WholeEnds | None = None

    @model_validator(mode="after")
    def _one_range(self) -> Range:
        if len([ends for _, ends in self if ends is not None]) != 1:
            raise ValueError(f"allowed: one of {', '.join(type(self).model_fields)}")
        low, high = self.ends
        if low >= high or (self.log and low <= 0):
            raise ValueError(f"allowed: [low, high] with {'0 < ' if self.log else ''}low < high")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        low, high = self.uniform or self.log_uniform or self.uniform_int or self.log_uniform_int or (0, 0)
        return low, high

    @property
    def log(self) -> bool:
        """Whether values lie evenly on a logarithmic scale."""
        return bool(self.log_uniform or self.log_uniform_int)

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers."""
        return bool(self.uniform_int or self.log_uniform_int)

    def distribution(self) -> Any:
        """Return the distribution to draw from; whole numbers are its values rounded."""
        from scipy.stats import loguniform, uniform

        low, high = self.ends
        margin = 0.5 if self.whole else 0.0  # an end then gets its whole share, and not half of it
        low, high = low - margin, high + margin
        return loguniform(low, high) if self.log else uniform(low, high - low)

    def value(self, drawn: float) -> float | int:
        """Return a drawn number as a plain value within the ends, which rounding might leave."""
        low, high = self.ends
        inside = min(max(drawn, low), high)
        return round(inside) if self.whole else float(inside)


Values = Annotated[
    Annotated[list[Scalar], Field(min_length=1), Tag("list")] | Annotated[Range, Tag("range")],
    Discriminator(lambda given: "range" if isinstance(given, dict | Range) else "list"),
]
Space = Mapping[str, list[Scalar] | Range]


class StrategyConfig(BaseModel, frozen=True, extra="forbid"):
    """Which points of a method's search space are fitted, and with how many resources.

    n_candidates: number of random points, drawn with the split's seed; None: the whole grid.
    sampler: "tpe" (Optuna) chooses new points from the results so far; "random" draws them independently.
    batch: number of points that the sampler chooses at a time (default: 4).
    factor, resource, min_resources: successive halving; give all three or none. Every point is fitted with
    `min_resources`, then the best 1 / factor of them with factor times as much, and so on; the last ones get all of it.
    The resource is "n_samples", rows of the training set, or a whole-number parameter of the estimator, such as
    max_iter.
    """

    n_candidates: int | None = Field(default=None, ge=1, le=100_000)
    sampler: str | None = None
    batch: int | None = Field(default=None, ge=1, le=1_000)
    factor: int | None = Field(default=None, ge=2)
    resource: str | None = None
    min_resources: int | None = Field(default=None, ge=1)

    @field_validator("sampler")
    @classmethod
    def _known_sampler(cls, value: str | None) -> str | None:
        if value not in (None, *SAMPLERS):
            more = " (gp and cmaes need packages that ldsvm does not install)" if value in ("gp", "cmaes") else ""
            raise ValueError(f"allowed: {', '.join(SAMPLERS)}{more}")
        return value

    @model_validator(mode="after")
    def _sampler_with_candidates(self) -> StrategyConfig:
        if self.sampler is not None and (self.n_candidates is None or self.factor is not None):
            raise ValueError("allowed: sampler only with n_candidates and without factor")
        if self.batch is not None and self.sampler is None:
            raise ValueError("allowed: batch only with sampler")
        return self

    @model_validator(mode="after")
    def _whole_halving(self) -> StrategyConfig:
        given = [value is not None for value in (self.factor, self.resource, self.min_resources)]
        if any(given) != all(given) or not (any(given) or self.n_candidates):
            raise ValueError("allowed: n_candidates, or factor, resource and min_resources together, or all four")
        return self


def grid(space: Space) -> list[Point]:
    """Return every combination of the values to try; one empty point when nothing is searched.

    Examples
    --------
    >>> grid({"C": [1, 10], "gamma": [0.1]})
    [{'C': 1, 'gamma': 0.1}, {'C': 10, 'gamma': 0.1}]
    """
    lists = [values for values in space.values() if isinstance(values, list)]
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*lists)]


def draw(space: Space, n: int, seed: int) -> list[Point]:
    """Return n different random points, or fewer when the space has fewer or ranges of whole numbers give duplicates.

    The same seed gives the same points; with ranges, a larger n only adds points.

    Examples
    --------
    >>> draw({"C": [1, 10]}, n=3, seed=0) == draw({"C": [1, 10]}, n=2, seed=0)
    True
    >>> len(draw({"gamma": Range(log_uniform=[1e-3, 1])}, n=3, seed=0))
    3
    """
    from sklearn.model_selection import ParameterSampler

    if not any(isinstance(values, Range) for values in space.values()):
        n = min(n, math.prod(len(values) for values in space.values() if isinstance(values, list)))
    choices = {name: values.distribution() if isinstance(values, Range) else values for name, values in space.items()}
    points = [_point(space, drawn) for drawn in ParameterSampler(choices, n, random_state=seed)]
    return list({tuple(point.values()): point for point in points}.values())


def _point(space: Space, drawn: Mapping[str, Any]) -> Point:
    """Return drawn values as plain ones, in the order of the space."""
    return {k: v.value(drawn[k]) if isinstance(v, Range) else drawn[k] for k, v in space.items()}
