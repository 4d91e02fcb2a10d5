"""The life of a production model: its events, and the page that is made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production import timeline
from ldsvm.production.drift import Drift, Shift
from ldsvm.production.estimate import Estimate
from ldsvm.production.timeline import COLUMNS, Event, drift_of, events, record, share_of
from ldsvm.report import timeline as pages
from ldsvm.report.plotting import timeline as plotting

LARGE = DriftConfig().psi


def event(day: int, kind: Any, outcome: str, **more: Any) -> Event:
    return Event(kind, outcome, time=f"2026-11-{day:02d}T03:30:00+00:00", **more)


LIFE = [
    event(1, "retrain", "promoted", champion="1", challenger="1", challenger_error=(0.05, 0.04, 0.06)),
    event(2, "score", "scored", champion="1", rows=900, estimate=(0.055, 0.05, 0.06), drift={"age": 0.1}),
    event(3, "retrain", "alarm", champion="1", data="abc", reasons=("All has drifted.",), drift={"age": 3.0}),
    event(4, "score", "alarm", champion="1", data="", reasons=("Rows 1 to 50 are strange.",)),
    event(5, "acknowledge", "acknowledged", champion="1", data="abc", by="the owner"),
    event(
        5,
        "retrain",
        "promoted",
        champion="2",
        challenger="2",
        error=(0.09, 0.08, 0.1),
        challenger_error=(0.04, 0.03, 0.05),
    ),
    event(6, "retrain", "refused", champion="2", challenger="3", error=(0.04, 0.03, 0.05), reasons=("No better.",)),
    event(7, "rollback", "rolled back", champion="1", by="the owner"),
]


def test_events_come_back_as_they_were_recorded(tmp_path: Path) -> None:
    for one in LIFE:
        record(tmp_path, "digits", one)
    found = events(tmp_path, "digits")
    assert [json.loads(json.dumps(vars(one))) for one in found] == [json.loads(json.dumps(vars(one))) for one in LIFE]
    assert events(tmp_path, "other") == []


WRONG: list[dict[str, Any]] = [
    {"error": "5 %"}, {"error": [0.1]}, {"rows": "many"}, {"drift": [1]}, {"drift": {"age": "far"}}, {"reasons": 3},
    {"kind": ["score"]}, {"champion": {}}, {"time": 5}, {"time": None}, {"drifted_share": "half"},
]  # fmt: skip


@pytest.mark.slow
def test_a_time_without_a_zone_is_in_utc_and_stands_beside_others(tmp_path: Path) -> None:
    record(tmp_path, "digits", Event("score", "scored", estimate=(0.1, 0.0, 0.2), time="2026-11-01T03:30:00"))
    record(tmp_path, "digits", Event("score", "scored", estimate=(0.1, 0.0, 0.2), time="2026-11-01T03:30:00+00:00"))
    one, other = events(tmp_path, "digits")
    assert one.when == other.when
    assert "estimated" in pages.write(tmp_path, "digits", 0.2).read_text("utf-8")


def test_lines_that_no_release_wrote_are_left_out_and_later_keys_ignored(tmp_path: Path) -> None:
    record(tmp_path, "digits", LIFE[0])
    file = timeline.folder(tmp_path, "digits") / "timeline.jsonl"
    good = json.loads(file.read_text())
    lines = [
        json.dumps(good | {"colour": "blue"}),
        "{",
        "[]",
        "3",
        json.dumps({"kind": "score"}),
        json.dumps(good | {"time": "x"}),
        *(json.dumps(good | one) for one in WRONG),
    ]
    file.write_text("\n".join(lines))
    known = Event(**good | {key: tuple(value) for key, value in good.items() if isinstance(value, list)})
    assert events(tmp_path, "digits") == [known]


def test_who_was_champion_from_when_to_when() -> None:
    found = pages.terms(LIFE)
    assert [(one.version, one.since[8:10], one.until[8:10]) for one in found] == [
        ("1", "01", "05"),
        ("2", "05", "07"),
        ("1", "07", ""),
    ]
    first, second = (0.05, 0.04, 0.06), (0.04, 0.03, 0.05)
    assert [one.error for one in found] == [first, second, first]  # who comes back is as it was


def test_a_champion_that_was_in_shadow_has_the_error_that_it_was_judged_by() -> None:
    trial = event(8, "retrain", "in shadow", champion="1", challenger="4", challenger_error=(0.02, 0.01, 0.03))
    life = [*LIFE, trial, event(9, "promote", "promoted", champion="4", challenger="4")]
    assert pages.terms(life)[-1] == pages.Term("4", life[-1].time, "", "promoted", (0.02, 0.01, 0.03))


def test_the_error_beside_a_champion_is_its_own_and_not_that_of_the_one_before() -> None:
    heads, rows = pages.listing(LIFE)
    by_day = [(row[heads.index("champion")], row[heads.index("its error")]) for row in rows[::-1]]
    assert by_day[0] == ("1", "5.0 % (4 to 6)") and by_day[5] == ("2", "4.0 % (3 to 5)")
    assert rows[2][1] == "retrain: promoted, version 2, error 4.0 % (before: 9.0 %)"
    assert rows[1][1] == "retrain: refused, version 3" and by_day[6] == ("2", "4.0 % (3 to 5)")


@pytest.mark.slow
def test_the_picture_has_the_errors_of_both_champions_where_one_follows_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: dict[str, list[Any]] = {}
    monkeypatch.setattr(plotting, "_points", lambda _, values, name, *__: drawn.setdefault(name, values))
    plotting.errors_over_time(LIFE, "Errors")
    found = [(one.when.day, share[0]) for one, share in drawn["error on labelled rows"] if share is not None]
    assert found == [(1, 0.05), (5, 0.09), (5, 0.04), (6, 0.04)]


def test_the_picture_of_drift_shows_the_inputs_that_are_dark_most_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """One comparison with huge indices does not push the inputs that drift each time out of the picture."""
    monkeypatch.setattr(plotting, "MOST_COLUMNS", 1)
    monkeypatch.setattr(plotting, "drawn", lambda figure: figure)
    often, once = {"often": 3 * LARGE}, {"once": 99.0}
    life = [event(day, "score", "scored", drift=drift) for day, drift in enumerate((often, often, once), 1)]
    figure: Any = plotting.drift_over_time(life, LARGE, "Drift")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["often"]


def test_an_alias_that_was_moved_by_hand_is_neither_scored_nor_an_alarm() -> None:
    for outcome in ("scored", "alarm", "skip", "refused", "in shadow", "acknowledged"):
        (*_, before, now) = pages.terms([*LIFE, event(8, "score", outcome, champion="2")])
        assert (before.until, now.version, now.since) == (now.since, "2", event(8, "score", outcome).time)
        assert now.how == "by hand, or from elsewhere" and now.error == (0.04, 0.03, 0.05)


def test_an_alarm_is_acknowledged_by_who_has_seen_these_rows() -> None:
    heads, rows = pages.alarms(LIFE)
    assert [row[heads.index("acknowledged by")] for row in rows] == ["", "the owner, 2026-11-05 03:30"]
    assert pages.alarms(LIFE[:3])[1][0][heads.index("acknowledged by")] == "not yet"
    assert rows[1][heads.index("reasons")] == "All has drifted."


@pytest.mark.parametrize(
    ("life", "said"),
    [
        ([], "There is no champion yet."),
        (
            LIFE[:1],
            "Version 1 has been the champion since 2026-11-01 03:30, with an error of 5.0 % (4 to 6) on labelled rows.",
        ),
        (LIFE[:2], "On 900 unlabelled rows of 2026-11-02 03:30, its error is estimated at 5.5 % (5 to 6)."),
        (LIFE, "Version 1 has been the champion since 2026-11-07 03:30, with an error of 5.0 % (4 to 6)"),
    ],
)
def test_what_the_page_says_first(life: list[Event], said: str) -> None:
    assert said in pages.standing(life)


@pytest.mark.slow
def test_the_page_shows_all_and_escapes_what_it_is_given(tmp_path: Path) -> None:
    for one in [*LIFE, event(8, "score", "scored", champion="<b>1", drift={"<i>": 0.3}, drifted=("<i>",))]:
        record(tmp_path, "digits", one)
    text = pages.write(tmp_path, "digits", LARGE).read_text("utf-8")
    assert text.count("<img ") == 2 and "<script" not in text and "<b>" not in text
    for words in ("All has drifted.", "rollback: rolled back", "the owner", "No better.", "5.5 % (5 to 6)"):
        assert words in text
    assert pages.page("digits", [], LARGE).count("<img ") == 0


def test_the_latest_events_in_markdown_and_numbers_by_date(tmp_path: Path) -> None:
    short = pages.in_short("digits", LIFE, tmp_path / "timeline.html")
    assert (
        "| 2026-11-06 03:30 | retrain: refused, version 3 | 2 | 4.0 % (3 to 5) |" in short and "timeline.html" in short
    )
    found = pages.numbers(LIFE[5])
    assert found["error_percent"] == pytest.approx(9) and found["challenger_error_percent"] == pytest.approx(4)
    assert found["champion_version"] == 2 and found["alarm"] == 0 and pages.numbers(LIFE[2])["alarm"] == 1


def test_what_an_event_keeps_of_a_comparison() -> None:
    shifts = tuple(Shift(f"x{i}", psi=i / 100, p=0.0, drifted=i > 90) for i in range(100))
    still = Shift("labels", 0.0, 1.0, drifted=False)
    kept = drift_of(Drift(shifts, still, still, ()))
    assert len(kept["drift"]) == COLUMNS and next(iter(kept["drift"])) == "x99"
    assert set(kept["drifted"]) == {f"x{i}" for i in range(91, 100)} and kept["drifted_share"] == pytest.approx(0.09)
    assert drift_of(None) == {}
    assert share_of(Estimate(0.1, 0.05, 0.2, doubtful=True)) is None
    assert share_of(Estimate(0.1, 0.05, 0.2, doubtful=False)) == (0.1, 0.05, 0.2)
