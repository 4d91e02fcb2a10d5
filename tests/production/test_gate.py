"""The gate: every rule refuses by itself, noise does not promote, a real gain does."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.config.production import GateConfig
from ldsvm.metrics import Answers, Measured, metric
from ldsvm.production.gate import Verdict, gate, level, mcnemar
from ldsvm.production.metric_rules import Both


def score(wrong: int, n: int = 1000) -> Score:
    return Score(
        error=wrong / n, error_low=0, error_high=1, n_wrong=wrong, n_test=n, n_basis=200, n_basis_sum=200,
        parameter_bytes=50_000, predict_us=12.0, predict_all_us=6.0, classes=["a", "b"], class_errors=[0.01, 0.09],
        confusion=[[1, 0], [0, 1]],
    )  # fmt: skip


def judged(
    rules: object, wrong: int = 50, old: int | None = 80, only: tuple[int, int] = (40, 10), look: int = 1
) -> Verdict:
    return gate(GateConfig.model_validate(rules), score(wrong), None if old is None else score(old), only, look)


def test_the_probability_is_a_sum_of_binomials() -> None:
    for wins, losses in ((0, 0), (1, 0), (7, 3), (3, 7), (60, 40)):
        n = wins + losses
        assert mcnemar(wins, losses) == pytest.approx(sum(comb(n, k) for k in range(wins, n + 1)) / 2**n)


def test_a_gain_beyond_chance_promotes_and_says_so() -> None:
    verdict = judged({})
    assert verdict.promote and verdict.sentence == "Promoted: all 2 rules hold."
    assert [check.name for check in verdict.checks] == ["error_percent better", "mcnemar better"]
    assert verdict.checks[1].value == pytest.approx(mcnemar(40, 10))
    assert judged({"evidence": "not_worse"}).sentence == "Promoted: the only rule holds."
    assert judged({}, old=None).sentence == "Promoted as the first version: there are no rules."


@pytest.mark.parametrize(("wrong", "promoted"), [(79, True), (80, False), (480, False)])
def test_an_error_that_is_not_below_the_champions_never_promotes(wrong: int, promoted: bool) -> None:
    verdict = judged({}, wrong=wrong, only=(900, 0))  # counts that cannot be true
    assert verdict.promote is promoted
    if not promoted:
        assert verdict.sentence == f"Refused: the error of {wrong / 10:g} % is not below the champion's 8 %."


def test_a_gain_within_chance_does_not_promote() -> None:
    verdict = judged({}, wrong=79, only=(10, 9))
    assert not verdict.promote
    few = judged({}, only=(3, 0))  # a fair coin's three heads in three tosses: 1 / 8
    said = "not enough evidence that it is better: McNemar p = 0.125, needed ≤ 0.025 (challenger 1 of this champion)"
    assert few.sentence == f"Refused: {said}."


@pytest.mark.slow
def test_two_equal_models_are_rarely_taken_for_different_ones() -> None:
    # on rows that each gets wrong by chance alone, a false promotion happens in at most 5 % of the cases
    rng = np.random.default_rng(0)
    promoted = 0
    for _ in range(2000):
        right = rng.random((2, 300)) > 0.1
        only = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
        promoted += judged({}, only=only).promote
    assert 0.005 < promoted / 2000 < 0.06


def promoted(looks: int, wins: float, losses: float, runs: int = 2000) -> float:
    """Return how often one of so many looks promotes, each on the rows of the one before and 100 more."""
    rng = np.random.default_rng(1)
    chances = [wins, losses, 1 - wins - losses]
    found = rng.multinomial(100, chances, (runs, looks)).cumsum(axis=1)
    p = binom.sf(found[:, :, 0] - 1, found[:, :, :2].sum(axis=2), 0.5)
    return float((p <= [level(0.95, look) for look in range(1, looks + 1)]).any(axis=1).mean())


def test_twenty_looks_at_growing_rows_promote_noise_in_five_per_cent_of_the_cases_at_most() -> None:
    assert 0.005 < promoted(20, 0.05, 0.05) <= 0.05


def test_a_challenger_that_is_truly_better_gets_through_sooner_or_later() -> None:
    # 10 % wrong against 6 %, in holdouts of 100, 200, … rows; one that is as much worse never does
    assert promoted(10, 0.07, 0.03) > 0.75 and promoted(20, 0.07, 0.03) > 0.98
    assert promoted(20, 0.03, 0.07) < 0.005


def test_the_levels_of_all_looks_add_up_to_what_is_allowed_and_the_sentence_says_which() -> None:
    assert sum(level(0.95, look) for look in range(1, 100_000)) == pytest.approx(0.05, rel=1e-4)
    later = judged({}, only=(40, 24), look=3)
    assert judged({}, only=(40, 24), look=1).promote is False and not later.promote
    assert later.sentence.endswith("needed ≤ 0.00417 (challenger 3 of this champion).")
    assert judged({}, only=(40, 22)).promote and not judged({}, only=(40, 22), look=3).promote
    assert judged({"evidence": "not_worse"}, only=(22, 38), look=9).checks[0].bound == pytest.approx(0.05)


def test_not_worse_takes_an_equal_model_and_refuses_one_that_is_worse_beyond_chance() -> None:
    assert judged({"evidence": "not_worse"}, only=(10, 12)).promote
    worse = judged({"evidence": "not_worse"}, only=(0, 5))
    assert worse.sentence == "Refused: evidence that it is worse: McNemar p = 0.0312, needed > 0.05."


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ({"error_percent": {"threshold": 4.9}}, "error_percent"),
        ({"class_error_percent": {"threshold": 8.9}}, "class_error_percent"),
        ({"n_basis": {"threshold": 199}}, "n_basis"),
        ({"predict_us": {"threshold": 11.9}}, "predict_us"),
        ({"parameter_bytes": {"threshold": 49_999}}, "parameter_bytes"),
        ({"error_percent": {"min_absolute_change": 3.1}}, "error_percent min_absolute_change"),
        ({"error_percent": {"min_relative_change": 0.38}}, "error_percent min_relative_change"),
    ],
)
def test_every_rule_refuses_by_itself(rules: dict[str, dict[str, float]], name: str) -> None:
    verdict = judged(rules)
    assert [check.name for check in verdict.checks if not check.passed] == [name]
    looser = {key: {k: v * (0.9 if "change" in k else 1.1) for k, v in rule.items()} for key, rule in rules.items()}
    assert judged(looser).promote


def test_without_a_champion_only_ceilings_count() -> None:
    assert judged({"error_percent": {"min_absolute_change": 3.1}}, old=None).promote
    assert not judged({"error_percent": {"threshold": 4.9}}, old=None).promote


def test_a_model_without_basis_functions_keeps_to_any_ceiling_on_them() -> None:
    linear = replace(score(50), n_basis=None)
    assert gate(GateConfig.model_validate({"n_basis": {"threshold": 1}}), linear).promote


def test_a_model_that_a_constant_answer_beats_and_a_class_that_is_never_found_are_doubtful() -> None:
    useless = replace(score(20), classes=["no", "yes"], class_errors=[0.0, 1.0], confusion=[[980, 0], [20, 0]])
    verdict = gate(GateConfig(), useless)
    assert verdict.promote  # nobody has asked for more
    assert verdict.sentence == (
        "Promoted as the first version: there are no rules. Doubtful: always predicting 'no' would have an error of "
        "2 %, and the model has 2 %. Doubtful: no row of class 'yes' is predicted correctly; for rare classes try "
        "params: {class_weight: balanced}."
    )
    better = replace(score(15), classes=["no", "yes"], class_errors=[0.0, 0.75], confusion=[[980, 0], [15, 5]])
    assert gate(GateConfig(), better).doubts == ()
    rare = replace(
        score(15), classes=["a", "b", "c"], class_errors=[0.0, 0.0, 0.0], confusion=[[90, 0, 0], [0, 9, 0], [0, 0, 0]]
    )
    assert gate(GateConfig(), rare).doubts == (
        "Doubtful: class 'c' is never predicted, and has no row in the holdout; for rare classes try params: "
        "{class_weight: balanced}.",
    )
    guessed = replace(rare, confusion=[[90, 0, 1], [0, 9, 0], [0, 0, 0]])
    assert gate(GateConfig(), guessed).doubts == ()


def measured(challenger: float | None, champion: float | None = None, name: str = "roc_auc") -> list[Score]:
    values = (challenger, champion)
    reason = "the method gives no probabilities"
    found = [Measured(one, reason=None if one is not None else reason) for one in values]
    return [replace(score(50), metrics={name: one}) for one in found]


def answered(gain: int, loss: int, n: int = 60) -> Both:
    """Both models on n rows, half of each class: of some rows each ranks more above all of the other class."""
    truth = np.arange(n) % 2
    challenger, champion = (np.where(truth == 1, 1.0, -1.0) for _ in range(2))
    champion[1 : 2 * gain : 2] = -2.0
    challenger[2 * gain + 1 : 2 * (gain + loss) : 2] = -2.0
    models = [Answers(np.array([0, 1]), truth, (s > 0).astype(int), None, s) for s in (challenger, champion)]
    return Both(*models)


@pytest.mark.parametrize(
    ("rule", "name", "new", "old", "said"),
    [
        ({"threshold": 0.95}, "roc_auc", 0.93, 0.9, "roc_auc is 0.93, below 0.95"),
        ({"threshold": 0.3}, "log_loss", 0.31, 0.4, "log_loss is 0.31, above 0.3"),
        ({"threshold": -0.3}, "neg_log_loss", -0.31, -0.4, "neg_log_loss is -0.31, below -0.3"),
        ({"min_absolute_change": 0.05}, "roc_auc", 0.93, 0.9,
         "roc_auc rises by 0.03 from 0.9, needed: a rise by at least 0.05 (min_absolute_change)"),
        ({"min_relative_change": 0.3}, "log_loss", 0.3, 0.4,
         "log_loss falls by 0.1 from 0.4, needed: a fall by at least 0.12 (min_relative_change)"),
        ({"min_relative_change": 0.3}, "neg_log_loss", -0.3, -0.4,
         "neg_log_loss rises by 0.1 from -0.4, needed: a rise by at least 0.12 (min_relative_change)"),
    ],
)  # fmt: skip
def test_rules_in_any_metric_know_which_way_is_better(
    rule: dict[str, float], name: str, new: float, old: float, said: str
) -> None:
    ours, theirs = measured(new, old, name)
    verdict = gate(GateConfig.model_validate({"metrics": {name: rule}}), ours, theirs, (40, 10))
    assert [check.sentence for check in verdict.checks if not check.passed] == [
        "the error of 5 % is not below the champion's 5 %", said
    ][::-1]  # fmt: skip
    worst = 1 if metric(name).less else -1
    looser = {key: bound + worst * 0.05 if key == "threshold" else bound / 2 for key, bound in rule.items()}
    first = gate(GateConfig.model_validate({"metrics": {name: rule}}), ours)
    assert first.promote is ("threshold" not in rule)
    looser_verdict = gate(GateConfig.model_validate({"metrics": {name: looser}}), ours, theirs, (40, 10))
    assert all(check.passed for check in looser_verdict.checks if check.name.startswith(name))


def in_metric(new: float | None, old: float | None, both: Both, look: int = 1, **more: object) -> Verdict:
    return gate(GateConfig.model_validate({"metric": "roc_auc", **more}), *measured(new, old), (0, 0), look, both)


def test_a_gain_in_the_chosen_metric_promotes_and_the_sentences_name_it() -> None:
    verdict = in_metric(1.0, 0.9, answered(20, 2))
    assert verdict.promote and verdict.sentence == "Promoted: all 2 rules hold."
    assert [check.name for check in verdict.checks] == ["roc_auc better", "randomisation roc_auc better"]
    assert verdict.checks[1].sentence.startswith("enough evidence that it is better: randomisation p of roc_auc = ")
    few = in_metric(1.0, 0.9, answered(3, 1), look=3)
    found = few.checks[1].value
    assert found is not None and 0.25 < found < 0.45  # of four coins, at least three: 5 / 16
    assert few.sentence == (
        f"Refused: not enough evidence that it is better: randomisation p of roc_auc = {found:.3g}, needed "
        "≤ 0.00417 (challenger 3 of this champion)."
    )
    same = in_metric(0.9, 0.9, answered(20, 2))
    assert same.sentence == "Refused: the roc_auc of 0.9 is not above the champion's 0.9."


def test_not_worse_in_the_chosen_metric() -> None:
    assert in_metric(0.9, 0.9, answered(5, 6), evidence="not_worse").promote
    worse = in_metric(0.9, 1.0, answered(2, 20), evidence="not_worse", look=5)
    assert worse.sentence.startswith("Refused: evidence that it is worse: randomisation p of roc_auc = ")
    assert worse.sentence.endswith("needed > 0.05.")


def test_a_model_that_cannot_be_measured_is_one_sentence_and_the_champion_stays() -> None:
    why = "has no roc_auc (the method gives no probabilities); choose another metric in production.gate."
    assert in_metric(0.9, None, answered(20, 2)).sentence == f"Refused: the champion {why}"
    rules = GateConfig.model_validate({"metric": "roc_auc", "metrics": {"roc_auc": {"threshold": 0.5}}})
    assert gate(rules, measured(None)[0]).sentence == f"Refused: the challenger {why}"
    assert gate(rules, measured(0.9)[0]).promote


def test_a_metric_that_got_worse_is_said_without_a_minus() -> None:
    rules = GateConfig.model_validate(
        {"metrics": {"log_loss": {"min_relative_change": 0.3}}, "error_percent": {"min_absolute_change": 1}}
    )
    said = [check.sentence for check in gate(rules, *measured(0.5, 0.4, "log_loss"), (40, 10)).checks]
    assert "log_loss rises by 0.1 from 0.4, needed: a fall by at least 0.12 (min_relative_change)" in said
    assert not any(" by -" in sentence for sentence in said)
