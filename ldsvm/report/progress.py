"""Progress of the search and the training of a method, in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ldsvm.experiment.compare.outcome import percent
from ldsvm.experiment.search.trial import Trial


class Progress:
    """Reports the progress of a method on split i of n, from 0. tell: gets a text, and the share that is done."""

    def __init__(self, tell: Callable[[str, float | None], None], i: int, n: int) -> None:
        self._tell, self._i, self._n = tell, i, n
        self._where = f"split {i + 1} of {n}, " if n > 1 else ""
        self._standing = f"{self._where}first trials"
        self._first, self._since = -1, 0.0

    def trials(self, done: list[Trial], total: int) -> None:
        """Report how many trials are done, the best so far, and the time left at this pace."""
        whole = [t for t in done if t.resource is None] or done  # until then, those of the first rungs
        good = [t.valid_error for t in whole if t.valid_error is not None]
        best = f"best on validation {percent(min(good))}" if good else "none succeeded yet"
        if self._first < 0:  # these come from the journal or include starting processes; later ones give the pace
            self._first, self._since = len(done), time.monotonic()
        new, passed = len(done) - self._first, time.monotonic() - self._since
        left = f", {time_left(passed / new * (total - len(done)))}" if new and total > len(done) else ""
        self._standing = f"{self._where}trials {len(done)}/{total}, {best}{left}"
        self._tell(self._standing, (self._i + len(done) / (total + 1)) / self._n)  # the fit that is judged is one more

    def step(self, row: dict[str, Any]) -> None:
        """Report how far one fit is: what it does before it iterates, or its last iteration."""
        said = row.get("doing")
        if said is None:
            point = f"C={row['C']:g} " if "C" in row else ""
            error = row["valid_error"]  # None in a last fit to all rows
            said = f"{point}iteration {row['iteration']}" + ("" if error is None else f", validation {percent(error)}")
        self._tell(f"{self._standing}; {said}", None)


def time_left(seconds: float) -> str:
    """Return the time left, rounded, in seconds, minutes or hours.

    >>> time_left(40), time_left(180)
    ('about 40 s left', 'about 3 min left')
    """
    if seconds < 100:
        return f"about {max(1, round(seconds))} s left"
    return f"about {round(seconds / 60)} min left" if seconds < 6000 else f"about {seconds / 3600:.1f} h left"
