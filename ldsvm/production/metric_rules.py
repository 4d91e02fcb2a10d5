"""Rules in any metric that the judge can measure: bounds, gains, and whether a gain is beyond chance."""

from __future__ import annotations

from dataclasses import dataclass

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.config.production import GateConfig, Rule
from ldsvm.metrics import Answers, Metric, metric
from ldsvm.production.paired import randomisation


@dataclass(frozen=True)
class Check:
    """One rule with its numbers. value: what was found; bound: what is allowed; None where there is no value."""

    name: str
    passed: bool
    value: float | None
    bound: float | None
    sentence: str


@dataclass(frozen=True)
class Both:
    """What two models say of the holdout, row by row; the challenger's first. seed: of the test's coins."""

    challenger: Answers
    champion: Answers
    seed: int = 0


def metric_checks(rules: GateConfig, challenger: Score, champion: Score | None) -> list[Check]:
    """Return what the rules in metrics but the error find; for a metric that a model lacks, that alone.

    Without a champion only bounds count.
    """
    found: list[Check] = []
    for name in rules.names:
        here, rule = metric(name), rules.metrics.get(name, Rule())
        models = {"challenger": challenger, **({"champion": champion} if champion else {})}
        absent = [check for who, score in models.items() if (check := _absent(name, who, score)) is not None]
        found += absent or _of(here, rule, *(value(score, name) for score in models.values()))
    return found


def value(score: Score, name: str) -> float:
    """Return what the judge found in a metric that it could measure."""
    found = score.metrics[name].value
    assert found is not None
    return found


def _absent(name: str, who: str, score: Score) -> Check | None:
    found = score.metrics.get(name)
    if found is not None and found.value is not None:
        return None
    why = f" ({found.reason})" if found is not None and found.reason else ""
    said = f"the {who} has no {name}{why}; choose another metric in production.gate"
    return Check(f"{name} of the {who}", False, None, None, said)


def _of(here: Metric, rule: Rule, new: float, old: float | None = None) -> list[Check]:
    found = []
    if rule.threshold is not None:
        found.append(_bound(here, new, rule.threshold))
    if old is not None:
        gain, wanted, other = here.loss(old) - here.loss(new), "falls", "rises"
        if not here.less:
            wanted, other = other, wanted
        bounds = {
            "min_absolute_change": rule.min_absolute_change,
            "min_relative_change": rule.min_relative_change * abs(old),
        }
        found += [
            Check(
                f"{here.name} {name}",
                gain >= bound,
                gain,
                bound,
                f"{here.name} {wanted if gain >= 0 else other} by {abs(gain):.4g} from {old:.4g}, "
                f"needed: a {wanted.removesuffix('s')} by at least {bound:.4g} ({name})",
            )
            for name, bound in bounds.items()
            if bound > 0
        ]
    return found


def _bound(here: Metric, new: float, bound: float) -> Check:
    passed = here.loss(new) <= here.loss(bound)
    words = ("at most" if passed else "above") if here.less else ("at least" if passed else "below")
    return Check(here.name, passed, new, bound, f"{here.name} is {new:.4g}, {words} {bound:.4g}")


def better(name: str, challenger: Score, champion: Score) -> Check:
    """Return whether the challenger's value is better than the champion's, by however little."""
    here, new, old = metric(name), value(challenger, name), value(champion, name)
    passed = here.loss(new) < here.loss(old)
    said = f"{'' if passed else 'not '}{'below' if here.less else 'above'} the champion's {old:.4g}"
    return Check(f"{name} better", passed, new, old, f"the {name} of {new:.4g} is {said}")


def probability(name: str, both: Both, level: float, *, challenger: bool) -> float:
    """Return how probable such a gain of one of them over the other is if both are equally good.

    challenger: whether the gain is the challenger's.
    """
    pair = (both.challenger, both.champion) if challenger else (both.champion, both.challenger)
    return randomisation(metric(name), *pair, level, both.seed)
