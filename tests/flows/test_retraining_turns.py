"""Retrainings of one production model take turns, those of another model do not wait; what ends one is said once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from ldsvm.datasets.table_schema import Allowed
from ldsvm.production import timeline
from ldsvm.production.promotion import Inspection
from ldsvm.production.registry import one_at_a_time
from ldsvm.production.retraining import Decision


@pytest.fixture
def retrain() -> Any:
    """The module, which takes seconds to import."""
    from flows import retrain

    return retrain


@pytest.mark.slow
def test_of_two_retrainings_at_once_one_judges_and_the_other_finds_its_verdict(
    retrain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, waits, done = Event(), Event(), list[str]()

    def retrained(settings: Any, asked: Any) -> str:
        if asked.model == "other":
            return "not held up"
        if done:
            return f"skip: after {done[-1]}"
        begun.set()
        assert waits.wait(120)  # until the second one is held up by the first
        done.append("a verdict")
        return done[-1]

    def said(text: str) -> None:
        assert text == "another retraining of m is running; waiting for it to end"
        waits.set()

    monkeypatch.setattr(
        retrain, "experiment", lambda name, _: SimpleNamespace(paths=SimpleNamespace(runs=tmp_path), name=name)
    )
    monkeypatch.setattr(retrain, "production_section", lambda settings, _: SimpleNamespace(model=settings.name))
    monkeypatch.setattr(retrain, "retrain_now", retrained)
    monkeypatch.setattr(retrain, "say", said)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(retrain.retrain.fn, "m")
        assert begun.wait(120)
        assert retrain.retrain.fn("other") == "not held up"
        second = pool.submit(retrain.retrain.fn, "m")
        assert (first.result(120), second.result(120)) == ("a verdict", "skip: after a verdict")


def test_a_retraining_that_fails_gives_its_turn_to_the_next(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="failed"), one_at_a_time(tmp_path, "m"):
        raise ValueError("failed")
    with one_at_a_time(tmp_path, "m"):
        pass


def test_the_schema_lies_where_scoring_looks_for_it(
    retrain: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prepared = MagicMock(schema=[asdict(Allowed("age", "number", least=17, gaps=0.0))], sizes={})
    made = MagicMock(prepared=prepared, **{"config.results": tmp_path / "with another search"})
    monkeypatch.setattr(retrain.promotion, "challenge", lambda *_: made)
    monkeypatch.setattr("flows.challenge.preparation.save", lambda *_: None)
    retrain.prepare_challenger.fn(MagicMock(results=tmp_path / "asked"), None, "digest")
    assert "age: {role: number, least: 17, gaps: 0}" in (tmp_path / "asked" / "schema.yaml").read_text()


def test_the_reasons_of_a_retraining_are_a_line_each(
    retrain: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look = Inspection(Decision("retrain", ("7 new rows.", "Nothing has drifted.")), 7, None, "digest")
    monkeypatch.setattr(retrain.promotion, "inspect_data", lambda *_: look)
    monkeypatch.setattr("flows._cli._Page._send", lambda *_: None)
    retrain.look_for_news.fn(MagicMock(**{"dataset.name": "rows"}), None, None, [], None)
    said = [line.partition(" s  ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said[-3:] == ["look at rows · champion none · 7 new rows", "  7 new rows.", "  Nothing has drifted."]


@pytest.mark.parametrize("action", ["alarm", "skip"])
def test_what_ends_a_retraining_is_left_to_its_last_line(
    action: Any, retrain: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look, run = Inspection(Decision(action, ("the reason.",)), 7, None, "digest"), MagicMock()
    tracker = MagicMock(**{"run.return_value.__enter__.return_value": run})
    config = MagicMock(**{"dataset.name": "rows"})
    monkeypatch.setattr(retrain.promotion, "inspect_data", lambda *_: look)
    monkeypatch.setattr("flows._cli._Page._send", lambda *_: None)
    assert retrain.look_for_news.fn(config, None, None, [], None) is look
    events: list[Any] = []
    monkeypatch.setattr("flows.challenge.timeline.remember", lambda _, registry, event: events.append(event))
    retrain.record_decision.fn(config, MagicMock(tracker=tracker), look, None)
    assert [(one.outcome, one.reasons, one.rows, one.data) for one in events] == [
        (action, ("the reason.",), 7, "digest")
    ]
    said = capsys.readouterr().err
    assert "look at rows · champion none · 7 new rows" in said and "the reason." not in said
    assert run.failure == ("alarm: the reason." if action == "alarm" else None)


def test_an_acknowledged_retraining_draws_its_timeline_once(
    retrain: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    look = Inspection(Decision("skip", ("Nothing is new.",)), 0, None, "digest")
    version = SimpleNamespace(number=1)
    registry: Any = MagicMock(**{"get.return_value": version})
    registry.name = "m"
    drawn: list[int] = []
    monkeypatch.setattr(retrain, "Registry", lambda *_: registry)
    monkeypatch.setattr(retrain, "Tracker", MagicMock())
    monkeypatch.setattr(retrain.promotion, "Champion", MagicMock())
    monkeypatch.setattr(retrain, "look_for_news", lambda *_: look)
    monkeypatch.setattr(
        retrain.timeline.pages, "write", lambda runs, model, _: drawn.append(len(timeline.events(runs, model)))
    )
    monkeypatch.setattr(retrain.timeline, "production_rules", MagicMock())
    config: Any = SimpleNamespace(paths=SimpleNamespace(runs=tmp_path), name="rows")
    monkeypatch.setattr(
        retrain,
        "record_decision",
        lambda *_: retrain.timeline.remember(config, registry, retrain.timeline.not_trained(look, version, "run")),
    )
    retrain.retrain_now(config, MagicMock(acknowledge=True))
    assert [one.kind for one in timeline.events(tmp_path, "m")] == ["acknowledge", "retrain"]
    assert drawn == [2] and registry.timeline.return_value.sample.call_count == 2
