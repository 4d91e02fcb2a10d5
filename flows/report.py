"""Write the report again from stored results."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows._cli import experiment, run_name
from flows._runtime import prepare_data, write_report
from ldsvm.experiment.config.load import ConfigError
from ldsvm.report.publish import collect


@flow(name="report", flow_run_name=run_name)
def report(config: str, overrides: Sequence[str] = ()) -> str:
    """Write the report of an experiment again from stored results; raise ConfigError when there are none."""
    settings = experiment(config, overrides)
    facts = prepare_data(settings)
    if not any(collect(settings, problem) for problem in settings.problems):
        raise ConfigError(
            f"{config} has no results for these data in {settings.results}; run pipeline with the same settings first."
        )
    return str(write_report(settings, facts).page)
