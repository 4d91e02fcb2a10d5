"""The whole experiment: prepare, every method on every problem, report."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows._cli import load_any, load_variants, run_name
from flows._runtime import compare, prepare_data
from flows.alarms import on_crashed, on_failure
from flows.study import run_study
from flows.vary import vary
from ldsvm.report.studies.config import StudyConfig


@flow(name="pipeline", flow_run_name=run_name, on_failure=[on_failure], on_crashed=[on_crashed])
def pipeline(config: str, overrides: Sequence[str] = ()) -> str:
    """Run an experiment or a study from the data to the report. overrides: "key=value" strings that change the file."""
    settings = load_any(config, overrides)
    if isinstance(settings, StudyConfig):
        return run_study(settings)
    if settings.vary is not None:
        return vary(settings, load_variants(settings, config, overrides))
    return compare(settings, prepare_data(settings), list(settings.methods))
