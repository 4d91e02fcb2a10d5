"""A model through its life by the command line, with the real Prefect and the real registry."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from ldsvm.production.alarms import journal
from ldsvm.production.timeline import events

ROOT = Path(__file__).resolve().parents[2]
QUICK = (
    "methods={ours: {estimator: ldsvm, params: {gamma: 0.1, max_iter: 5}, search: {n_basis: [40], C: [0.1]}}}",
    "production.trials=1", "judge.repeats=1", "n_jobs=1",
)  # fmt: skip
Call = Callable[..., tuple[int, str]]
pytestmark = pytest.mark.server


def rows(which: slice, change: Callable[[Any], Any] = lambda X: X) -> pd.DataFrame:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[which]
    table = pd.DataFrame(change(X[order] / 16).astype(np.float32), columns=[f"p{i}" for i in range(64)])
    return table.assign(label=y[order])


def called(place: Path, name: str, *overrides: str) -> list[str]:
    given = [f"paths.runs={place / 'runs'}", f"paths.cache={place / 'cache'}", f"dataset.path={place / 'in'}"]
    return [name, "conf/production/digits.yaml", *given, *QUICK, *overrides]


@pytest.fixture
def call(command: Callable[..., tuple[int, str, str]], undrawn: None, tmp_path: Path) -> Call:
    (tmp_path / "in").mkdir()

    def run(name: str, *overrides: str) -> tuple[int, str]:
        code, out, err = command(*called(tmp_path, name, *overrides))
        return code, out.splitlines()[0] if out else err.splitlines()[-1]

    return run


def tracked(place: Path) -> list[tuple[str, str]]:
    query = (
        "select r.name, r.status from runs r join tags t on t.run_uuid = r.run_uuid"
        " where t.key = 'ldsvm.kind' and t.value in ('retrain', 'score', 'promote', 'rollback') order by r.start_time"
    )
    with closing(sqlite3.connect(place / "runs" / "mlflow.db")) as store:
        return store.execute(query).fetchall()


def statuses(place: Path) -> list[str]:
    """Return the states of all runs; none while there is no store."""
    file = place / "runs" / "mlflow.db"
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as store, suppress(sqlite3.OperationalError):
        return [status for (status,) in store.execute("select status from runs")]
    return []


def cards(place: Path) -> list[str]:
    with closing(sqlite3.connect(place / "runs" / "mlflow.db")) as store:
        return [text for (text,) in store.execute("select description from model_versions order by version")]


def aliases(place: Path) -> dict[str, int]:
    with closing(sqlite3.connect(place / "runs" / "mlflow.db")) as store:
        return dict(store.execute("select alias, version from registered_model_aliases").fetchall())


@pytest.mark.timeout(600)
def test_trained_refused_scored_in_shadow_promoted_and_rolled_back(
    call: Call, command: Callable[..., tuple[int, str, str]], prefect: Any, tmp_path: Path
) -> None:
    code, said = call("score", "production.score={input: x.csv, output: y.csv}")
    assert (code, said) == (2, "x.csv: no such file or folder.")
    rows(slice(0, 600)).to_parquet(tmp_path / "in" / "0.parquet")
    asked = json.dumps({"input": str(tmp_path / "in" / "0.parquet"), "output": "y.csv"})
    code, said = call("score", f"production.score={asked}")
    assert code == 1 and "digits has no champion" in said
    assert call("retrain") == (0, "digits version 1: Promoted: all 5 rules hold.")
    assert call("retrain")[1] == "skip: 0 new rows; production.least is 100."
    rows(slice(600, 800)).to_parquet(tmp_path / "in" / "1.parquet")
    code, said = call("retrain", "production.gate.n_basis.threshold=39")
    assert code == 0 and said.startswith("digits version 2: Refused: n_basis is 40, above 39; ")
    assert aliases(tmp_path) == {"champion": 1}
    code, said = call("retrain", "production.gate.n_basis.threshold=39")
    assert (code, said) == (
        0,
        "skip: 200 new rows, on which a challenger was already refused, rolled back or put in shadow.",
    )
    first, refused = cards(tmp_path)
    rows(slice(800, 1500), lambda X: X + 0.5 * (np.arange(64) % 8 < 4)).to_parquet(tmp_path / "in" / "2.parquet")
    rest = ["production.acknowledge=true", "production.gate.error_percent.threshold=50"]
    rest += ["production.gate.class_error_percent=null", "production.keep.versions=1"]
    trial = "production.rollout={shadow_rows: 297, least_agreement: 0.5}"
    assert call("retrain", *rest, trial) == (
        0,
        "digits version 3: In shadow: all 6 rules hold. It now scores the same rows as digits version 1, and may be "
        "promoted after 297 rows.",
    )
    assert aliases(tmp_path) == {"champion": 1, "shadow": 3}
    _, removed, second = cards(tmp_path)
    assert removed is None and "**In shadow: all 6 rules hold" in second
    title = "# UCI digits, kept fresh: digits version "
    for part in (title, "## Classes", "| basis functions | 40 |", "## Limits", "95 % interval", "SHA-256"):
        assert all(part in text for text in (first, refused, second))
    compared = f"{title}3, compared with digits version 1"
    for part in (compared, "| the champion | ", "## Drift", "(challenger 2 of this champion)"):
        assert part in second and part not in first
    assert "| fails | n_basis | n_basis is 40, above 39 |" in refused and "inputs have drifted" in second
    rows(slice(1500, 1797)).drop(columns="label").to_csv(tmp_path / "new.csv", index=False)
    code, said = call("promote", trial)
    assert code == 1 and "0 rows were compared; production.rollout.shadow_rows requires 297" in said
    asked = json.dumps({"input": str(tmp_path / "new.csv"), "output": str(tmp_path / "out.csv")})
    code, said, err = command(*called(tmp_path, "score", f"production.score={asked}", trial))
    assert code == 0 and said.startswith("297 rows scored by digits version 1 in ") and "rows scored" not in err
    assert "  digits version 3, in shadow, agrees with digits version 1 on " in err
    assert "  it may be promoted: run python -m flows promote with the same file" in err
    assert len(pd.read_csv(tmp_path / "out.csv")) == 297
    code, said = call("promote", trial)
    assert code == 0 and said.startswith(
        "digits version 3 is the champion now, digits version 1 is previous; in shadow"
    )
    assert aliases(tmp_path) == {"champion": 3, "previous": 1}
    assert call("rollback") == (0, "digits version 1 is the champion again, digits version 3 is now previous")
    rows(slice(1500, 1797), lambda X: 1 - X).to_parquet(tmp_path / "in" / "3.parquet")
    code, _, err = command(*called(tmp_path, "retrain"))
    first, *causes, last = err.partition("digits is not retrained, because of an alarm:\n")[2].splitlines()
    assert code == 1 and " % of the inputs have drifted" in first and "  1,197 new rows." in causes
    assert last.startswith("  Look at the data; if they are right, run again with production.acknowledge=true.")
    found = tracked(tmp_path)
    names = ["retrain"] * 5 + ["score", "promote", "rollback", "retrain"]
    assert [name.partition(" · ")[0] for name, _ in found] == names
    assert [status for _, status in found] == ["FINISHED"] * 8 + ["FAILED"]
    _timeline_tells_the_whole_life(tmp_path)
    with prefect.used():
        _alarms_name_the_version_and_prefects_runs_what_they_made(tmp_path)


def _timeline_tells_the_whole_life(place: Path) -> None:
    found = events(place / "runs", "digits")
    assert [(one.kind, one.outcome, one.champion) for one in found] == [
        ("retrain", "promoted", "1"), ("retrain", "skip", "1"), ("retrain", "refused", "1"), ("retrain", "skip", "1"),
        ("acknowledge", "acknowledged", "1"), ("retrain", "in shadow", "1"), ("score", "scored", "1"),
        ("promote", "promoted", "3"), ("rollback", "rolled back", "1"), ("retrain", "alarm", "1"),
    ]  # fmt: skip
    assert found[2].reasons[0] == "n_basis is 40, above 39" and found[2].error is not None and found[4].by
    assert found[4].data == found[5].data != found[9].data and found[9].drifted_share > 0.5
    text = (place / "runs" / "registry" / "digits" / "timeline.html").read_text("utf-8")
    assert "Version 1 has been the champion since " in text and "n_basis is 40, above 39" in text
    query = "select m.value from metrics m join tags t on t.run_uuid = m.run_uuid and t.key = 'ldsvm.kind' "
    query += "where t.value = 'timeline' and m.key = 'champion_version' order by m.step"
    with closing(sqlite3.connect(place / "runs" / "mlflow.db")) as store:
        assert [value for (value,) in store.execute(query)] == [float(one.champion) for one in found]


def _alarms_name_the_version_and_prefects_runs_what_they_made(place: Path) -> None:
    from prefect.client.orchestration import get_client

    every = list(journal(place / "runs"))
    kinds = ["failed", "promoted", "refused", "in_shadow", "failed", "promoted", "rolled_back", "drift"]
    assert [one["kind"] for one in every] == kinds and not any(one["sent"] for one in every)
    assert [one["version"] for one in every] == ["", "1", "2", "3", "", "3", "1", ""]
    assert "digits has no champion" in every[0]["sentence"]
    assert every[2]["sentence"].startswith("digits version 2: Refused: n_basis is 40, above 39; ")
    assert " % of the inputs have drifted" in every[7]["sentence"]
    assert all(
        re.fullmatch(r"(score|retrain|promote|rollback) digits \d{4}-\d\d-\d\d \d\d:\d\d", one["run"]) for one in every
    )
    assert {one["model"] for one in every} == {"digits"}
    query = "select t.value, v.version, r.value from model_versions v join tags t on t.run_uuid = v.run_id and t.key = "
    query += "'ldsvm.pipeline' join model_version_tags r on r.version = v.version and r.key = 'ldsvm.data'"
    with closing(sqlite3.connect(place / "runs" / "mlflow.db")) as store:
        made = store.execute(f"{query} order by v.version").fetchall()
    for (number, version, digest), told in zip(made, [every[1], every[3]], strict=True):  # the second is removed
        with get_client(sync_client=True) as client:
            tags = client.read_flow_run(UUID(number)).tags
        assert f"model digits version {version}" in tags and f"data {digest[:12]}" in tags
        assert (told["version"], told["data"]) == (str(version), digest)


@pytest.mark.timeout(300)
def test_a_killed_retraining_leaves_nothing_half_done_and_the_next_one_ends_it(
    call: Call, prefect: Any, tmp_path: Path
) -> None:
    rows(slice(0, 600)).to_parquet(tmp_path / "in" / "0.parquet")
    prefect.fill(tmp_path / "runs")
    command, environment = (
        [sys.executable, "-m", "flows", *called(tmp_path, "retrain")],
        {**os.environ, **prefect.variables},
    )
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **silent) as process:  # type: ignore[call-overload]
        while not statuses(tmp_path):  # the challenger is being trained
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    assert "RUNNING" in statuses(tmp_path) and aliases(tmp_path) == {} and cards(tmp_path) == []
    assert call("retrain") == (0, "digits version 1: Promoted: all 5 rules hold.")
    assert set(statuses(tmp_path)) == {"KILLED", "FINISHED"}
    assert aliases(tmp_path) == {"champion": 1} and len(cards(tmp_path)) == 1


def test_a_file_without_the_section_is_one_sentence(call: Call) -> None:
    code, said = call("retrain", "production=null")
    assert (code, said) == (
        2,
        "retrain_digits has no section production; add one, as in conf/production/digits.yaml.",
    )
