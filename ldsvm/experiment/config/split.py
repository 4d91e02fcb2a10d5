"""What an experiment file may say about its splits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

Size = Annotated[float, Field(gt=0)] | Annotated[int, Field(gt=0)]


class SplitConfig(BaseModel, frozen=True, extra="forbid"):
    """Which samples train, which choose, which judge.

    kind: stratified (classes in proportion), random, balanced (equally many of every class), grouped (whole groups,
    by dataset.group), time (oldest train, newest test, by dataset.time). test: a size, or "official" for the source's
    own test set. repeats: so many splits, with the seeds seed, seed + 1, …; results are means over them.
    """

    kind: Literal["stratified", "random", "balanced", "grouped", "time"]
    train: Size
    validation: Size
    test: Size | Literal["official"]
    repeats: int = Field(default=1, ge=1, le=1000)

    @field_validator("test", mode="before")
    @classmethod
    def _size_or_word(cls, value: Any) -> Any:
        if isinstance(value, str) and value != "official":
            raise ValueError('allowed: a count, a fraction, or "official"')
        return value

    @model_validator(mode="after")
    def _repeats_differ(self) -> SplitConfig:
        if self.kind == "time" and self.repeats > 1:
            raise ValueError('allowed: repeats 1 with kind "time", which leaves nothing to chance')
        return self

    @property
    def count(self) -> int:
        """How many splits there are."""
        return self.repeats

    @property
    def test_ratio(self) -> float | None:
        """Test rows of a split over its other rows; None where all splits have the same test rows."""
        return None if isinstance(self.test, str) else self.test / (self.train + self.validation)


class CrossValidationConfig(BaseModel, frozen=True, extra="forbid"):
    """For small data: every row judges once, and trains or validates in the other splits.

    folds: so many parts, with the classes in proportion, and whole groups with dataset.group; each is the test set of
    one split. repeats: so many times, each with new folds, which makes folds times repeats splits, with the seeds seed,
    seed + 1, … validation: share of the rows outside the fold, by which trials are chosen; the other ones train.
    """

    kind: Literal["cross_validation"]
    folds: int = Field(default=5, ge=2, le=1000)
    repeats: int = Field(default=1, ge=1, le=1000)
    validation: float = Field(default=0.25, gt=0, lt=1)

    @property
    def count(self) -> int:
        """How many splits there are."""
        return self.folds * self.repeats

    @property
    def test_ratio(self) -> float:
        """Test rows of a split over its other rows."""
        return 1 / (self.folds - 1)
