"""The finished trials of searches on disk, so that a search that was killed continues where it was."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ldsvm.atomic import append_line
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.stored_arrays import plain
from ldsvm.datasets.words import listing
from ldsvm.experiment.search.failure import Kind
from ldsvm.experiment.search.trial import Trial
from ldsvm.experiment.sources import check_code

CUT = b" cut"  # ends a line that a kill cut; no whole line ends so


@dataclass(frozen=True)
class _Line:
    """One line of the file. fit_s: the limit of time under which the trial ran, which is not part of its key."""

    key: str
    fit_s: float | None
    trial: Trial


class Journal:
    """Trials by their key, kept in memory and, with a path, in a file that is only ever appended to.

    path: the file, made when the first trial is added; None keeps nothing beyond this object. fit_s: seconds that one
    fit may take now, None without a limit. believe: False leaves out what the file holds, and still adds to it. Several
    processes may append to one file of a local disk at once; each sees what was there when it opened the file, and what
    it added itself. (A network file system must offer O_APPEND that is safe between hosts, which NFS does not: there
    let one host alone hold the journal.)

    A line is used if its trial succeeded, or failed by an error that the same fit would raise again. A trial that the
    time limit stopped is used only if fit_s is unchanged. Other failures, such as too little memory or a process that
    ended, may have been temporary and are tried again.

    A last line that a kill truncated is ignored silently, other damaged lines with a UserWarning; their trials are run
    again. Raises DataError when the file cannot be read or written.

    Examples
    --------
    >>> journal = Journal(None)
    >>> journal.add("a", Trial({"C": 1.0}, 0, valid_error=0.1 + 0.2))
    >>> journal.find("a").valid_error, journal.find("b")
    (0.30000000000000004, None)
    """

    def __init__(self, path: Path | None, fit_s: float | None = None, *, believe: bool = True) -> None:
        self._path, self._fit_s = path, fit_s
        self._lines: dict[str, _Line] = {}
        if believe:
            self._read()

    def find(self, key: str) -> Trial | None:
        """Return the trial of that key if there is one that can be used."""
        line = self._lines.get(key)
        return line.trial if line is not None and self._believed(line) else None

    def add(self, key: str, trial: Trial) -> None:
        """Keep a finished trial; once this returns it is on the disk."""
        self.extend({key: trial})

    def extend(self, trials: Mapping[str, Trial]) -> None:
        """Keep several finished trials, which wait for the disk only once."""
        lines = [_Line(key, self._fit_s, trial) for key, trial in trials.items()]
        texts = [json.dumps(asdict(line), default=plain).encode() for line in lines]
        self._append(b"\n".join(texts))
        for text in texts:
            self._take(text)

    def _believed(self, line: _Line) -> bool:
        failure = line.trial.failure
        if failure is None:
            return True
        if failure.kind is Kind.TIME_LIMIT:
            return line.fit_s == self._fit_s
        return failure.kind is Kind.FAULT

    def _take(self, line: bytes) -> bool:
        """Keep the trial of a line, unless it failed and the same one has succeeded; False if the line is damaged."""
        try:
            found = _format().validate_json(line, strict=True)
        except ValueError:
            return False
        if found.trial.failure is None or found.key not in self._lines or self._lines[found.key].trial.failure:
            self._lines[found.key] = found
        return True

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            *lines, _ = self._path.read_bytes().split(b"\n")  # what follows the last end of line is cut, or empty
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"{self._path}: the journal of trials cannot be read ({error}).") from error
        bad = [i for i, line in enumerate(lines) if line and not line.endswith(CUT) and not self._take(line)]
        if bad:
            what = f"{listing('row', bad)} cannot be read; their trials are run again"
            warnings.warn(f"{self._path}: {what}.", UserWarning, stacklevel=3)

    def _append(self, line: bytes) -> None:
        if self._path is None:
            return
        check_code()
        try:
            append_line(self._path, line, CUT)
        except OSError as error:
            raise DataError(f"{self._path}: the journal of trials cannot be written ({error}).") from error


@cache
def _format() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(_Line)
