"""Make the version before the champion the champion again."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow
from prefect.runtime import flow_run

from flows import timeline
from flows._cli import experiment, production_section, run_name, say, tag_run
from flows.alarms import on_crashed, on_failure, raise_alarm
from ldsvm.production import rollout
from ldsvm.production.registry import Registry
from ldsvm.tracking.client import Tracker


@flow(name="rollback", flow_run_name=run_name, on_failure=[on_failure], on_crashed=[on_crashed])
def rollback(config: str, overrides: Sequence[str] = ()) -> str:
    """Swap the champion and the previous champion, and return the outcome in one sentence."""
    settings = experiment(config, overrides)
    tracker = Tracker(settings.paths.runs, settings.name, str(flow_run.id))
    registry = Registry(tracker, production_section(settings, "rollback").model)
    now, before = rollout.rollback(registry)
    with tracker.run(f"rollback · {now}", kind="rollback") as run:
        run.log({"champion": str(now), "previous": str(before)}, {})
        tag_run(model=str(now), mlflow=run.id)
    said = f"{now} is the champion again, " + (f"{before} is now previous" if before else "no version is previous")
    say(said)
    timeline.remember(settings, registry, timeline.rolled_back(now, said, run.id))
    raise_alarm(settings, "rolled_back", said, version=str(now.number))
    return said
