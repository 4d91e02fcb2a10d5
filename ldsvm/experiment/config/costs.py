"""What an experiment file may say about the costs of mistakes."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, model_validator

from ldsvm.metrics import Costs


class CostsConfig(BaseModel, frozen=True, extra="forbid"):
    """What mistakes cost, of two classes of which the one that sorts last is to be found.

    missed: a row of that class that is not found; false_alarm: a row of the other class that is taken for it. Only
    their ratio decides about the threshold.
    """

    missed: float = Field(ge=0, allow_inf_nan=False)
    false_alarm: float = Field(ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _something_costs(self) -> CostsConfig:
        if self.missed == self.false_alarm == 0:
            raise ValueError("allowed: missed or false_alarm above 0")
        return self

    @property
    def known(self) -> Costs:
        """The two numbers."""
        return Costs(self.missed, self.false_alarm)


def measured(data: dict[str, Any]) -> dict[str, Any]:
    """Return a file's tree with the metric cost where it has costs."""
    metrics = data.get("metrics", ["error"])
    if data.get("costs") is None or not isinstance(metrics, list) or "cost" in metrics:
        return data
    return {**data, "metrics": [*metrics, "cost"]}
