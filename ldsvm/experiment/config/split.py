"""The section split of an experiment file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

Size = Annotated[float, Field(gt=0)] | Annotated[int, Field(gt=0)]


class SplitConfig(BaseModel, frozen=True, extra="forbid"):
    """Which rows are for training, validation and test.

    kind: stratified (classes in proportion), random, balanced (equally many rows of every class), grouped (rows with
    the same dataset.group stay together), or time (oldest rows train, newest test, by dataset.time).
    train, validation: a number of rows, or a fraction. test: the same, or "official" for the data's own test set.
    repeats: number of splits, with the seeds seed, seed + 1, …; results are means over them.
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
            raise ValueError('allowed: repeats 1 with kind "time", which has only one split')
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
    """Cross-validation, for small data: every row is tested once, and is for training or validation in other splits.

    folds: number of folds, with the classes in proportion, and with dataset.group whole groups; each fold is the test
    set of one split.
    repeats: number of times, each with new folds: folds times repeats splits, with the seeds seed, seed + 1, …
    validation: share of the rows outside the fold by which trials are chosen; the rest are for training.
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
