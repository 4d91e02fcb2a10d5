"""What an experiment file may say about its method in production: when it trains anew, and what is good enough."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from ldsvm.experiment.drift import DriftConfig
from ldsvm.experiment.gate import GateConfig


class ProductionConfig(BaseModel, frozen=True, extra="forbid"):
    """How a model of ours is kept fresh.

    model: its name in the registry. method: which of `methods` it is. holdout: share of the new rows that is never
    trained on and judges both models. least: new rows below which nothing is done. factor, trials: the search around
    the champion tries so many points of its parameters divided by, at, and multiplied by the factor.
    """

    model: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
    method: str = "ours"
    holdout: float = Field(default=0.3, gt=0, lt=1)
    least: int = Field(default=100, ge=10)
    factor: float = Field(default=3.0, gt=1)
    trials: int = Field(default=9, ge=1)
    drift: DriftConfig = DriftConfig()
    gate: GateConfig = GateConfig()
