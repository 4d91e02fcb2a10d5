"""Record a retraining in the tracking store and in the registry of models."""

from __future__ import annotations

import json
from dataclasses import asdict

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import percent
from ldsvm.experiment.config.production import RolloutConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.metrics import DEFAULT
from ldsvm.production.gate import Verdict
from ldsvm.production.promotion import Challenge, Comparison, Inspection, production_rules
from ldsvm.production.registry import Registry, Version
from ldsvm.report.card import card
from ldsvm.report.marks import escape
from ldsvm.tracking.client import Tracker
from ldsvm.tracking.results import track_dataset


def register(
    made: Challenge,
    comparison: Comparison,
    inspection: Inspection,
    tracker: Tracker,
    registry: Registry,
    champion: Version | None,
) -> tuple[Version, str, str, str]:
    """Register a challenger; promote it or put it in shadow if the gate lets it pass.

    Returns its version, what became of it (promoted, in shadow, refused), the outcome in one sentence, and the card.
    """
    config, prepared = made.config, made.prepared
    with tracker.run("retrain", kind="retrain") as run:
        track_dataset(run, [prepared], config.problems[0].name)
        source = run.model(comparison.pipeline, prepared.example(), registry.name)
        new = registry.register(run, source, comparison.facts, against=champion)
        text = card(config, prepared, inspection, comparison, str(new), None if champion is None else str(champion))
        outcome, said = _rolled_out(production_rules(config).rollout, comparison.verdict, registry, new, champion)
        if said != comparison.verdict.sentence:
            text = text.replace(f"**{escape(comparison.verdict.sentence)}**", f"**{escape(said)}**", 1)
        error = percent(comparison.score.error)
        measured = _measured(config, comparison.score)
        registry.describe(new, text, verdict=outcome, error=error, data=prepared.digest, **measured)
        params = {"action": "retrain", "challenger": str(new), "champion": str(champion)}
        run.log(params, {**_numbers(comparison, inspection), "promoted": float(outcome == "promoted")})
        run.text("verdict.json", json.dumps([asdict(check) for check in comparison.verdict.checks], indent=1))
        run.text("drift.json", json.dumps(asdict(inspection), indent=1))
        shown = [error, *(f"{name} {value}" for name, value in measured.items())]
        run.describe(name=" · ".join(["retrain", str(new), *shown, said.partition(":")[0]]), note=text)
    return new, outcome, said, text


def _rolled_out(
    rules: RolloutConfig, verdict: Verdict, registry: Registry, new: Version, champion: Version | None
) -> tuple[str, str]:
    """Promote a challenger or put it in shadow, if the gate lets it pass; return the outcome and a sentence on it."""
    if not verdict.promote:
        return "refused", verdict.sentence
    shadow = champion is not None and rules.shadow_rows > 0
    if not (registry.put_in_shadow(new, champion) if champion and shadow else registry.promote(new, champion)):
        return "refused", f"Refused: meanwhile {registry.get()} has become the champion."
    if not shadow:
        return "promoted", verdict.sentence
    holds = verdict.sentence.removeprefix("Promoted: ")
    trial = f"It now scores the same rows as {champion}, and may be promoted after {rules.shadow_rows:,} rows."
    return "in shadow", f"In shadow: {holds} {trial}"


def record_decision(config: Config, tracker: Tracker, inspection: Inspection, champion: Version | None) -> str:
    """Record, in a run of its own, why nothing was trained; return the run's number."""
    decision, data = inspection.decision, config.dataset
    with tracker.run(f"retrain · {decision.action}", kind="retrain") as run:
        run.dataset(data.name, inspection.sha256[:12], str(data.path or data.name), {"new rows": inspection.new})
        run.log(
            {"champion": str(champion), "action": decision.action}, {"new_rows": inspection.new, **_shifts(inspection)}
        )
        run.text("drift.json", json.dumps(asdict(inspection), indent=1))
        run.describe(note=escape(decision.sentence))
        run.failure = decision.sentence if decision.action == "alarm" else None
    return run.id


def _measured(config: Config, score: Score) -> dict[str, str]:
    """Return the metric in which the gate compares, nothing where that is the error."""
    name = production_rules(config).gate.metric
    found = score.metrics.get(name)
    return {} if name == DEFAULT or found is None or found.value is None else {name: f"{found.value:.4g}"}


def _numbers(comparison: Comparison, inspection: Inspection) -> dict[str, float | None]:
    new, old = comparison.score, comparison.champion
    return {
        "error_percent": 100 * new.error,
        "champion_error_percent": None if old is None else 100 * old.error,
        **(comparison.estimate.numbers("champion_estimated_error") if comparison.estimate else {}),
        **{key: getattr(new, key) for key in ("n_basis", "predict_us", "parameter_bytes")},
        **_metrics(new),
        "threshold": new.threshold,
        **{f"champion_{name}": value for name, value in _metrics(old).items()},
        "only_challenger_right": comparison.only_right[0],
        "only_champion_right": comparison.only_right[1],
        "new_rows": inspection.new,
        **_shifts(inspection),
    }


def _metrics(score: Score | None) -> dict[str, float | None]:
    """Return the metrics but the error."""
    return {} if score is None else {name: one.value for name, one in score.metrics.items() if name != DEFAULT}


def _shifts(inspection: Inspection) -> dict[str, float | None]:
    if inspection.drift is None:
        return {}
    return {
        "drifted_inputs_percent": 100 * inspection.drift.share,
        "label_stability_index": inspection.drift.labels.psi,
        "latent_stability_index": inspection.drift.latent.psi,
    }
