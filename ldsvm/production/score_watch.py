"""Whether rows that are scored look like those of the model's training: each chunk of them, and all together.

The counts of a chunk are stored with it, so that a scoring that was stopped goes on without looking at its rows again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.atomic import replacing
from ldsvm.datasets import DataError
from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production.drift import Drift, Profile, Seen, compare, count
from ldsvm.production.estimate import Estimate, Expected, Held, estimate, expected, prior_of
from ldsvm.production.retraining import Alarm, countable

SUFFIX = ".drift.json"  # after the output's name
OWN = {"model", "rows", "sentences", "alarms", "drift"}  # keys of such a file


def drift_file(output: Path) -> Path:
    """Return where the comparison of an output's rows is written; raise DataError if another file is there."""
    file = output.with_name(output.name + SUFFIX)
    if file.exists() and not _is_ours(file):
        raise DataError(
            f"{file} exists and is not a comparison of scored rows, so it is not overwritten; choose another output."
        )
    return file


def _is_ours(file: Path) -> bool:
    try:
        return set(json.loads(file.read_text("utf-8"))) >= OWN
    except (OSError, ValueError, TypeError):
        return False


@dataclass(frozen=True)
class Chunk:
    """What is kept of a chunk of rows. expected: of errors, None where the model has no probabilities."""

    seen: Seen
    expected: Expected | None

    def as_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str | bytes) -> Chunk:
        """Return what `as_json` gave."""
        found = json.loads(text)
        return cls(Seen(**found["seen"]), Expected(**found["expected"]) if found["expected"] else None)

    def __add__(self, other: Chunk) -> Chunk:
        """Return both together."""
        both = self.expected and other.expected and self.expected + other.expected
        return Chunk(self.seen + other.seen, both)


@dataclass
class Watch:
    """Compares scored rows with a training, chunk by chunk, in memory that does not grow with the rows.

    then: of the training. classes (K,): of the model. held: of the rows that judged it, None where nothing is
    estimated. stop: whether an alarm ends the scoring. tell: called with the sentence of the first alarm, when it is
    found. every: what is kept of the rows so far. alarms: the rows of each chunk that raised one, and why.
    """

    then: Profile
    classes: NDArray[Any]
    rules: DriftConfig
    held: Held | None = None
    stop: bool = False
    tell: Callable[[str], None] = lambda sentence: None
    every: Chunk | None = None
    alarms: list[dict[str, Any]] = field(default_factory=list)

    def count(
        self, rows: Any, features: Any, answers: NDArray[Any], Z: NDArray[Any], P: NDArray[Any] | None
    ) -> Chunk:  # fmt: skip
        """Count a chunk: rows as they came, and after the feature steps, their classes (n,), coordinates Z (n, L) and
        probabilities P (n, K).
        """
        known = rows if self.then.gaps else countable(rows, lambda: features)
        found = None
        if P is not None and self.held is not None:
            found = expected(P, np.searchsorted(self.classes, answers), prior_of(self.then, self.classes))
        return Chunk(count(self.then, known, answers, Z), found)

    def take(self, chunk: Chunk) -> None:
        """Add the next chunk. Raises Alarm where it does not look like the training and `stop` says so."""
        first = 1 + self.rows
        self.every = chunk if self.every is None else self.every + chunk
        if not (reasons := _reasons(compare(self.then, chunk.seen, self.rules, answers=True), self.rules)):
            return
        where = f"rows {first:,} to {self.rows:,}"
        self.alarms.append({"rows": where, "reasons": reasons})
        if self.stop:
            raise Alarm(
                f"{where} do not look like the training data, so the scoring stopped there and wrote no output: "
                f"{' '.join(reasons)} Look at the data; to score them anyway, set production.score.drift=warn."
            )
        if len(self.alarms) == 1:
            self.tell(
                f"{where} do not look like the training data: {' '.join(reasons)} "
                "They are scored anyway; production.score.drift=stop would stop here."
            )

    @property
    def rows(self) -> int:
        """How many rows there were so far."""
        return self.every.seen.rows if self.every else 0

    def report(self) -> Report:
        """Return what is known of all rows so far, of which there is one at least."""
        assert self.every is not None
        drift, error = compare(self.then, self.every.seen, self.rules, answers=True), None
        if self.every.expected is not None and self.held is not None:
            error = estimate(self.every.expected, drift, self.rules, self.held)
        return Report(self.rows, drift, error, tuple(self.alarms))


@dataclass(frozen=True)
class Report:
    """How scored rows differ from the training. estimate: of their error, None where nothing is estimated."""

    rows: int
    drift: Drift
    estimate: Estimate | None
    alarms: tuple[dict[str, Any], ...]

    @property
    def sentences(self) -> list[str]:
        """What has drifted over all rows, how many chunks raised an alarm, and the error that is estimated."""
        found = self.drift.sentences
        if len(self.alarms) > 1:
            where = self.alarms[0]["rows"]
            found.append(f"{len(self.alarms)} chunks do not look like the training data, the first of them {where}.")
        return [*found, *([self.estimate.sentence] if self.estimate else [])]

    @property
    def numbers(self) -> dict[str, float]:
        """What the tracking store shows over time."""
        found = {
            "drifted_inputs_percent": 100 * self.drift.share,
            "class_stability_index": self.drift.labels.psi,
            "latent_stability_index": self.drift.latent.psi,
            "alarmed_chunks": float(len(self.alarms)),
        }
        if self.estimate is not None:
            found |= self.estimate.numbers("estimated_error")
            found["estimate_is_doubtful"] = float(self.estimate.doubtful)
        return found

    def as_json(self, facts: Mapping[str, Any]) -> str:
        """Return all of it as the text of a JSON file. facts: such as the model."""
        return json.dumps({**facts, "sentences": self.sentences, **asdict(self)}, indent=1)


def write(text: str, file: Path) -> None:
    """Write the file beside the output, whole or not at all."""
    try:
        with replacing(file) as new:
            new.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{file}: cannot be written ({error.strerror or error}).") from error


def _reasons(drift: Drift, rules: DriftConfig) -> list[str]:
    """Return why rows raise an alarm: most of their inputs have drifted, or the model's view of them has."""
    seen = (drift.labels, "The predicted classes have"), (drift.latent, "Distances in the latent space have")
    moved = [f"{what} drifted (stability index {shift.psi:.2f})." for shift, what in seen if shift.drifted]
    return [*([beyond] if (beyond := drift.beyond(rules)) else []), *moved]
