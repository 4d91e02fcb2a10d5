"""A model of ours kept fresh: new rows, drift, a challenger, the gate, the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run

from flows.compare import contests, finish, hands
from flows.environment import experiment, produced
from flows.progress import key, note, run_name, say, working
from flows.stages import TRACKING, write_report
from ldsvm.atomic import alone
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare.outcome import percent
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.production import promotion
from ldsvm.production.promotion import Challenge, Duel, Known, Look
from ldsvm.production.registry import Registry, Version
from ldsvm.report.card import card
from ldsvm.report.marks import escape
from ldsvm.report.publish import FACTS
from ldsvm.tracking.client import Tracker
from ldsvm.tracking.results import track_dataset


class Alarm(RuntimeError):
    """The data need a person to look at them before anything is trained; the message says why."""


@flow(name="retrain", flow_run_name=run_name)
def retrain(config: str, overrides: Sequence[str] = ()) -> str:
    """Train the model of an experiment's section production anew if there is reason to, and use it if it is better.

    Returns the outcome in one sentence. Raises Alarm, after all is recorded, when the data should be looked at first.
    """
    settings = experiment(config, overrides)
    asked = produced(settings, "retrain")
    with turn(settings.paths.runs, asked.model):
        return retrained(settings, asked)


@contextmanager
def turn(runs: Path, model: str) -> Iterator[None]:
    """Let one retraining of a production model at a time work in the folder `runs`, however it was started.

    The next one waits before it looks for new rows, so it finds what became of them and does not judge them again.
    """
    folder = runs / "registry" / model
    with ExitStack() as held:
        try:
            held.enter_context(alone(folder, wait=False))
        except BlockingIOError:
            say(f"another retraining of {model} is at work; this one waits for its end")
            held.enter_context(alone(folder))
        yield


def retrained(settings: Config, asked: ProductionConfig) -> str:
    """Do what `retrain` does, when its turn has come."""
    tracker = Tracker(settings.paths.runs, settings.name, str(flow_run.id))
    registry = Registry(tracker, asked.model)
    version = registry.get()
    champion = None if version is None else Known.of(registry.model(version), registry.facts(version))
    look = look_for_news(settings, champion, version, registry.verdicts(version), registry.acknowledged())
    if version is not None and asked.acknowledge:
        registry.acknowledge(look.sha256)
    if look.decision.action != "retrain":
        record_decision(settings, tracker, look, version)
        if look.decision.action == "alarm":
            raise Alarm(f"{asked.model}: {look.decision.sentence}")
        return look.decision.sentence
    made = prepare_challenger(settings, champion, look.sha256)
    with hands(made.config):
        facts, lost = str(made.config.results / FACTS), list[str]()
        runs = contests(made.config, facts, list(made.config.methods), lost)
        finish(made.config, write_report(made.config, facts), runs, lost, [made.config])
    return decide(made, tracker, registry, version, look, promotion.asked(settings))


@task(name="look", task_run_name="look", cache_policy=TRACKING["cache_policy"])
def look_for_news(
    config: Config,
    champion: Known | None,
    version: Version | None,
    judged: list[dict[str, Any]],
    acknowledged: str | None,
) -> Look:
    """Find new rows, measure drift, decide."""
    with working(f"look at {config.dataset.name}", key(config.name, "look")) as news:
        found = promotion.look(config, champion, judged, acknowledged)
        # What ends the flow is said when it has ended.
        said = found.decision.sentence if found.decision.action == "retrain" else f"{found.new:,} new rows"
        news(f"champion {version.number if version else 'none'} · {said}")
    return found


@task(name="challenger's data", task_run_name="challenger's data", cache_policy=TRACKING["cache_policy"])
def prepare_challenger(config: Config, champion: Known | None, looked_at: str) -> Challenge:
    """Divide old and new rows, prepare them, and let the champion answer those that judge."""
    with working("divide old and new rows") as news:
        made = promotion.challenge(config, champion, looked_at)
        made.config.results.mkdir(parents=True, exist_ok=True)
        preparation.save([made.prepared], made.config.results / FACTS)
        news(", ".join(f"{part} {n:,}" for part, n in made.prepared.sizes.items()))
    return made


@task(name="gate", task_run_name="gate", cache_policy=TRACKING["cache_policy"])
def decide(
    made: Challenge, tracker: Tracker, registry: Registry, version: Version | None, look: Look, settings: str
) -> str:
    """Judge both models on the holdout, register the challenger, and promote it if the gate lets it pass."""
    config, prepared = made.config, made.prepared
    with working("both models on the same holdout" if version else "the challenger on its holdout") as news:
        duel = promotion.duel(made, settings, registry.look(version))
        with tracker.run("retrain", kind="retrain") as run:
            track_dataset(run, [prepared], config.problems[0].name)
            source = run.model(duel.pipeline, prepared.example(), registry.name)
            new = registry.register(run, source, duel.facts, against=version)
            text = card(config, prepared, look, duel, str(new), None if version is None else str(version))
            said, promoted = duel.verdict.sentence, duel.verdict.promote and registry.promote(new, version)
            if duel.verdict.promote and not promoted:
                said = f"Refused: another retraining has promoted {registry.get()} meanwhile."
                text = f"**{said}**\n\n{text}"
            outcome, error = "promoted" if promoted else "refused", percent(duel.score.error)
            registry.describe(new, text, verdict=outcome, error=error, data=prepared.digest)
            run.log(_settings(new, version), {**_numbers(duel, look), "promoted": float(promoted)})
            run.text("verdict.json", json.dumps([asdict(check) for check in duel.verdict.checks], indent=1))
            run.text("drift.json", json.dumps(asdict(look), indent=1))
            run.describe(name=f"retrain · {new} · {percent(duel.score.error)} · {said.partition(':')[0]}", note=text)
        news(f"{new}, test error {percent(duel.score.error)} · {said}")
    create_markdown_artifact(text, key(config.name, "model-card"), "Model card of the challenger")
    return f"{new}: {said}"


@task(name="record", task_run_name="record", **TRACKING)
def record_decision(config: Config, tracker: Tracker, look: Look, version: Version | None) -> None:
    """Leave a run that says why nothing was trained."""
    with tracker.run(f"retrain · {look.decision.action}", kind="retrain") as run:
        data = config.dataset
        run.dataset(data.name, look.sha256[:12], str(data.path or data.name), {"new rows": look.new})
        run.log({"champion": str(version), "action": look.decision.action}, {"new_rows": look.new, **_shifts(look)})
        run.text("drift.json", json.dumps(asdict(look), indent=1))
        run.describe(note=escape(look.decision.sentence))
        run.failure = look.decision.sentence if look.decision.action == "alarm" else None
    note(look.decision.sentence)  # the terminal has it at the end


def _settings(new: Version, version: Version | None) -> dict[str, Any]:
    return {"action": "retrain", "challenger": str(new), "champion": str(version)}


def _numbers(duel: Duel, look: Look) -> dict[str, float | None]:
    old = duel.champion
    return {
        "error_percent": 100 * duel.score.error,
        "champion_error_percent": None if old is None else 100 * old.error,
        "n_basis": duel.score.n_basis,
        "predict_us": duel.score.predict_us,
        "parameter_bytes": duel.score.parameter_bytes,
        "only_challenger_right": duel.only_right[0],
        "only_champion_right": duel.only_right[1],
        "new_rows": look.new,
        **_shifts(look),
    }


def _shifts(look: Look) -> dict[str, float | None]:
    if look.drift is None:
        return {}
    return {
        "drifted_inputs_percent": 100 * look.drift.share,
        "label_stability_index": look.drift.labels.psi,
        "latent_stability_index": look.drift.latent.psi,
    }
