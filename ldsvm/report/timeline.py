"""The life of a production model on one page, RUNS/registry/MODEL/timeline.html, and as metrics by date in MLflow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldsvm.atomic import replacing
from ldsvm.experiment.compare.outcome import percent
from ldsvm.production import timeline
from ldsvm.production.timeline import Event, Share
from ldsvm.report import html
from ldsvm.report.marks import escape
from ldsvm.report.plotting.timeline import drift_over_time, errors_over_time
from ldsvm.report.tables import markdown

MOST = 200  # events that the page lists, the latest
REASONS = 3  # of an event, the first
MOVES = ("promoted", "rolled back")  # outcomes; with others the champion was moved by something that left no event
SHORT = 10  # events that Prefect's page lists
Table = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Term:
    """A version while it was the champion. until: when another took its place, "" while it is in use."""

    version: str
    since: str
    until: str
    how: str
    error: Share | None


def terms(events: Iterable[Event]) -> list[Term]:
    """Return who was champion from when to when, the oldest first."""
    found: list[Term] = []
    judged: dict[str, Share] = {}  # by version, also of those that were in shadow first
    for event in events:
        if event.challenger_error is not None:
            judged[event.challenger] = event.challenger_error
        if not event.champion or (found and found[-1].version == event.champion):
            continue
        if found:
            found[-1] = Term(**{**vars(found[-1]), "until": event.time})
        how = event.outcome if event.outcome in MOVES else "by hand, or from elsewhere"
        found.append(Term(event.champion, event.time, "", how, judged.get(event.champion, event.error)))
    return found


def write(runs: Path, model: str, large: float) -> Path:
    """Write the page of a model anew and return its path. large: the stability index that counts as drift."""
    found = timeline.events(runs, model)
    file = timeline.folder(runs, model) / "timeline.html"
    with replacing(file) as new:
        new.write_text(page(model, found, large), encoding="utf-8")
    return file


def page(model: str, found: Sequence[Event], large: float) -> str:
    """Return the page: who is champion, errors and drift over time, alarms, and all events."""
    return html.render(
        "timeline.html",
        title=f"{model} in production",
        standing=standing(found),
        pictures=_pictures(model, found, large),
        champions=champions(found),
        alarms=alarms(found),
        events=listing(found[-MOST:]),
        hidden=max(0, len(found) - MOST),
    )


def standing(found: Sequence[Event]) -> str:
    """Return in words who is champion since when, and what is known of its error."""
    known = terms(found)
    if not known:
        return "There is no champion yet."
    now = known[-1]
    said = f"Version {now.version} has been the champion since {_day(now.since)}"
    said += "." if now.error is None else f", with an error of {_interval(now.error)} on labelled rows."
    guesses = [one for one in found if one.kind == "score" and one.estimate and one.champion == now.version]
    if guesses:
        last = guesses[-1]
        said += (
            f" On {last.rows:,} unlabelled rows of {_day(last.time)}, its error is estimated at "
            f"{_interval(last.estimate)}."
        )
    return said


def champions(found: Sequence[Event]) -> Table:
    """Return the table of all champions, the latest first."""
    rows = [
        [f"version {one.version}", _day(one.since), _day(one.until) or "now", one.how, _interval(one.error)]
        for one in reversed(terms(found))
    ]
    return ["champion", "since", "until", "how", "error on its holdout"], rows


def alarms(found: Sequence[Event]) -> Table:
    """Return the table of alarms, the latest first, with who acknowledged the data of each."""
    rows = []
    for place, event in enumerate(found):
        if event.outcome == "alarm":
            later = (one for one in found[place:] if one.kind == "acknowledge")
            seen = next((one for one in later if one.data and one.data == event.data), None)
            pending = "not yet" if event.data else ""  # alarms of a scoring are never acknowledged
            who = pending if seen is None else f"{seen.by or 'unknown'}, {_day(seen.time)}"
            rows.append([_day(event.time), event.kind, _why(event), who])
    return ["time", "run", "reasons", "acknowledged by"], rows[::-1]


def listing(found: Sequence[Event]) -> Table:
    """Return the table of events, the latest first."""
    heads = ["time", "what", "champion", "its error", "estimated", "drifted", "why"]
    rows = [
        [
            _day(one.time), _what(one), one.champion, _interval(one.champion_error), _interval(one.estimate),
            "" if one.drifted_share is None else f"{100 * one.drifted_share:.0f} %", _why(one),
        ]
        for one in reversed(found)
    ]  # fmt: skip
    return heads, rows


def _what(event: Event) -> str:
    said = f"{event.kind}: {event.outcome}"
    if event.challenger:
        said += f", version {event.challenger}"
    if event.challenger_error is not None:
        said += f", error {percent(event.challenger_error[0])}"
    if event.error != event.champion_error and event.error is not None:
        said += f" (before: {percent(event.error[0])})"
    return f"{said}, {event.rows:,} rows" if event.rows else said


def _why(event: Event) -> str:
    """Return the first reasons; MLflow's run has all."""
    more = f" And {len(event.reasons) - REASONS} more." if len(event.reasons) > REASONS else ""
    return " ".join(event.reasons[:REASONS]) + more if event.reasons else event.sentence


def in_short(model: str, found: Sequence[Event], file: Path) -> str:
    """Return the latest events as Markdown."""
    heads, rows = listing(found[-SHORT:])
    parts = [f"# {model} in production", standing(found), markdown(heads, rows), f"The page: {escape(str(file))}"]
    return "\n\n".join(parts) + "\n"


def numbers(event: Event) -> dict[str, float | None]:
    """Return what MLflow draws over the dates."""
    shares = {"error": event.error, "estimated_error": event.estimate, "challenger_error": event.challenger_error}
    found: dict[str, float | None] = {
        f"{name}_percent": None if share is None else 100 * share[0] for name, share in shares.items()
    }
    found["drifted_inputs_percent"] = None if event.drifted_share is None else 100 * event.drifted_share
    found["champion_version"] = float(event.champion) if event.champion.isdecimal() else None
    found["alarm"] = float(event.outcome == "alarm")
    return found


def _pictures(model: str, found: Sequence[Event], large: float) -> list[html.Picture]:
    pictures = []
    if any(event.champion_error or event.estimate for event in found):
        drawing = errors_over_time(found, f"Errors of {model}")
        alt = f"Errors of the champion of {model} over time; the table of events has the numbers."
        caption = (
            "The champion's error on labelled rows, and its estimate on unlabelled rows, with 95 % intervals. Dotted "
            "lines: another version became the champion. Nothing is estimated for rows unlike the training data."
        )
        pictures.append(html.Picture("errors", drawing, alt, caption, wide=True))
    compared = [event for event in found if event.drift]
    if compared:
        drawing = drift_over_time(compared, large, f"Drift of the inputs of {model}")
        alt = f"Stability index of each input of {model} over time; darker means more drift."
        caption = "How much each input has moved since the champion was trained. A cross: it counts as drifted."
        pictures.append(html.Picture("drift", drawing, alt, caption, wide=True))
    return pictures


def _day(moment: str) -> str:
    return moment[:16].replace("T", " ")


def _interval(share: Share | None) -> str:
    return "" if share is None else f"{percent(share[0])} ({100 * share[1]:.2g} to {100 * share[2]:.2g})"
