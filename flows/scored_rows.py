"""Compare scored rows with the training data of the model version that scores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flows import timeline
from flows._cli import say
from flows.alarms import raise_alarm
from ldsvm.datasets.table_schema import Check
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.production import retention
from ldsvm.production.drift import Profile
from ldsvm.production.estimate import Held
from ldsvm.production.promotion import production_rules
from ldsvm.production.registry import Registry, RegistryFailed, Version
from ldsvm.production.retraining import Alarm
from ldsvm.production.schema_check import remarks
from ldsvm.production.score_watch import Watch, drift_file, write
from ldsvm.production.scoring_rows import Scoring
from ldsvm.tracking.client import Run


def watched(wanted: ProductionConfig, registry: Registry, version: Version, model: Any) -> Watch | None:
    """Return the object that compares rows with a version's training data; print why there is none and return None."""
    assert wanted.score is not None
    try:
        facts = registry.facts(version)
    except RegistryFailed as error:
        if wanted.score.drift == "stop":
            raise
        say(f"  the rows are scored, but not compared with the training data: {error}")
        return None
    held = Held(**facts["held"]) if "held" in facts else None  # versions of earlier releases have none
    return Watch(
        Profile(**facts["profile"]), model.classes_, wanted.drift, held, stop=wanted.score.drift == "stop",
        tell=lambda sentence: say(f"  {sentence}"),
    )  # fmt: skip


@contextmanager
def compared(
    config: Config, registry: Registry, version: Version, model: Any, job: Scoring, run: Run
) -> Iterator[Watch | None]:  # fmt: skip
    """Yield the object that watches the scored rows, None where nothing is compared.

    Afterwards prints and records how they differ from the training data, also when an alarm ended the scoring.
    """
    wanted = production_rules(config)
    assert wanted.score is not None
    watch = None if wanted.score.drift == "ignore" else watched(wanted, registry, version, model)
    if watch is None:
        yield None
        return
    file = drift_file(job.output)
    try:
        yield watch
    except Alarm as error:
        run.failure = str(error)
        raise
    finally:
        if watch.rows:
            found = watch.report()
            text = found.as_json({"model": job.model, "input": job.input})
            write(text, file)
            run.text("drift.json", text)
            run.log({}, found.numbers)
            for sentence in found.sentences:
                say(f"  {sentence}")
            say(f"  Drift of each input: {file}")
            timeline.remember(config, registry, timeline.scored(found, version, run.id))
            if found.alarms:
                run.tag("ldsvm.alarm", found.alarms[0]["rows"])
                if wanted.score.drift == "warn":  # else the flow fails, and that is told
                    raise_alarm(config, "drift", _alarm(found.alarms), version=str(version.number))


def after_scoring(wanted: ProductionConfig, job: Scoring, check: Check, run: Run) -> None:
    """Print and record which cells the schema does not allow, and remove old files of scores."""
    if check.sentences:
        run.text("schema.txt", "\n".join(check.sentences))
        for remark in remarks(check, "scored"):
            say(f"  {remark}")
    for removed in retention.remove_scores(job.output, wanted.model, wanted.keep.days):
        say(f"  {removed}")


def _alarm(alarms: Sequence[dict[str, Any]]) -> str:
    """Return one sentence on all chunks of rows that raised an alarm."""
    others = f", and {len(alarms) - 1} more chunks," if len(alarms) > 1 else ""
    return f"{alarms[0]['rows']}{others} do not look like the training data: {' '.join(alarms[0]['reasons'])}"
