"""Speed-ups: what is measured, that the same is found however it runs, and what is said of the times."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ldsvm.report.plotting.speedup import Line, speedups, spread
from ldsvm.report.studies import speedup, speedup_page
from ldsvm.report.studies.base import Context, Found, Page
from ldsvm.report.studies.config import load_study
from ldsvm.report.studies.speedup_tables import Fits, serial_share

ROOT = Path(__file__).resolve().parents[3]
TINY = speedup.Params(
    dataset="digits", n_train=400, n_basis=40, n_components=9, gamma=0.05, iterations=2, repeats=1, workers=(1,),
    nodes=0, search_gamma=(0.02, 0.1), search_train=100, search_basis=10, limit_s=300,
)  # fmt: skip
PARTS = ("z", "g", "f", "prepare", "rest")


def fit(n: int, repeat: int, busy: float = 1.0, nested: float = 5.0, **seconds: float) -> dict[str, Any]:
    """A fit of 10 s on one thread, and half as long on two, unless told otherwise."""
    times = {**dict.fromkeys(PARTS, 2.0 / n), **seconds}
    whole = {"seconds": {**times, "whole": sum(times.values())}}
    return {"kind": "fit", "n": n, "repeat": repeat, **whole, "busy": busy, "iteration": 2, "nested": nested}


def search(kind: str, n: int, repeat: int, **changes: Any) -> dict[str, Any]:
    trials = [{"gamma": gamma, "valid_error": 0.1, "failure": None} for gamma in TINY.search_gamma]
    nodes = n if kind == "cluster" else 1
    facts = {"start": 9.0, "search": 8.0 / n, "nodes": nodes, "digest": "same", "trials": trials}
    return {"kind": kind, "n": n, "repeat": repeat, **facts, **changes}


def found(processors: int = 2, **changes: dict[str, Any]) -> Found:
    """What two perfect processors would have given, with changes to runs by kind and number, such as fit2."""
    makers = {"fit1": fit, "fit2": fit, "here1": search, "ray1": search, "ray2": search, "cluster2": search}
    runs = []
    for repeat in range(2):
        for key, make in makers.items():
            head = (int(key[-1]), repeat) if make is fit else (key[:-1], int(key[-1]), repeat)
            runs.append(make(*head, **changes.get(key, {})))
    return Found({"processors": processors, "runs": runs})


def page(processors: int = 2, **changes: dict[str, Any]) -> Page:
    params = TINY.model_copy(update={"workers": (1, 2), "nodes": 2, "repeats": 2})
    return speedup_page.show(params, found(processors, **changes))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Found:
    told: list[float] = []
    place = Context(seed=1, n_jobs=1, cache=tmp_path_factory.mktemp("cache"), tell=lambda _, share: told.append(share))
    params = TINY.model_copy(update={"nodes": 2})
    result = speedup.compute(params, place)
    assert told == [i / 5 for i in range(5)]
    return result


@pytest.mark.server
@pytest.mark.timeout(600)
def test_fits_are_measured_part_by_part(measured: Found) -> None:
    fits = Fits(measured.facts["runs"])
    assert fits.threads == [1, 2] and json.loads(json.dumps(measured.facts)) == measured.facts
    for n in fits.threads:
        (run,) = fits.runs[n]
        assert run["iteration"] == 2 and run["busy"] > 0
        assert min(run["seconds"].values()) > 0
        assert sum(run["seconds"][part] for part in PARTS) == pytest.approx(run["seconds"]["whole"])
    assert fits.runs[1][0]["nested"] == pytest.approx(fits.runs[2][0]["nested"], rel=1e-3)


@pytest.mark.server
@pytest.mark.timeout(600)
def test_the_same_trials_come_out_alone_on_ray_and_on_both_nodes_of_a_cluster(measured: Found) -> None:
    here, ray, cluster = (run for run in measured.facts["runs"] if run["kind"] != "fit")
    assert [here["kind"], ray["kind"], cluster["kind"]] == ["here", "ray", "cluster"]
    assert here["digest"] == ray["digest"] == cluster["digest"]
    assert here["trials"] == ray["trials"] == cluster["trials"]
    assert [trial["failure"] for trial in here["trials"]] == [None, None]
    assert (here["started"], ray["started"], cluster["started"]) == (1, 1, 2)
    assert 1 <= cluster["nodes"] <= 2  # trials as small as these may all be over before the second node has one


@pytest.mark.server
@pytest.mark.timeout(600)
def test_page_of_what_was_measured(measured: Found) -> None:
    made = speedup_page.show(TINY.model_copy(update={"nodes": 2}), measured)
    assert [len(table.rows) for table in made.tables] == [2, 6, 5, 3, 2]
    for table in made.tables:
        assert {len(row) for row in table.rows} == {len(table.header)}


@pytest.mark.usefixtures("undrawn")
def test_two_perfect_processors_keep_every_claim() -> None:
    made = page()
    assert [claim.holds for claim in made.claims] == [True] * 8
    assert made.lede.startswith("A whole fit is 2.00 times as fast on 2 threads")
    assert made.lede.endswith("cannot be checked here.")
    assert made.tables[2].rows[1:] == [
        ["speed-up", "8.00", "2.00", "-6.00"],
        ["share of the ideal", "67%", "100%", "+33 points"],
        ["serial share (Amdahl)", "4.5%", "0.0%", "-4.5 points"],
        ["speed-up on 12 by that share", "–", "12.0", "–"],
    ]


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        (0, {"fit2": {"z": 1.6}}),
        (1, {"fit2": {"g": 1.6}}),
        (2, {"fit2": {"prepare": 4.0}}),
        (3, {"fit2": {"nested": 5.1}}),
        (4, {"cluster2": {"digest": "other"}}),
        (5, {"ray2": {"search": 6.0}}),
        (6, {"cluster2": {"search": 6.0}}),
        (7, {"cluster2": {"nodes": 1}}),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_each_claim_fails_by_what_it_is_about(claim: int, changes: dict[str, Any]) -> None:
    assert [found.holds for found in page(**changes).claims] == [i != claim for i in range(8)]


@pytest.mark.usefixtures("undrawn")
def test_threads_beyond_the_processors_are_told_and_judge_no_step() -> None:
    made = page(processors=1)
    assert made.tables[0].rows[1][0] == "2 (more than the 1 processors)"
    assert not any("paper runs in parallel" in claim.text for claim in made.claims)
    assert made.lede.startswith("Only one thread")


@pytest.mark.usefixtures("undrawn")
def test_a_busy_machine_is_told() -> None:
    assert "One thread got 50% of a processor" in page(fit1={"busy": 0.5}).lede
    assert "unreliable" not in page(fit1={"busy": 0.95}).lede


def test_speedups_are_ratios_of_the_same_repeat() -> None:
    # the machine was three times slower in the second repeat: the median of ratios does not see it
    runs = [fit(1, 0), fit(2, 0), fit(2, 1, **dict.fromkeys(PARTS, 3.0)), fit(1, 1, **dict.fromkeys(PARTS, 6.0))]
    assert Fits(runs).ratios(2, "whole") == [2.0, 2.0]


def test_serial_share_stays_a_share() -> None:
    assert serial_share([(1, 1.0), (2, 3.0)]) == 0.0
    assert serial_share([(1, 1.0), (2, 0.5)]) == 1.0
    assert serial_share([(1, 1.0)]) is None


def test_names_in_the_figure_keep_their_order_and_distance() -> None:
    places = spread([0.0, 0.01, 0.02, 1.0, 1.01, 1.3], gap=0.2)
    assert places[0] == 0.0 and min(b - a for a, b in pairwise(places)) > 0.2 - 1e-12


@pytest.mark.slow
def test_figure_is_the_same_for_the_same_times() -> None:
    lines = [Line("Z-steps", [(1, [1.0, 1.0]), (2, [1.7, 1.9])])]
    first = speedups(lines, lines, 1)
    assert first == speedups(lines, lines, 1) and b"ideal" in first.svg


@pytest.mark.parametrize("threads", [(2,), (0, 1), ()])
def test_without_one_thread_there_is_nothing_to_compare_with(threads: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="allowed: whole numbers from 1, with 1"):
        speedup.Params(threads=threads)


def test_the_file_is_the_papers_size() -> None:
    assert load_study(ROOT / "conf" / "experiments" / "speedup.yaml", root=ROOT).settings == speedup.Params()
