"""The dial: what is fitted and chosen by which rows, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ldsvm.report.plotting.dial import Line, dial
from ldsvm.report.studies import dial as study
from ldsvm.report.studies import dial_page
from ldsvm.report.studies.base import Context, Found, Page
from ldsvm.report.studies.config import load_study

ROOT = Path(__file__).resolve().parents[3]
TINY = study.Params(
    dataset="digits", train=600, validation=300, test=300, components=20, sizes=(10, 40), gamma=0.05, learned_gamma=0.1,
    center_steps=300, repeats=1, C_nystroem=(1.0, 10.0), C_svm=(10.0,),
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return study.compute(TINY, Context(seed=0, n_jobs=1, cache=tmp_path_factory.mktemp("cache")))


def run(method: str, size: int | None, **changes: Any) -> dict[str, Any]:
    wrong = {"learned": 20, "fixed": 40, "nystroem": 30, "svm": 25}[method]
    us = {"learned": 1.0, "fixed": 1.0, "nystroem": 5.0, "svm": 500.0}[method]
    facts = {"n_wrong": wrong, "n_test": 1000, "n_basis": size or 5000, "parameter_bytes": 4000, "predict_us": us}
    return {"method": method, "size": size, "C": 1.0, "valid_error": 0.02, "train_s": 1.0, **facts, **changes}


def page(**changes: dict[str, Any]) -> Page:
    methods = [(name, size) for size in (10, 40) for name in ("learned", "fixed", "nystroem")] + [("svm", None)]
    runs = [run(name, size, **changes.get(f"{name}{size or ''}", {})) for name, size in methods]
    return dial_page.show(TINY, Found({"runs": runs}))


@pytest.mark.slow
def test_every_method_is_fitted_at_every_size(found: Found) -> None:
    runs = found.facts["runs"]
    every = [(name, size) for size in (10, 40) for name in ("learned", "fixed", "nystroem")]
    assert [(r["method"], r["size"]) for r in runs] == [*every, ("svm", None)]
    assert [r["n_basis"] for r in runs[:6]] == [10, 10, 10, 40, 40, 40] and runs[6]["n_basis"] > 40
    assert all(0 < r["n_wrong"] < 0.6 * r["n_test"] and r["predict_us"] > 0 for r in runs)
    assert runs[0]["n_wrong"] < min(runs[1]["n_wrong"], runs[2]["n_wrong"])  # ten centres, where it counts
    json.dumps(found.facts)


@pytest.mark.slow
def test_the_page_of_what_was_measured(found: Found) -> None:
    made = dial_page.show(TINY, found)
    for table in made.tables:
        assert {len(row) for row in table.rows} == {len(table.header)}
    assert [len(table.rows) for table in made.tables] == [3, 7]
    assert made.pictures[0].drawing.png.startswith(b"\x89PNG")


@pytest.mark.usefixtures("undrawn")
def test_a_map_that_is_as_good_and_small_keeps_every_claim() -> None:
    made = page()
    assert [claim.holds for claim in made.claims] == [True, True, True]
    assert "10 learned basis functions have 2.00 % and predict 500 times as fast" in made.lede


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"nystroem40": {"n_wrong": 20}}, [False, True, True]),
        ({"learned10": {"n_wrong": 39}, "nystroem10": {"n_wrong": 45}, "svm": {"n_basis": 399}}, [True, False, True]),
        ({"svm": {"predict_us": 99.0}}, [True, True, False]),
        ({"svm": {"n_wrong": 1, "n_basis": 10}}, [True, False, False]),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_each_claim_fails_by_what_it_is_about(changes: dict[str, Any], holds: list[bool]) -> None:
    made = page(**changes)
    assert [claim.holds for claim in made.claims] == holds


def test_the_file_of_the_study_loads() -> None:
    config = load_study("conf/dial.yaml", root=ROOT)
    assert isinstance(config.settings, study.Params) and config.settings.sizes[-1] == 1000


@pytest.mark.slow
def test_the_figure_is_the_same_each_time() -> None:
    lines = [Line("a $", [10, 100], [1.0, 3.0], [5.0, 2.0]), Line("b", [1000], [50.0], [2.5])]
    assert dial(lines, "t") == dial(lines, "t")
