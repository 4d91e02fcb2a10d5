"""Promote the challenger in shadow to champion."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow
from prefect.runtime import flow_run

from flows._cli import experiment, production_section, run_name, say
from flows.alarms import on_crashed, on_failure
from flows.in_shadow import promote_shadow
from ldsvm.production.registry import Registry
from ldsvm.tracking.client import Tracker


@flow(name="promote", flow_run_name=run_name, on_failure=[on_failure], on_crashed=[on_crashed])
def promote(config: str, overrides: Sequence[str] = ()) -> str:
    """Promote the challenger in shadow to champion and return the outcome in one sentence."""
    settings = experiment(config, overrides)
    asked = production_section(settings, "promote")
    tracker = Tracker(settings.paths.runs, settings.name, str(flow_run.id))
    say(said := promote_shadow(settings, Registry(tracker, asked.model)))
    return said
