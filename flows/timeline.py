"""What flows add to a production model's timeline: the file of events, its page, MLflow's curves and Prefect's page."""

from __future__ import annotations

from prefect.artifacts import create_markdown_artifact

from flows._cli import key, say
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.search.failure import sentence
from ldsvm.production import timeline
from ldsvm.production.promotion import Comparison, Inspection, production_rules
from ldsvm.production.registry import Registry, Version
from ldsvm.production.score_watch import Report
from ldsvm.production.timeline import Event, drift_of, share_of
from ldsvm.report import timeline as pages


def remember(config: Config, registry: Registry, event: Event, *, last: bool = True) -> None:
    """Add an event and write the page again. The work is done by then, so an error here is printed, not raised.

    last: of this run; before it, the pages are left to the next event.
    """
    runs, model = config.paths.runs, registry.name
    try:
        timeline.record(runs, model, event)
        found = timeline.events(runs, model)
        file = pages.write(runs, model, production_rules(config).drift.psi) if last else None
        registry.timeline().sample(pages.numbers(event), len(found))
    except Exception as error:
        say(f"  the timeline of {model} could not be updated: {sentence(error)}")
        return
    if file is None:
        return
    create_markdown_artifact(pages.in_short(model, found, file), key(model, "timeline"), f"{model} in production")
    say(f"  Timeline of {model}: {file}")


def trained(
    comparison: Comparison, inspection: Inspection, new: Version, outcome: str, champion: Version | None, said: str
) -> Event:
    """Return the event of a challenger that was judged."""
    return Event(
        "retrain",
        outcome,
        sentence=said,
        champion=str(new.number) if outcome == "promoted" else _number(champion),
        challenger=str(new.number),
        rows=inspection.new,
        error=share_of(comparison.champion),
        challenger_error=share_of(comparison.score),
        estimate=share_of(comparison.estimate),
        reasons=tuple(check.sentence for check in comparison.verdict.checks if not check.passed),
        data=inspection.sha256,
        run=new.run_id,
        **drift_of(inspection.drift),
    )


def not_trained(inspection: Inspection, champion: Version | None, run: str) -> Event:
    """Return the event of a retraining in which nothing was trained."""
    decision = inspection.decision
    return Event(
        "retrain", decision.action, sentence=decision.sentence, champion=_number(champion), rows=inspection.new,
        reasons=tuple(decision.reasons), data=inspection.sha256, run=run, **drift_of(inspection.drift),
    )  # fmt: skip


def acknowledged(inspection: Inspection, champion: Version) -> Event:
    """Return the event that the user of this process accepted data that had raised an alarm."""
    return Event("acknowledge", "acknowledged", champion=_number(champion), data=inspection.sha256, by=timeline.user())


def scored(report: Report, version: Version, run: str) -> Event:
    """Return the event of rows that were scored and compared with the training data."""
    reasons = tuple(f"{one['rows']}: {' '.join(one['reasons'])}" for one in report.alarms)
    return Event(
        "score", "alarm" if reasons else "scored", sentence=report.sentences[0], champion=_number(version),
        rows=report.rows, estimate=share_of(report.estimate), reasons=reasons[:3], run=run, **drift_of(report.drift),
    )  # fmt: skip


def promoted(now: Version, said: str) -> Event:
    """Return the event that the challenger in shadow was promoted."""
    return Event(
        "promote", "promoted", sentence=said, champion=_number(now), challenger=_number(now), by=timeline.user()
    )


def rolled_back(now: Version, said: str, run: str) -> Event:
    """Return the event of a rollback."""
    return Event("rollback", "rolled back", sentence=said, champion=_number(now), by=timeline.user(), run=run)


def _number(version: Version | None) -> str:
    return "" if version is None else str(version.number)
