"""Whether a newly trained model, the challenger, replaces the one in use, the champion. No MLflow.

The terms are those of `mlflow.models.MetricThreshold`: a metric has a `threshold`, and a minimum absolute and relative
change against the champion. MLflow does not consider chance, although two equally good models differ on a holdout too.
So the challenger must also pass McNemar's exact test: of the rows that only one of the two predicts correctly, the
challenger must win more than a fair coin would plausibly give. For other metrics than the error, coins swap the
predictions of the two for each row, see `paired`. Since one champion is challenged many times, and repeated tests find
something by chance sooner or later, each test gets a smaller share of the allowed error probability, see `level`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldsvm.datasets.words import shown
from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.config.production import Change, GateConfig
from ldsvm.metrics import DEFAULT, Undefined
from ldsvm.production.metric_rules import Both, Check, better, metric_checks, probability


@dataclass(frozen=True)
class Verdict:
    """The checks of all rules. The challenger is promoted if all of them passed.

    doubts: sentences on problems that no rule covers and that a person should know.
    """

    checks: tuple[Check, ...]
    doubts: tuple[str, ...] = ()

    @property
    def promote(self) -> bool:
        """Whether the challenger becomes the champion."""
        return all(check.passed for check in self.checks)

    @property
    def sentence(self) -> str:
        """The outcome in one sentence, with the reasons of a refusal; one more for each doubt about the challenger."""
        return " ".join([self._outcome, *self.doubts])

    @property
    def _outcome(self) -> str:
        if self.promote:
            rules = "the only rule holds" if len(self.checks) == 1 else f"all {len(self.checks)} rules hold"
            return f"Promoted: {rules}." if self.checks else "Promoted as the first version: there are no rules."
        return "Refused: " + "; ".join(check.sentence for check in self.checks if not check.passed) + "."


def gate(
    rules: GateConfig,
    challenger: Score,
    champion: Score | None = None,
    only_right: tuple[int, int] = (0, 0),
    look: int = 1,
    both: Both | None = None,
) -> Verdict:
    """Judge the challenger by the rules.

    challenger, champion: what the one judge found on the same holdout; without a champion only ceilings count. With the
    evidence "better" an error, or another metric, that is not better than the champion's is refused whatever else is
    found.
    only_right: how many rows of the holdout only the challenger, and only the champion, gets right. look: which
    challenger of this champion it is, from 1. both: what they say of the rows, needed where `rules.metric` is not the
    error.
    """
    checks = [_at_most(name, value, bound) for name, value, bound in _ceilings(rules, challenger)]
    if champion is not None:
        checks += [*_gains(rules.error_percent, challenger, champion)]
    checks += metric_checks(rules, challenger, champion)
    if champion is not None and rules.metric == DEFAULT:
        if rules.evidence == "better":
            checks.append(_below(challenger, champion))
        checks.append(_beyond_chance(rules, *only_right, look))
    elif champion is not None and both is not None and _measured(rules.metric, challenger, champion):
        if rules.evidence == "better":
            checks.append(better(rules.metric, challenger, champion))
        checks.append(_beyond_coins(rules, both, look))
    return Verdict(tuple(checks), tuple(_doubts(challenger)))


def _measured(name: str, *scores: Score) -> bool:
    return all(name in score.metrics and score.metrics[name].value is not None for score in scores)


def _doubts(score: Score) -> list[str]:
    """Return sentences on a model that a constant answer beats, and on classes that it never finds."""
    totals = [sum(row) for row in score.confusion]
    largest, found = score.classes[totals.index(max(totals))], []
    if score.error >= score.majority_error - 1e-9:
        found.append(
            f"Doubtful: always predicting {shown(largest)} would have an error of {100 * score.majority_error:.4g} %, "
            f"and the model has {100 * score.error:.4g} %."
        )
    missed = [
        shown(c) for c, error, n in zip(score.classes, score.class_errors, totals, strict=True) if n and error == 1
    ]
    if missed:
        found.append(
            f"Doubtful: no row of class {', '.join(missed)} is predicted correctly; for rare classes try params: "
            "{class_weight: balanced}."
        )
    columns = zip(score.classes, totals, map(sum, zip(*score.confusion, strict=True)), strict=True)
    if never := [shown(c) for c, n, predicted in columns if not n and not predicted]:
        found.append(
            f"Doubtful: class {', '.join(never)} is never predicted, and has no row in the holdout; for rare classes "
            "try params: {class_weight: balanced}."
        )
    return found


def _ceilings(rules: GateConfig, score: Score) -> list[tuple[str, float, float]]:
    found = [
        ("error_percent", 100 * score.error, rules.error_percent),
        ("class_error_percent", 100 * max(score.class_errors), rules.class_error_percent),
        ("n_basis", score.n_basis or 0, rules.n_basis),
        ("predict_us", score.predict_us, rules.predict_us),
        ("parameter_bytes", score.parameter_bytes, rules.parameter_bytes),
    ]
    return [
        (name, value, rule.threshold) for name, value, rule in found if rule is not None and rule.threshold is not None
    ]


def _at_most(name: str, value: float, bound: float) -> Check:
    passed = value <= bound
    said = f"{name} is {_short(value)}, {'at most' if passed else 'above'} {_short(bound)}"
    return Check(name, passed, value, bound, said)


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _gains(rule: Change, challenger: Score, champion: Score) -> list[Check]:
    old, gain = 100 * champion.error, 100 * (champion.error - challenger.error)
    bounds = {"min_absolute_change": rule.min_absolute_change, "min_relative_change": rule.min_relative_change * old}
    return [
        Check(
            f"error_percent {name}",
            gain >= bound,
            gain,
            bound,
            f"the error {'falls' if gain >= 0 else 'rises'} by {abs(gain):.4g} points from {old:.4g} %, "
            f"needed: a fall by at least {bound:.4g} ({name})",
        )
        for name, bound in bounds.items()
        if bound > 0
    ]


def _below(challenger: Score, champion: Score) -> Check:
    new, old = 100 * challenger.error, 100 * champion.error
    passed = challenger.error < champion.error
    said = f"the error of {new:.4g} % is {'' if passed else 'not '}below the champion's {old:.4g} %"
    return Check("error_percent better", passed, new, old, said)


def _beyond_chance(rules: GateConfig, ours: int, theirs: int, look: int) -> Check:
    """McNemar's exact test, one-sided: could as lopsided a count come from two equally good models?

    Q. McNemar, "Note on the sampling error of the difference between correlated proportions or percentages", 1947.
    """
    p = mcnemar(ours, theirs) if rules.evidence == "better" else mcnemar(theirs, ours)
    return _evidence(rules, look, "mcnemar", "McNemar p", p)


def _beyond_coins(rules: GateConfig, both: Both, look: int) -> Check:
    """The paired randomisation test, one-sided, in the metric of the rules; see `paired`."""
    try:
        p = probability(rules.metric, both, _allowed(rules, look), challenger=rules.evidence == "better")
    except Undefined as error:
        said = f"the two cannot be compared in {rules.metric} ({error}); choose another production.gate.metric"
        return Check(f"{rules.metric} {rules.evidence}", False, None, None, said)
    return _evidence(rules, look, f"randomisation {rules.metric}", f"randomisation p of {rules.metric}", p)


def _allowed(rules: GateConfig, look: int) -> float:
    # A smaller level makes it harder to be better, but easier to be not worse.
    return level(rules.confidence, look) if rules.evidence == "better" else 1 - rules.confidence


def _evidence(rules: GateConfig, look: int, name: str, test: str, p: float) -> Check:
    """Return what the probability p that a test has found says; name, test: of it, short and in words."""
    allowed = _allowed(rules, look)
    if rules.evidence == "better":
        passed = p <= allowed
        found = f"{'' if passed else 'not '}enough evidence that it is better"
        needed = f"≤ {allowed:.3g} (challenger {look} of this champion)"
    else:
        passed = p > allowed
        found = "no evidence that it is worse" if passed else "evidence that it is worse"
        needed = f"> {allowed:.3g}"
    return Check(f"{name} {rules.evidence}", passed, p, allowed, f"{found}: {test} = {p:.3g}, needed {needed}")


def level(confidence: float, look: int) -> float:
    """Return the level of the test of the k-th challenger of one champion: (1 - confidence) / (k (k + 1)).

    While challengers are refused, the rows that judge grow, and each look is a new chance for noise. The shares
    1 / (k (k + 1)) = 1 / k - 1 / (k + 1) of all looks add up to 1. So, however the looks depend on each other, the
    probability that one of any number of challengers that are no better is promoted is at most the sum of the
    levels, 1 - confidence (Boole's inequality). Looks that were not needed cost nothing.

    Examples
    --------
    >>> [round(level(0.95, look), 5) for look in (1, 2, 20)]
    [0.025, 0.00833, 0.00012]
    """
    return (1 - confidence) / (look * (look + 1))


def mcnemar(wins: int, losses: int) -> float:
    """Return the probability of at least so many wins among wins + losses tosses of a fair coin.

    Examples
    --------
    >>> mcnemar(5, 0)
    0.03125
    >>> mcnemar(0, 0)
    1.0
    """
    from scipy.stats import binom

    return float(binom.sf(wins - 1, wins + losses, 0.5))
