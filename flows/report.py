"""Only the report, once more, from the results that are there."""

from __future__ import annotations

from prefect import flow

from flows import ROOT
from flows.stages import prepare_data, write_report
from ldsvm.experiment.load import ConfigError, load_config
from ldsvm.report.publish import collect


@flow(name="report")
def report(config: str, overrides: list[str]) -> str:
    """Write the report of an experiment file anew; raise ConfigError when nothing has been run with it."""
    settings = load_config(config, overrides, root=ROOT)
    facts = prepare_data(settings)
    if not any(collect(settings, problem) for problem in settings.problems):
        raise ConfigError(
            f"{config}: no results of these data in {settings.results}; run pipeline with the same settings first."
        )
    return write_report(settings, facts, {})
