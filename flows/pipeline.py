"""The whole experiment: prepare, every method on every problem, report."""

from __future__ import annotations

from prefect import flow

from flows import ROOT
from flows.stages import compare, prepare_data
from ldsvm.experiment.load import load_config


@flow(name="pipeline")
def pipeline(config: str, overrides: list[str]) -> str:
    """Run an experiment file from the data to the report. overrides: "key=value" lines that win over the file."""
    settings = load_config(config, overrides, root=ROOT)
    facts = prepare_data(settings)
    return compare(settings, facts, list(settings.methods))
