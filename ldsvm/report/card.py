"""The model card in Markdown: what was measured, and the verdict of the gate."""

from __future__ import annotations

from collections.abc import Sequence

from ldsvm.datasets.words import shown
from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import percent
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import Prepared
from ldsvm.metrics import DEFAULT, Measured
from ldsvm.production.gate import Verdict
from ldsvm.production.promotion import Comparison, Inspection
from ldsvm.report import metric_tables, tables
from ldsvm.report.marks import escape

MOST_CLASSES = 30  # whose confusions are shown
PLAIN = {
    "error_percent better": "lower error",
    "mcnemar better": "significantly better (McNemar's test)",
    "mcnemar not_worse": "not significantly worse (McNemar's test)",
}


def card(
    config: Config, prepared: Prepared, inspection: Inspection, comparison: Comparison, name: str, champion: str | None
) -> str:
    """Return the description of a trained model: data, error, classes, cost, drift, limits.

    name: of the model and its version. champion: that of the one it was compared with, None for the first.
    """
    score, result = comparison.score, comparison.result
    title = f"{config.title}: {name}{f', compared with {champion}' if champion else ''}"
    parts = [
        f"# {escape(title)}",
        verdict(comparison.verdict),
        "## Error on rows that no model was trained on",
        tables.markdown(*_errors(score, comparison.champion)),
        *_metrics(score, comparison.champion),
        *_threshold(config, score),
        "## Classes",
        tables.markdown(*_classes(score)),
        *([tables.markdown(*_confusion(score))] if len(score.classes) <= MOST_CLASSES else []),
        "## Cost",
        tables.markdown(*_costs(score, result.train_s)),
        "## Data",
        *_items([*_data(config, prepared), *prepared.features, *prepared.notes]),
        *(["## Drift since the champion was trained", *_items(inspection.decision.reasons)] if champion else []),
        "## Parameters",
        tables.markdown(["parameter", "value"], [[key, tables.value(value)] for key, value in result.params.items()]),
        "## Limits",
        *_items(_limits(prepared, score)),
    ]
    return "\n\n".join(parts)


def _estimate(comparison: Comparison) -> list[str]:
    """Return how good the estimate without labels is that a scoring by the champion makes."""
    found, champion = comparison.estimate, comparison.champion
    if found is None or champion is None:
        return []
    return [f"The champion's error on the same rows is {percent(champion.error)}. {found.sentence}"]


def verdict(found: Verdict) -> str:
    """Return the verdict with every rule and its numbers."""
    rows = [["holds" if c.passed else "fails", _plain(c.name), c.sentence] for c in found.checks]
    return f"**{escape(found.sentence)}**" + ("\n\n" + tables.markdown(["", "rule", "found"], rows) if rows else "")


def _plain(name: str) -> str:
    """Return a rule's name in words."""
    if name.startswith("randomisation "):
        _, metric, evidence = name.split(" ")
        words = {"better": "significantly better", "not_worse": "not significantly worse"}
        return f"{metric} {words[evidence]} (paired randomisation test)"
    return PLAIN.get(name, name)


def _items(sentences: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {escape(sentence)}" for sentence in sentences)] if sentences else []


def _errors(score: Score, champion: Score | None) -> tuple[list[str], list[list[str]]]:
    def row(name: str, found: Score) -> list[str]:
        return [
            name, percent(found.error), f"{percent(found.error_low)} to {percent(found.error_high)}",
            f"{found.n_wrong:,} of {found.n_test:,}",
        ]  # fmt: skip

    rows = [row("this model", score), *([row("the champion", champion)] if champion else [])]
    return ["", "test error", "95 % interval", "wrong"], rows


def _metrics(score: Score, champion: Score | None) -> list[str]:
    """Return a table of the metrics but the error, nothing where there are none."""
    if not (names := [name for name in score.metrics if name != DEFAULT]):
        return []
    models = {"this model": score, **({"the champion": champion} if champion else {})}
    rows = [[label, *(_value(found.metrics.get(name)) for name in names)] for label, found in models.items()]
    return ["## Other metrics, with 95 % intervals", tables.markdown(["", *names], rows)]


def _threshold(config: Config, score: Score) -> list[str]:
    """Return a sentence on the costs of mistakes and the threshold of the prediction; nothing without costs."""
    if score.threshold is None or config.costs is None:
        return []
    name = shown(score.classes[1])
    return [
        escape(
            f"A missed {name} costs {config.costs.missed:g} and a false alarm {config.costs.false_alarm:g}, so {name} "
            f"is predicted where its {metric_tables.threshold(score)}."
        )
    ]


def _value(found: Measured | None) -> str:
    if found is None or found.value is None:
        return "–" if found is None or not found.reason else f"– ({found.reason})"
    return f"{found.value:.4f}" + ("" if found.low is None else f" ({found.low:.4f} to {found.high:.4f})")


def _classes(score: Score) -> tuple[list[str], list[list[str]]]:
    totals = [sum(row) for row in score.confusion]
    rows = zip(score.classes, totals, score.class_errors, strict=True)
    return ["class", "rows", "error"], [[str(name), f"{n:,}", percent(error)] for name, n, error in rows]


def _confusion(score: Score) -> tuple[list[str], list[list[str]]]:
    header = ["true \\ predicted", *map(str, score.classes)]
    return header, [[str(name), *map(str, row)] for name, row in zip(score.classes, score.confusion, strict=True)]


def _costs(score: Score, train_s: float | None) -> tuple[list[str], list[list[str]]]:
    rows = [
        ["basis functions", "none" if score.n_basis is None else f"{score.n_basis:,}"],
        ["prediction time, microseconds per row on one thread", f"{score.predict_us:.3g}"],
        ["bytes that a prediction needs", f"{score.parameter_bytes:,}"],
    ]
    return ["", ""], rows if train_s is None else [*rows, ["training, seconds", f"{train_s:.3g}"]]


def _data(config: Config, prepared: Prepared) -> list[str]:
    about = prepared.dataset
    sizes = ", ".join(f"{part} {n:,}" for part, n in prepared.sizes.items())
    last = ["The last fit used the training and the validation rows."] if config.judge.refit else []
    return [
        f"{about['name']}: {about['source']} SHA-256 of the content {about['sha256']}.",
        f"Rows: {sizes}; digest of the split {prepared.split}, seed {prepared.seed}.",
        *last,
        f"Licence: {about['licence']}",
    ]


def _limits(prepared: Prepared, score: Score) -> list[str]:
    rarest = min((sum(row), str(name)) for row, name in zip(score.confusion, score.classes, strict=True))
    return [
        "It predicts one of its training classes for any row, however unusual. Unusual rows have a large distance to "
        "all class centroids in the latent space.",
        "The scores of `decision_function` are margins; `predict_proba`, if the model has it, gives probabilities.",
        f"The error holds for rows like those of the holdout, where the rarest class, {rarest[1]}, has {rarest[0]:,} "
        "rows.",
        f"It needs all {prepared.n_features:,} features that the steps above compute.",
    ]
