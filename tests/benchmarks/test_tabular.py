"""What `tabular` concludes from its measurements, and its picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from benchmarks import tabular
from benchmarks.harness import Result
from benchmarks.tabular import Kept, Split, bars, code_of, critical_difference, picture, ranks, searched, summary
from benchmarks.tabular_data import tables
from benchmarks.tabular_methods import RIVALS


def measured(errors: dict[str, list[float]], rows: tuple[int, ...] = (500, 4000)) -> list[dict[str, Any]]:
    """One measurement of each method on each table; all else is 1 for SVC, 2 for trees and 0.5 for us."""
    return [
        {"table": f"t{i}", "seed": 0, "rows": rows[i], "method": method, "error %": error}
        | dict.fromkeys(("fit s", "search s", "us a row", "basis", "bytes"), {"S": 1, "t": 2}.get(method[0], 0.5))
        for method, each in errors.items()
        for i, error in enumerate(each)
    ]


ERRORS = {"ours": [4.0, 2.0], "ours tuned": [1.0, 2.0], "SVC": [3.0, 3.0], "SVC tuned": [2.0, 1.0], "trees": [5.0, 5.0]}


def test_ranks_are_means_over_tables_and_ties_share_theirs() -> None:
    found = ranks({"a": {"x": 1.0, "y": 1.0}, "b": {"x": 1.0, "y": 2.0}, "c": {"x": 3.0, "y": 3.0}})
    assert found == {"a": 1.25, "b": 1.75, "c": 3.0}


def test_the_critical_difference_is_that_of_the_published_table() -> None:
    # Demsar (2006), table 5: q = 2.343 for three methods, 2.728 for five
    assert critical_difference(3, 20) == pytest.approx(2.343 * np.sqrt(3 * 4 / 120), rel=1e-3)
    assert critical_difference(5, 30) == pytest.approx(2.728 * np.sqrt(5 * 6 / 180), rel=1e-3)


def test_the_bars_compare_with_the_svc_table_by_table() -> None:
    found = {bar.name: bar for bar in bars(measured(ERRORS))}
    assert found["tuned: mean error minus tuned SVC's"].value == 0.0
    assert found["default: mean error minus tuned SVC's"].value == 1.5
    assert found["default: seconds / SVC's, up to 3,000 rows"].value == 0.5
    assert not found["tuned: the same, 3,000 training rows or more"].holds
    few = {bar.name for bar in bars(measured(ERRORS, rows=(500, 600)))}
    assert "default: seconds / SVC's, 5,000 rows or more" not in few


def test_the_summary_counts_wins_over_the_tuned_svc() -> None:
    lines = {row["method"]: row for row in summary(measured(ERRORS))}
    assert [lines["ours tuned"][key] for key in ("wins", "losses")] == [1, 1]
    assert [lines["trees"][key] for key in ("wins", "losses", "us a row")] == [0, 2, 2]


def test_a_search_never_sees_the_test_rows_and_keeps_to_the_space() -> None:
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    split = Split(X[::2], y[::2], None, None, 0)
    params, seconds = searched(RIVALS["SVC"], "SVC", split, 3)
    assert seconds > 0 and all(value in RIVALS["SVC"].space[key] for key, value in params.items())


def test_the_splits_are_stratified_and_hold_every_row_once() -> None:
    table = tables(quick=True)[0]
    X, y, X_test, y_test = table.split(1)
    assert len(y) + len(y_test) == len(table.found.rows) and X.shape[1] == X_test.shape[1]
    np.testing.assert_allclose(np.bincount(y) / len(y), np.bincount(y_test) / len(y_test), atol=0.02)


def test_figures_of_a_killed_run_are_not_measured_again(tmp_path: Path) -> None:
    asked: list[int] = []

    def measure(seed: int) -> dict[str, Any]:
        asked.append(seed)
        return {"error %": 10.0 * seed}

    def measured_by(run: dict[str, Any], code: str = "a") -> list[dict[str, Any]]:
        kept = Kept(tmp_path / "journal", run)
        about = {"table": "iris", "rows": 100, "method": "ours", "code": code}
        return [kept.measured({**about, "seed": seed}, partial(measure, seed)) for seed in (0, 1)]

    first = measured_by({"trials": 9})
    assert asked == [0, 1] and [row["error %"] for row in first] == [0.0, 10.0]
    assert measured_by({"trials": 9}) == first and asked == [0, 1]
    whole = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(whole[:-4])  # killed as it wrote the last one
    assert measured_by({"trials": 9}) == first and asked == [0, 1, 1]
    assert (tmp_path / "journal").read_bytes() == whole
    measured_by({"trials": 3})
    assert asked == [0, 1, 1, 0, 1]
    measured_by({"trials": 3}, code="b")
    assert asked == [0, 1, 1, 0, 1, 0, 1]
    measured_by({"trials": 3})  # those of other code are still there
    assert asked == [0, 1, 1, 0, 1, 0, 1]


@pytest.mark.slow
def test_our_figures_are_those_of_our_code_and_a_rivals_those_of_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: code_of(name) for name in ("ours", "SVC")}
    monkeypatch.setattr(tabular, "digest_of", lambda files: "other code")
    assert code_of("ours") != before["ours"] and code_of("SVC") == before["SVC"]
    monkeypatch.setattr(tabular, "version", lambda package: f"other {package}")
    assert code_of("SVC") != before["SVC"]


@pytest.mark.slow
def test_the_picture(tmp_path: Path) -> None:
    rows = measured(ERRORS)
    picture(Result(summary(rows), bars(rows), {"measured": rows}), tmp_path / "it.png")
    assert (tmp_path / "it.png").stat().st_size > 10_000
