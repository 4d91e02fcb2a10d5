"""Whether a claim holds, and what is said about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.load import ConfigError, load_config, variants
from ldsvm.experiment.config.schema import Config
from ldsvm.report import claims
from ldsvm.report.claims import Claim
from ldsvm.report.plotting.curves import Line, _apart, curves

ROOT = Path(__file__).resolve().parents[2]
SCORE = Score(0.1, 0.05, 0.2, 1, 10, None, None, 80, 1.5, 1.0, [0, 1], [0.0, 0.2], [[5, 0], [1, 4]])


def outcome(name: str, error: float) -> Outcome:
    return Outcome(Path(name), (Result("p", name, "linear_svm", [], score=replace(SCORE, error=error)),))


def config(*given: str) -> Config:
    return load_config("conf/digits.yaml", given, root=ROOT)


def verdict(claim: str, *series: dict[str, float]) -> Claim:
    found = [(f"size {i}", [outcome(name, error) for name, error in errors.items()]) for i, errors in enumerate(series)]
    (one,) = claims.judge_claims(config(f"claims=[{claim}]"), found)
    return one


@pytest.mark.parametrize(
    ("claim", "holds", "measured"),
    [
        ("{text: t, of: [ours], than: [NN]}", True, "ours 2.00 %, NN 3.00 %"),
        ("{text: t, of: [ours, linear SVM], than: [NN]}", False, "linear SVM 3.00 %, NN 3.00 %"),  # a tie is not below
        ("{text: t, of: [ours], than: others}", False, "ours 2.00 %, Gaussian SVM 1.00 %"),
        ("{text: t, of: [ours], at_most: 2}", True, "ours 2.00 %, bar 2 %"),
        ("{text: t, of: [ours], at_most: 1.9, than: [NN]}", False, "ours 2.00 %, NN 3.00 %, bar 1.9 %"),
    ],
)
def test_one_table(claim: str, holds: bool, measured: str) -> None:
    errors = {"ours": 0.02, "NN": 0.03, "linear SVM": 0.03, "Gaussian SVM": 0.01}
    assert verdict(claim, errors) == Claim("t", holds, measured)


def test_what_was_not_measured_does_not_hold() -> None:
    found = verdict("{text: t, of: [ours], than: [NN]}", {"ours": 0.02})
    assert found == Claim("t", False, "not measured, NN without a result")


def test_a_share_of_the_values_and_the_ones_that_fail_are_named() -> None:
    good, bad = {"ours": 0.02, "NN": 0.03}, {"ours": 0.04, "NN": 0.03}
    enough = verdict("{text: t, of: [ours], than: [NN], share: 0.75}", good, bad, good, good)
    assert enough == Claim("t", True, "at 3 of 4 values; not at size 1: ours 4.00 %, NN 3.00 %")
    assert not verdict("{text: t, of: [ours], than: [NN]}", good, bad, good, good).holds
    assert not verdict("{text: t, of: [ours], than: [NN], share: 0.75}", good, bad, bad, good).holds


def test_claims_are_read_back(tmp_path: Path) -> None:
    claims.save(tmp_path, {"p": [Claim("a", True, "1 %")], "q": []})
    assert claims.read(tmp_path) == {"p": [Claim("a", True, "1 %")], "q": []}
    assert claims.read(tmp_path / "absent") == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "claims=[{text: t, of: [our], than: [NN]}]",
            'names the method "our", which is unknown (did you mean "ours"?)',
        ),
        ("claims=[{text: t, of: [ours]}]", "a claim needs than, at_most, or both"),
        ("vary={key: seed, values: [1], label: seed}", 'key "vary.values" has value [1]'),
        ("vary={key: seed, values: [1, 2], label: seed, show: 3}", "show must be one of the values 1, 2"),
        ("vary={key: seed, values: [1, 2], label: seed, show: true}", "show must be one of the values 1, 2"),
        ("vary={key: seed, valus: [1, 2], label: seed}", '(did you mean "values"?)'),
    ],
)
def test_a_mistake_is_one_sentence(line: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(line)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_an_experiment_is_repeated_for_each_value() -> None:
    line = "vary={key: methods.ours.search.C, values: [[1], [2, 3]], label: C}"
    with pytest.raises(ConfigError, match=r"vary\.values"):
        config(line)  # lists are no single values
    line = "vary={key: split.train, values: [100, 200], label: rows}"
    found = variants(config(line), "conf/digits.yaml", [line], root=ROOT)
    assert [(one.split.train, one.vary) for one in found] == [(100, None), (200, None)]
    assert variants(config(), "conf/digits.yaml", [], root=ROOT) == [config()]


@pytest.mark.slow
def test_the_curves_are_drawn_with_gaps_and_words_the_same_each_time() -> None:
    lines = [
        Line("ours", 0, [3.0, 2.0, None], [2.5, 1.5, None], [3.5, 2.5, None]),
        Line("NN", 3, [None, None, None], [None, None, None], [None, None, None]),
        Line("other", 5, [9.0, 8.0, 2.05], [8.0, 7.0, 2.0], [10.0, 9.0, 2.2]),
    ]
    for values, log in (([100, 200, 5000], True), (["a$^$", "b", "c"], False)):
        first = curves(values, lines, "t", "x", log=log, several=True)
        assert first.png.startswith(b"\x89PNG") and b"<svg" in first.svg
        assert first == curves(values, lines, "t", "x", log=log, several=True)


def test_labels_that_would_run_into_each_other_are_left_out_and_the_last_stays() -> None:
    assert _apart(np.log([100, 200, 4000, 5000]), ["100", "200", "4,000", "5,000"]) == ["100", "200", "", "5,000"]
    assert _apart(np.array([1.0, 1.0]), ["a", "b"]) == ["", "b"]
    assert _apart(np.arange(4.0), ["1", "2", "3", "4"]) == ["1", "2", "3", "4"]
