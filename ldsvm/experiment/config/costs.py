"""The section costs of an experiment file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, model_validator

from ldsvm.metrics import Costs


class CostsConfig(BaseModel, frozen=True, extra="forbid"):
    """The costs of mistakes, for two classes. The positive class is the one whose label sorts last.

    missed: cost of a row of the positive class that is predicted as negative.
    false_alarm: cost of a row of the negative class that is predicted as positive. Only the ratio of the two matters to
    the threshold.
    """

    missed: float = Field(ge=0, allow_inf_nan=False)
    false_alarm: float = Field(ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _something_costs(self) -> CostsConfig:
        if self.missed == self.false_alarm == 0:
            raise ValueError("missed or false_alarm must be above 0")
        return self

    @property
    def known(self) -> Costs:
        """The two numbers."""
        return Costs(self.missed, self.false_alarm)


def measured(data: dict[str, Any]) -> dict[str, Any]:
    """Return a file's tree, with the metric cost added if it has costs."""
    metrics = data.get("metrics", ["error"])
    if data.get("costs") is None or not isinstance(metrics, list) or "cost" in metrics:
        return data
    return {**data, "metrics": [*metrics, "cost"]}
