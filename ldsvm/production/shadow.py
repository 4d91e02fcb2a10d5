"""A challenger in shadow: it answers the rows that the champion scores, and only whether both agree is kept.

The counts of a chunk are stored with it, as in `score_watch`, so that a scoring that was stopped goes on without
asking the challenger again. Rows are counted by the content of the file they are in, so that a file that is scored
again counts once. No MLflow.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError
from ldsvm.datasets.read_tables import reader_of
from ldsvm.datasets.words import listing, shown
from ldsvm.experiment.compare.judge import wilson
from ldsvm.experiment.compare.outcome import percent

# By the digest of a file, and by the class that the champion gives: how many rows, and for how many of them both agree.
Counts = dict[str, dict[str, list[int]]]
LEAST = 20  # rows of a class of which it is said that both agree least


@dataclass(frozen=True)
class Agreement:
    """For how many rows two models give the same class. classes: by that of the champion, rows and the same."""

    classes: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, counts: Counts) -> Agreement:
        """Return what the counts of some files say together."""
        found: dict[str, tuple[int, int]] = {}
        for by_class in counts.values():
            for name, (rows, same) in by_class.items():
                before = found.get(name, (0, 0))
                found[name] = before[0] + rows, before[1] + same
        return cls(dict(sorted(found.items())))

    @property
    def rows(self) -> int:
        """How many rows were compared."""
        return sum(rows for rows, _ in self.classes.values())

    @property
    def same(self) -> int:
        """For how many both give the same class."""
        return sum(same for _, same in self.classes.values())

    @property
    def share(self) -> float:
        """The part of the rows for which both give the same class; of one row at least."""
        return self.same / self.rows

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share."""
        return wilson(self.same, self.rows)

    @property
    def text(self) -> str:
        """The share in words, and for which class it is least."""
        low, high = self.interval
        said = f"{percent(self.share)} of {self.rows:,} rows (95 % interval {percent(low)} to {percent(high)})"
        known = {name: same / rows for name, (rows, same) in self.classes.items() if rows >= LEAST}
        if len(self.classes) > 2 and known and min(known.values()) < self.share:
            worst = min(known, key=lambda name: known[name])
            said += f", least for class {shown(worst)}: {percent(known[worst])} of {self.classes[worst][0]:,}"
        return said

    @property
    def numbers(self) -> dict[str, float]:
        """What the tracking store shows over time."""
        low, high = self.interval
        found = {"rows": float(self.rows), "agreement_percent": 100 * self.share}
        found |= {"agreement_low_percent": 100 * low, "agreement_high_percent": 100 * high}
        return {f"shadow_{key}": value for key, value in found.items()}


@dataclass
class Shadow:
    """Lets a challenger score the rows of each chunk. If it fails, it is not used any more; the scoring goes on.

    name: of the version. pipeline: from raw rows to classes. tell: called with the sentence of a failure. files: the
    digest of the content of each file; `scoring.score` sets it. counts: of the rows so far. failure: why it is asked no
    more. seconds: that it took.
    """

    name: str
    pipeline: Any
    tell: Callable[[str], None] = lambda sentence: None
    files: Mapping[Path, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=dict)
    failure: str | None = None
    seconds: float = 0.0

    def look(
        self, parts: Sequence[tuple[Path, int]], rows: Any, said: NDArray[Any], roles: Mapping[str, str]
    ) -> str | None:
        """Compare its classes with those of the champion, `said` (n,), and return the chunk's counts as text.

        parts: the files of the rows, in order, and how many are of each. rows: as `scoring_rows.inputs` gives them.
        roles: of the columns of a mixed table. Returns None where it fails, now or before.
        """
        if self.failure is not None:
            return None
        begin = time.perf_counter()
        try:
            same = np.asarray(self._answers(rows, roles)) == said
            return json.dumps({"shadow": self.name, "files": _counted(self._by_digest(parts), said, same)})
        except Exception as error:  # whatever it is: the champion answers
            self.failure = f"{self.name}, in shadow, could not answer ({type(error).__name__}: {error})"
            self.tell(f"{self.failure}; the champion's answers are not affected")
            return None
        finally:
            self.seconds += time.perf_counter() - begin

    def is_of(self, text: bytes | None) -> bool:
        """Return whether the text is what `look` of this challenger has returned."""
        return text is not None and json.loads(text)["shadow"] == self.name

    def take(self, text: bytes) -> None:
        """Add the counts of a chunk."""
        for digest, by_class in json.loads(text)["files"].items():
            found = self.counts.setdefault(digest, {})
            for name, (rows, same) in by_class.items():
                before = found.get(name, [0, 0])
                found[name] = [before[0] + rows, before[1] + same]

    def _answers(self, rows: Any, roles: Mapping[str, str]) -> Any:
        reader = reader_of(self.pipeline)
        if (dict(reader.roles) if reader else {}) != dict(roles):
            raise DataError("it reads columns in other roles than the champion")
        names = getattr(self.pipeline, "feature_names_in_", None)
        if names is not None and hasattr(rows, "columns"):
            if absent := [str(name) for name in names if name not in rows.columns]:
                raise DataError(f"{listing('column', absent)} not among those that the champion reads")
            rows = rows[list(names)]
        return (self.pipeline[1:] if reader else self.pipeline).predict(rows)  # the first step is done

    def _by_digest(self, parts: Iterable[tuple[Path, int]]) -> list[tuple[str, int]]:
        return [(self.files[file], rows) for file, rows in parts]


def _counted(parts: Sequence[tuple[str, int]], said: NDArray[Any], same: NDArray[np.bool_]) -> Counts:
    found: Counts = {}
    start = 0
    for digest, n in parts:
        here = slice(start, start := start + n)
        names, places = np.unique(said[here], return_inverse=True)
        rows, agreed = (np.bincount(places, weights, len(names)).astype(int) for weights in (None, same[here]))
        by_class = found.setdefault(digest, {})
        for name, one, other in zip(names.tolist(), rows.tolist(), agreed.tolist(), strict=True):
            before = by_class.get(str(name), [0, 0])
            by_class[str(name)] = [before[0] + one, before[1] + other]
    return found
