"""The whole experiment: prepare, every method on every problem, report."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows.compare import compare
from flows.environment import experiment
from flows.stages import prepare_data


@flow(name="pipeline")
def pipeline(config: str, overrides: Sequence[str] = ()) -> str:
    """Run an experiment file from the data to the report. overrides: "key=value" lines that win over the file."""
    settings = experiment(config, overrides)
    facts = prepare_data(settings)
    return compare(settings, facts, list(settings.methods))
