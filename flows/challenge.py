"""The tasks of the flow retrain: look for new rows, prepare and judge a challenger, or record why there is none."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from flows import timeline
from flows._cli import key, note, say, tag_run, working
from flows._runtime import TRACKING
from flows.alarms import raise_alarm
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment import schema_file
from ldsvm.experiment.compare.outcome import percent
from ldsvm.experiment.config.schema import Config
from ldsvm.production import promotion, retention
from ldsvm.production.alarms import Kind
from ldsvm.production.promotion import Challenge, Champion, Inspection
from ldsvm.production.registry import Registry, Version
from ldsvm.report import retraining
from ldsvm.report.publish import FACTS
from ldsvm.tracking.client import Tracker
from ldsvm.tracking.server import redacted


@task(name="look", task_run_name="look", cache_policy=NO_CACHE)
def look_for_news(
    config: Config, champion: Champion | None, version: Version | None, judged: list[dict[str, Any]], known: str | None
) -> Inspection:
    """Find new rows, measure drift, decide whether to retrain. known: digest of data that a person has acknowledged."""
    with working(f"look at {config.dataset.name}", key(config.name, "look")) as news:
        found = promotion.inspect_data(config, champion, judged, known)
        news(f"champion {version.number if version else 'none'} · {found.new:,} new rows")
    for reason in found.decision.reasons if found.decision.action == "retrain" else ():  # else the last lines say it
        say(f"  {reason}")
    return found


@task(name="challenger's data", task_run_name="challenger's data", cache_policy=NO_CACHE)
def prepare_challenger(config: Config, champion: Champion | None, looked_at: str) -> Challenge:
    """Split old and new rows for training and holdout, prepare them, and let the champion predict the holdout."""
    with working("split old and new rows") as news:
        made = promotion.challenge(config, champion, looked_at)
        made.config.results.mkdir(parents=True, exist_ok=True)
        preparation.save([made.prepared], made.config.results / FACTS)
        # Where scoring looks for it: with another search the challenger has another folder.
        schema_file.save(made.prepared.schema, config.results)
        news(", ".join(f"{part} {n:,}" for part, n in made.prepared.sizes.items()))
    return made


@task(name="gate", task_run_name="gate", cache_policy=NO_CACHE)
def decide(
    made: Challenge,
    tracker: Tracker,
    registry: Registry,
    version: Version | None,
    inspection: Inspection,
    settings: str,
) -> str:
    """Judge both models on the holdout, register the challenger, and promote it if the gate lets it pass."""
    with working("judge both models on the same holdout" if version else "judge the challenger on its holdout") as news:
        comparison = promotion.compare(made, settings, registry.next_number(version))
        new, outcome, said, text = retraining.register(made, comparison, inspection, tracker, registry, version)
        news(f"{new}, test error {percent(comparison.score.error)}")
    kinds: dict[str, Kind] = {"promoted": "promoted", "in shadow": "in_shadow"}
    raise_alarm(
        made.config, kinds.get(outcome, "refused"), f"{new}: {said}", version=str(new.number), data=made.prepared.digest
    )
    tag_run(model=str(new), data=made.prepared.digest[:12], mlflow=new.run_id)
    timeline.remember(made.config, registry, timeline.trained(comparison, inspection, new, outcome, version, said))
    create_markdown_artifact(text, key(made.config.name, "model-card"), "Model card of the challenger")
    return f"{new}: {said}"


@task(name="record", task_run_name="record", **TRACKING)
def record_decision(config: Config, registry: Registry, inspection: Inspection, version: Version | None) -> None:
    """Record in an MLflow run why nothing was trained."""
    run = retraining.record_decision(config, registry.tracker, inspection, version)
    tag_run(model=str(version), data=inspection.sha256[:12], mlflow=run)
    timeline.remember(config, registry, timeline.not_trained(inspection, version, run))
    note(inspection.decision.sentence)  # the terminal shows it as the flow's last line


def remove_old_versions(registry: Registry, keep: int | None) -> None:
    """Remove versions beyond the newest `keep` and print which; an error is printed, since the retraining succeeded."""
    try:
        for sentence in retention.remove_versions(registry, keep):
            say(f"  {sentence}")
    except Exception as error:
        say(f"  old versions of {registry.name} were not removed: {redacted(str(error))}")
