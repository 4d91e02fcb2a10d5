"""Send results to MLflow that an earlier run could not track."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows._cli import experiment, run_name
from flows._runtime import compare, prepare_data
from ldsvm.experiment.config.load import ConfigError
from ldsvm.report.publish import collect


@flow(name="sync", flow_run_name=run_name)
def sync(config: str, overrides: Sequence[str] = ()) -> str:
    """Send stored results to MLflow without computing any; raise ConfigError when there are none."""
    settings = experiment(config, overrides)
    facts = prepare_data(settings)
    found = [{outcome.method for outcome in collect(settings, problem)} for problem in settings.problems]
    names = [name for name in settings.methods if all(name in one for one in found)]
    if not names:
        raise ConfigError(f"{config} has no results for these data in {settings.results}; run pipeline first.")
    return compare(settings, facts, names)
