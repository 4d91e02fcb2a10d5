"""A model of ours kept fresh: new rows, drift, a challenger, the gate, the registry."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow
from prefect.runtime import flow_run

from flows import timeline
from flows._cli import experiment, production_section, run_name, say
from flows._runtime import finish, run_contests, workers, write_report
from flows.alarms import on_crashed, on_failure
from flows.challenge import decide, look_for_news, prepare_challenger, record_decision, remove_old_versions
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.production import promotion
from ldsvm.production.registry import Registry, one_at_a_time
from ldsvm.production.retraining import Alarm
from ldsvm.report.publish import FACTS
from ldsvm.tracking.client import Tracker


@flow(name="retrain", flow_run_name=run_name, on_failure=[on_failure], on_crashed=[on_crashed])
def retrain(config: str, overrides: Sequence[str] = ()) -> str:
    """Retrain the model of the section production if there is reason to, and promote the new one if it is better.

    Returns the outcome in one sentence. When a person should look at the data first, it raises Alarm after everything
    is recorded.
    """
    settings = experiment(config, overrides)
    asked = production_section(settings, "retrain")
    busy = f"another retraining of {asked.model} is running; waiting for it to end"
    with one_at_a_time(settings.paths.runs, asked.model, lambda: say(busy)):
        return retrain_now(settings, asked)


def retrain_now(settings: Config, asked: ProductionConfig) -> str:
    """Do the work of `retrain`; called while no other retraining of the model runs."""
    tracker = Tracker(settings.paths.runs, settings.name, str(flow_run.id))
    registry = Registry(tracker, asked.model)
    version = registry.get()
    champion = None if version is None else promotion.Champion.of(registry.model(version), registry.facts(version))
    inspection = look_for_news(settings, champion, version, registry.challenger_facts(version), registry.acknowledged())
    if version is not None and asked.acknowledge:
        registry.acknowledge(inspection.sha256)
        timeline.remember(settings, registry, timeline.acknowledged(inspection, version), last=False)
    if inspection.decision.action != "retrain":
        record_decision(settings, registry, inspection, version)
        if inspection.decision.action == "alarm":
            raise Alarm.of(asked.model, inspection.decision)
        return inspection.decision.sentence
    made = prepare_challenger(settings, champion, inspection.sha256)
    with workers(made.config):
        facts, errors = str(made.config.results / FACTS), list[str]()
        runs = run_contests(made.config, facts, list(made.config.methods), errors)
        finish(made.config, write_report(made.config, facts), runs, errors, [made.config])
    said = decide(made, tracker, registry, version, inspection, promotion.settings_digest(settings))
    remove_old_versions(registry, asked.keep.versions)
    return said
