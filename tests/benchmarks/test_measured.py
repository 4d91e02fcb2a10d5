"""README's tables are those that the records in docs/measured make."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import measured
from benchmarks.harness import Bar, Result, read_json, write_json
from benchmarks.names import NAMES


def test_readme_says_what_was_measured() -> None:
    text = measured.README.read_text(encoding="utf-8")
    assert "<!-- measured: figures -->" in text
    assert measured.replaced(text) == text, "run make measured"


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
