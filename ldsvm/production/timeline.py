"""What happened to a production model, one line for each event, in RUNS/registry/MODEL/timeline.jsonl. No framework."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ldsvm.atomic import alone, append_line
from ldsvm.experiment.compare.judge import Score
from ldsvm.production.drift import Drift
from ldsvm.production.estimate import Estimate

Kind = Literal["retrain", "score", "rollback", "promote", "acknowledge"]
Share = tuple[float, float, float]  # a share of rows, and the ends of its 95 % interval
COLUMNS = 30  # inputs whose drift an event keeps, the most drifted ones


@dataclass(frozen=True)
class Event:
    """One event in the life of a model.

    outcome: one word, such as promoted, refused, skip, alarm, scored. champion: number of the version in use
    afterwards. challenger: number of the version that was trained. rows: new or scored ones. error: the champion's on
    labelled rows, challenger_error: the challenger's on the same rows; estimate: of the champion's error without
    labels, None where it is doubtful. drift: stability index by column, of the COLUMNS that moved most; drifted: those
    that count as drifted; drifted_share: of all columns. reasons: of a verdict or an alarm. data: digest of the rows.
    by: who acknowledged or rolled back. run: MLflow's run. time: in UTC, as ISO 8601.
    """

    kind: Kind
    outcome: str
    sentence: str = ""
    champion: str = ""
    challenger: str = ""
    rows: int = 0
    error: Share | None = None
    challenger_error: Share | None = None
    estimate: Share | None = None
    drift: Mapping[str, float] = field(default_factory=dict)
    drifted: tuple[str, ...] = ()
    drifted_share: float | None = None
    reasons: tuple[str, ...] = ()
    data: str = ""
    by: str = ""
    run: str = ""
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat("T", "seconds"))

    @property
    def when(self) -> datetime:
        """The time of the event; UTC where the file does not say."""
        found = datetime.fromisoformat(self.time)
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    @property
    def champion_error(self) -> Share | None:
        """The error of the version that is champion afterwards; `error` is of the one before a promotion."""
        return self.challenger_error if self.challenger == self.champion else self.error


def share_of(found: Score | Estimate | None) -> Share | None:
    """Return the error of a score or an estimate with its interval; None for none and for a doubtful estimate."""
    if isinstance(found, Score):
        return found.error, found.error_low, found.error_high
    if found is None or found.doubtful:
        return None
    return found.error, found.low, found.high


def drift_of(drift: Drift | None) -> dict[str, Any]:
    """Return what an event keeps of a comparison: its drift, drifted and drifted_share."""
    if drift is None:
        return {}
    worst = sorted((*drift.inputs, drift.labels, drift.latent), key=lambda shift: -shift.psi)[:COLUMNS]
    moved = {shift.name for shift in (*drift.inputs, *drift.gaps, drift.labels, drift.latent) if shift.drifted}
    return {
        "drift": {shift.name: round(shift.psi, 4) for shift in worst},
        "drifted": tuple(shift.name for shift in worst if shift.name in moved),
        "drifted_share": drift.share,
    }


def user() -> str:
    """Return the name of the user that runs this process, "" where the system knows none."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""


def folder(runs: Path, model: str) -> Path:
    """Return the folder of a model's events and of the page that shows them."""
    return runs / "registry" / model


def record(runs: Path, model: str, event: Event) -> None:
    """Append an event."""
    place = folder(runs, model)
    with alone(place / "timeline"):
        append_line(place / "timeline.jsonl", json.dumps(asdict(event)).encode())


def events(runs: Path, model: str) -> list[Event]:
    """Return all events, the oldest first.

    What a full disk cut off, a person wrote wrongly or a later release added is left out.
    """
    from pydantic import TypeAdapter

    reader, found = TypeAdapter(Event), list[Event]()
    with suppress(FileNotFoundError):
        text = (folder(runs, model) / "timeline.jsonl").read_text("utf-8", errors="replace")
        for line in text.splitlines():
            with suppress(ValueError, OverflowError):  # pydantic's error is a ValueError
                event = reader.validate_json(line)
                event.when.timestamp()
                found.append(event)
    return found
