"""Simplex against random start: what is measured, by which rows, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from ldsvm.datasets import load
from ldsvm.report.plotting.starts import Curve, curves
from ldsvm.report.studies import starts, starts_page
from ldsvm.report.studies.base import Context, Found, Page
from ldsvm.report.studies.config import load_study

ROOT = Path(__file__).resolve().parents[3]
DIGITS = starts.Problem(
    name="digits", dataset="digits", train=200, validation=150, test=150, n_components=9, n_basis=30, gamma=0.05
)
TINY = starts.Params(problems=(DIGITS,), C=(0.1, 1.0), n_seeds=2, patience=2, max_iter=10)
TIMES = ("seconds", "notes")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def found(cache: Path) -> Found:
    return starts.compute(TINY, Context(seed=3, n_jobs=1, cache=cache))


def timeless(run: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in run.items() if key not in TIMES}


def run(start: str, seed: int, **changes: Any) -> dict[str, Any]:
    """A run as it could have been measured, 3 of 100 test rows wrong."""
    facts = {
        "problem": "digits", "seed": seed, "start": start, "C": 1.0, "by_C": [0.05, 0.04], "n_valid": 100, "wrong": 3,
        "n_test": 100, "n_iter": 4, "best_iter": 2, "paper_iter": 1, "stop": "early_stopping", "seconds": 1.0,
        "notes": [], "nested": [9.0, 8.0, 7.0, 6.0, 5.0], "train_error": [0.1] * 5, "valid_error": [0.2] * 5,
    }  # fmt: skip
    return {**facts, **changes}


def page(**changes: dict[str, Any]) -> Page:
    """The page of two seeds, with changes to the runs of a start."""
    runs = [run(start, seed, **changes.get(start, {})) for seed in (0, 1) for start in TINY.starts]
    return starts_page.show(TINY, Found({"runs": runs}))


def verdicts(**changes: dict[str, Any]) -> list[bool]:
    return [claim.holds for claim in page(**changes).claims]


@pytest.mark.slow
def test_every_start_runs_once_on_each_seed_and_the_facts_survive_json(found: Found) -> None:
    runs = found.facts["runs"]
    assert [(r["seed"], r["start"]) for r in runs] == [(s, t) for s in (3, 4) for t in ("simplex", "random", "rows")]
    for r in runs:
        assert len(r["nested"]) == len(r["valid_error"]) == r["n_iter"] + 1
        assert 1 <= r["paper_iter"] <= r["n_iter"] and r["best_iter"] <= r["n_iter"]
        assert r["valid_error"][r["best_iter"]] == min(r["valid_error"])
        assert r["n_test"] == 150
    assert json.loads(json.dumps(found.facts)) == found.facts
    assert runs[0]["nested"] != runs[1]["nested"] != runs[2]["nested"]


@pytest.mark.slow
def test_starts_of_a_seed_share_the_C_that_validation_chooses(found: Found) -> None:
    for seed in (3, 4):
        runs = {r["start"]: r for r in found.facts["runs"] if r["seed"] == seed}
        sums = [a + b for a, b in zip(runs["simplex"]["by_C"], runs["random"]["by_C"], strict=True)]
        assert {r["C"] for r in runs.values()} == {TINY.C[sums.index(min(sums))]}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_outcome(found: Found, cache: Path) -> None:
    again = starts.compute(TINY.model_copy(update={"n_seeds": 1}), Context(seed=4, n_jobs=1, cache=cache))
    assert [timeless(r) for r in again.facts["runs"]] == [timeless(r) for r in found.facts["runs"][3:]]


def test_the_test_set_decides_nothing(found: Found, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("digits", cache_dir=cache)
    split = starts.draw(DIGITS, data, 3)
    X = data.X.copy()
    X[split.test] = 0.0
    rows = data.train.__class__(X, data.y)
    monkeypatch.setattr(starts, "load", lambda *_, **__: data.__class__(**{**vars(data), "train": rows}))
    blind = starts.compute(TINY.model_copy(update={"n_seeds": 1}), Context(seed=3, n_jobs=1, cache=cache))
    for here, there in zip(blind.facts["runs"], found.facts["runs"], strict=False):
        assert here["wrong"] > there["wrong"]
        assert timeless({**here, "wrong": 0}) == timeless({**there, "wrong": 0})


def test_an_official_test_set_is_the_test_set_whole(cache: Path) -> None:
    data = load("spirals", cache_dir=cache, options={"n_samples": 30})
    data = data.__class__(**{**vars(data), "test": data.train.take(np.arange(7))})
    problem = DIGITS.model_copy(update={"dataset": "spirals", "train": 30, "validation": 20, "test": 0})
    split = starts.draw(problem, data, 0)
    assert split.official_test and len(split.test) == 7 and len(split.train) == 30


@pytest.mark.parametrize(("errors", "stop"), [([3, 2, 1], 2), ([3, 3, 1], 1), ([3, 2, 4, 1], 2), ([1, 2], 1)])
def test_the_papers_rule_ends_when_the_error_does_not_change_or_goes_up(errors: list[float], stop: int) -> None:
    assert starts.paper_stop(errors) == stop


@pytest.mark.usefixtures("undrawn")
def test_claims_hold_when_the_starts_do_equally_well() -> None:
    assert verdicts() == [True] * 6
    said = "From the simplex it is 1.00, 1.00 times that from random centroids, with the same C."
    assert page().claims[3].measured == said


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        (0, {"simplex": {"paper_iter": 2}, "random": {"paper_iter": 2}}),
        (1, {"random": {"paper_iter": 0}}),
        (2, {"random": {"n_iter": 3}}),
        (3, {"random": {"nested": [9.0, 8.0, 7.0, 6.0, 5.6]}}),
        (4, {"random": {"wrong": 15}}),
        (5, {"rows": {"by_C": [0.5, 0.4]}}),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_each_claim_fails_by_what_it_is_about(claim: int, changes: dict[str, Any]) -> None:
    assert verdicts(**changes) == [i != claim for i in range(6)]


@pytest.mark.usefixtures("undrawn")
def test_page_of_what_was_computed_shows_every_run(found: Found) -> None:
    made = starts_page.show(TINY, found)
    assert [len(table.rows) for table in made.tables] == [3, 6, 3]
    for table in made.tables:
        assert {len(row) for row in table.rows} == {len(table.header)}
    wrong = found.facts["runs"][0]["wrong"]
    assert made.tables[1].rows[0][:2] == ["simplex", "3"] and f"{100 * wrong / 150:.2f}" in made.tables[1].rows[0]
    assert "200 training" in made.protocol and "test set chooses nothing" in made.protocol


@pytest.mark.usefixtures("undrawn")
def test_only_mnist_stands_beside_the_papers_numbers() -> None:
    assert not any("paper" in table.title for table in page().tables)
    params = TINY.model_copy(update={"problems": (DIGITS.model_copy(update={"dataset": "mnist"}),)})
    runs = [run(start, 0) for start in params.starts]
    (table,) = (t for t in starts_page.show(params, Found({"runs": runs})).tables if "paper" in t.title)
    assert table.rows[1] == ["iterations, random centroids", "18", "1", "-17"]
    assert table.rows[2] == ["test error %, simplex", "2.99", "3.00", "+0.01"]


@pytest.mark.usefixtures("undrawn")
def test_a_single_start_has_a_page_without_comparisons() -> None:
    params = TINY.model_copy(update={"starts": ("random",)})
    made = starts_page.show(params, Found({"runs": [run("random", 0)]}))
    assert made.claims == [] and len(made.tables[0].rows) == 1


@pytest.mark.slow
def test_figure_is_the_same_for_the_same_runs_and_takes_an_error_of_zero() -> None:
    runs = [Curve("simplex", [3.0, 2.0], [0.1, 0.0], 1, 1), Curve("random", [4.0, 2.0], [0.3, 0.1], 1, 1)]
    assert curves(runs, "digits") == curves(runs, "digits")
    assert b"validation error (%)" in curves(runs, "digits").svg


def test_unknown_starts_are_refused() -> None:
    with pytest.raises(ValidationError, match="'simplex', 'random' or 'rows'"):
        starts.Params(starts=("zeros",))  # type: ignore[arg-type]


def test_the_file_is_the_papers_protocol() -> None:
    assert load_study(ROOT / "conf" / "experiments" / "starts.yaml", root=ROOT).settings == starts.Params()
