"""The tables of README and of the page of results are those that docs/measured makes."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import measured
from benchmarks.harness import Bar, Result, read_json, write_json
from benchmarks.names import NAMES


@pytest.mark.parametrize("page", measured.PAGES, ids=lambda page: page.name)
def test_pages_say_what_was_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = ["headlines"] if page == measured.README else ["figures", "earlier"]
    assert all(f"<!-- measured: {name} -->" in text for name in names)
    assert measured.replaced(text) == text, "run make measured"


def test_readme_shows_six_figures_that_each_stand_on_their_own() -> None:
    rows = measured.headlines().splitlines()[2:]
    assert len(rows) == 6 and not any("the same" in row or "that " in row for row in rows)


def test_a_record_takes_the_place_of_earlier_figures(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.md"
    head = "| what | result | command |\n| --- | --- | --- |\n"
    earlier.write_text(f"{head}| a | 1 | `fit` |\n| b | 2 | `data` |\n", "utf-8")
    assert measured.earlier_rows(tmp_path, earlier) == [("a", "1", "`fit`"), ("b", "2", "`data`")]
    (tmp_path / "data.json").touch()
    assert measured.earlier_rows(tmp_path, earlier) == [("a", "1", "`fit`")]


@pytest.mark.parametrize("name", sorted(place.stem for place in measured.RECORDS.glob("*.json")))
def test_a_record_is_of_a_whole_run_on_a_commit(name: str) -> None:
    _, record = read_json(measured.RECORDS / f"{name}.json")
    assert name in NAMES and record["benchmark"] == name and not record["quick"]
    assert record["commit"] and "changed" not in record["commit"]
    assert hasattr(import_module(f"benchmarks.{name}"), "quoted_tables" if name == "baselines" else "quoted")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    result = Result([{"statement": "import ldsvm"}], [Bar("import_ratio", 1.234, "<=", 1.3)], {"repeats": 1})
    write_json(tmp_path / "imports.json", "imports", result, quick=False)
    return tmp_path


def test_a_changed_record_changes_its_line_and_nothing_else(records: Path) -> None:
    text = "before\n<!-- measured: figures -->\nold\n<!-- end -->\nafter\n"
    made = measured.replaced(text, records)
    assert made.startswith("before\n<!-- measured: figures -->\n| what |") and made.endswith("<!-- end -->\nafter\n")
    assert "| 1.23 of the time | `imports` |" in made and "old" not in made
    assert measured.replaced(made, records) == made


def test_a_record_comes_back_as_it_was_written(records: Path) -> None:
    result, record = read_json(records / "imports.json")
    assert result.bar("import_ratio") == 1.234 and result.bars[0].holds and result.settings == {"repeats": 1}
    assert record["bars"][0]["holds"] is True


@pytest.mark.parametrize(("key", "value"), [("quick", True), ("commit", None)])
def test_quick_runs_and_unknown_code_are_no_measurements(records: Path, key: str, value: object) -> None:
    place = records / "imports.json"
    place.write_text(json.dumps(json.loads(place.read_text("utf-8")) | {key: value}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"imports\.json is of a quick run, or of no commit"):
        measured.measured_table(records)
