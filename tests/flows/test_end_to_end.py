"""A tiny experiment through the real Prefect and the real MLflow, twice: once well, once with a method that fails."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ldsvm.experiment.config import Config
from ldsvm.experiment.load import load_config

ROOT = Path(__file__).resolve().parents[2]
TINY = """
name: tiny
title: Tiny digits
dataset: {name: digits}
problems: [{name: odd or even, labels: parity}]
split: {kind: stratified, train: 200, validation: 100, test: 150}
judge: {repeats: 1}
methods:
  ours:
    estimator: ldsvm
    params: {n_basis: 20, gamma: 0.1, max_iter: 5}
    search: {C: [1, 10]}
  NN: {estimator: nearest_neighbour}
"""


@dataclass
class Ran:
    """One call of the command line and the folder it worked in."""

    done: subprocess.CompletedProcess[str]
    place: Path
    config: Config


def run(place: Path, *overrides: str) -> Ran:
    file = place / "tiny.yaml"
    file.write_text(TINY, encoding="utf-8")
    every = [f"paths.runs={place / 'runs'}", f"paths.cache={place / 'cache'}", *overrides]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PREFECT_API_URL", None)
    (place / "elsewhere").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "flows", "pipeline", str(file), *every],
        cwd=place / "elsewhere", env=environment, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    return Ran(done, place, load_config(file, every, root=ROOT))


def statuses(ran: Ran) -> list[tuple[str, str, str]]:
    """Kind, name and status of every run in the store, oldest first, read without MLflow."""
    with sqlite3.connect(ran.place / "runs" / "mlflow.db") as store:
        return store.execute(
            "select t.value, r.name, r.status from runs r join tags t on t.run_uuid = r.run_uuid"
            " where t.key = 'ldsvm.kind' order by r.start_time"
        ).fetchall()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    before = sorted(p.name for p in ROOT.iterdir())
    ran = run(tmp_path_factory.mktemp("tiny"))
    assert sorted(p.name for p in ROOT.iterdir()) == before
    return ran


@pytest.fixture(scope="module")
def second(first: Ran) -> Ran:
    return run(first.place, "methods.NN.params.n_neighbors=1000")


@pytest.mark.timeout(300)
def test_it_ends_with_table_report_and_the_command_for_the_ui(first: Ran) -> None:
    out = first.done.stdout
    assert first.done.returncode == 0, first.done.stderr
    for part in (
        "odd or even",
        "error %",
        "basis functions",
        "train s",
        "predict µs/sample",
        "report.html",
        "ui RUNS=",
    ):
        assert part in out
    assert "Traceback" not in first.done.stderr
    assert "trials 2, test error" in first.done.stderr


@pytest.mark.timeout(300)
def test_runs_are_nested_and_finished_and_named_by_what_matters(first: Ran) -> None:
    rows = statuses(first)[:6]
    assert sorted(kind for kind, _, _ in rows) == ["method", "method", "problem", "trial", "trial", "trial"]
    assert {status for _, _, status in rows} == {"FINISHED"}
    names = [name for kind, name, _ in rows if kind == "method"]
    assert names[0].startswith("ours rbf M=20 L=1 · ")
    with sqlite3.connect(first.place / "runs" / "mlflow.db") as store:
        notes = store.execute("select value from tags where key = 'mlflow.note.content'").fetchall()
    assert all("| method | error % |" in text for (text,) in notes)
    assert notes
    assert names[1].startswith("NN M=200 · ")


@pytest.mark.timeout(300)
def test_report_model_and_results_are_where_they_belong_and_nothing_else(first: Ran) -> None:
    page = (first.config.results / "report.html").read_text("utf-8")
    for part in ("Tiny digits", "digest", "scikit-learn", "data:image/png;base64,", "How it was measured", "licence"):
        assert part in page
    assert str(first.place) not in page
    assert sorted(p.name for p in first.place.iterdir()) == ["cache", "elsewhere", "runs", "tiny.yaml"]
    assert list((first.place / "elsewhere").iterdir()) == []
    assert not [p for p in first.place.rglob(".*") if "prefect" not in p.parts and p.name != ".lock"]
    assert list((first.place / "runs" / "artifacts").rglob("MLmodel"))
    assert list((first.place / "runs" / "artifacts").rglob("splits/0/split.npz"))
    for name in ("ours", "nn"):
        result = json.loads(
            (first.config.results / "odd_or_even" / name / "split-0" / "result.json").read_text("utf-8")
        )
        assert result["score"]["n_test"] == 150


@pytest.mark.timeout(300)
def test_a_second_run_in_which_a_method_fails_says_so_and_finishes_the_rest(second: Ran) -> None:
    assert second.done.returncode == 1
    last = second.done.stderr.strip().splitlines()[-1]
    assert last.startswith("1 failed, first NN on odd or even: ValueError: Expected n_neighbors")
    assert "(log: " in last
    assert "Traceback" not in second.done.stderr
    assert "failed" in second.done.stdout
    rows = statuses(second)[6:]
    kinds = {(kind, status) for kind, _, status in rows}
    assert ("problem", "FAILED") in kinds
    assert [status for kind, _, status in rows if kind == "method"] == ["FINISHED", "FAILED"]
    assert len(list((second.place / "cache").glob("[!.]*"))) == 1
    assert "Expected n_neighbors" in (second.config.results / "report.html").read_text("utf-8")
