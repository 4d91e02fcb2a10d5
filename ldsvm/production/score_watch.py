"""Whether rows that are scored look like those of the model's training: each chunk of them, and all together.

The counts of a chunk travel with it, so that a scoring that was stopped goes on without looking at its rows again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ldsvm.atomic import replacing
from ldsvm.datasets import DataError
from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production.drift import Drift, Profile, Seen, compare, count
from ldsvm.production.retraining import Alarm, countable

SUFFIX = ".drift.json"  # after the output's name
OWN = {"model", "rows", "sentences", "alarms", "drift"}  # keys of such a file


def drift_file(output: Path) -> Path:
    """Return where the comparison of an output's rows is written; raise DataError for a file that is none of ours."""
    file = output.with_name(output.name + SUFFIX)
    if file.exists() and not _is_ours(file):
        raise DataError(f"{file}: exists and is no comparison of scored rows, so it is kept; choose another output.")
    return file


def _is_ours(file: Path) -> bool:
    try:
        return set(json.loads(file.read_text("utf-8"))) >= OWN
    except (OSError, ValueError, TypeError):
        return False


@dataclass
class Watch:
    """Compares scored rows with a training, chunk by chunk, in memory that does not grow with the rows.

    then: of the training. stop: whether an alarm ends the scoring. tell: called with the sentence of the first alarm,
    when it is found. seen: the counts so far. alarms: the rows of each chunk that raised one, and why.
    """

    then: Profile
    rules: DriftConfig
    stop: bool = False
    tell: Callable[[str], None] = lambda sentence: None
    seen: Seen | None = None
    alarms: list[dict[str, Any]] = field(default_factory=list)

    def count(self, rows: Any, features: Any, answers: NDArray[Any], Z: NDArray[Any]) -> Seen:
        """Count a chunk: rows as they came, after the feature steps, their classes (n,) and coordinates Z (n, L)."""
        known = rows if self.then.gaps else countable(rows, lambda: features)
        return count(self.then, known, answers, Z)

    def take(self, chunk: Seen) -> None:
        """Add the next chunk. Raises Alarm where it does not look like the training and `stop` says so."""
        first = 1 + (self.seen.rows if self.seen else 0)
        self.seen = chunk if self.seen is None else self.seen + chunk
        if not (reasons := _reasons(compare(self.then, chunk, self.rules, answers=True), self.rules)):
            return
        where = f"rows {first:,} to {self.seen.rows:,}"
        self.alarms.append({"rows": where, "reasons": reasons})
        if self.stop:
            raise Alarm(
                f"{where} do not look like the training, so nothing was scored beyond them and no output was written: "
                f"{' '.join(reasons)} Look at the data; to score them all the same, set production.score.drift=warn."
            )
        if len(self.alarms) == 1:
            self.tell(f"{where} do not look like the training: {' '.join(reasons)}")

    @property
    def drift(self) -> Drift | None:
        """How all rows so far moved; None before the first."""
        return None if self.seen is None else compare(self.then, self.seen, self.rules, answers=True)

    @property
    def sentences(self) -> list[str]:
        """What has drifted over all rows, and how many chunks raised an alarm."""
        if self.drift is None:
            return []
        found = self.drift.sentences
        if len(self.alarms) > 1:
            where = self.alarms[0]["rows"]
            found.append(f"{len(self.alarms)} chunks do not look like the training, the first of them {where}.")
        return found

    @property
    def numbers(self) -> dict[str, float]:
        """What the tracking store shows over time."""
        if (drift := self.drift) is None:
            return {}
        return {
            "drifted_inputs_percent": 100 * drift.share,
            "class_stability_index": drift.labels.psi,
            "latent_stability_index": drift.latent.psi,
            "alarmed_chunks": len(self.alarms),
        }

    def as_json(self, facts: Mapping[str, Any]) -> str:
        """Return all that was found, as the text of a JSON file. facts: such as the model."""
        rows = 0 if self.seen is None else self.seen.rows
        drift = None if self.drift is None else asdict(self.drift)
        found = {**facts, "rows": rows, "sentences": self.sentences, "alarms": self.alarms, "drift": drift}
        return json.dumps(found, indent=1)

    def write(self, file: Path, facts: Mapping[str, Any]) -> None:
        """Write the file beside the output, whole or not at all."""
        try:
            with replacing(file) as new:
                new.write_text(self.as_json(facts), encoding="utf-8")
        except OSError as error:
            raise DataError(f"{file}: cannot be written ({error.strerror or error}).") from error


def _reasons(drift: Drift, rules: DriftConfig) -> list[str]:
    """Return why rows raise an alarm: most of their inputs have drifted, or the model's view of them has."""
    seen = (drift.labels, "The predicted classes have"), (drift.latent, "Distances in the latent space have")
    moved = [f"{what} drifted (stability index {shift.psi:.2f})." for shift, what in seen if shift.drifted]
    return [*([beyond] if (beyond := drift.beyond(rules)) else []), *moved]
