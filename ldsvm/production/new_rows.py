"""Which rows are new since a model was trained, and which are gone: by times, by files, or by content. No MLflow."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError, files
from ldsvm.datasets.duplicates import content_keys
from ldsvm.datasets.files import Part
from ldsvm.datasets.timestamps import parse_times
from ldsvm.datasets.words import row_list
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import Source, load_source, plain_files

Rows = NDArray[np.bool_]
BINS = 100  # of the times of a training
KEPT = 200_000  # rows of a training whose keys are kept, eight bytes each


@dataclass(frozen=True)
class Mark:
    """Which data a model was trained on, as plain values, so that later rows can be distinguished from them.

    sha256: of the content. time: the latest one, if the rows have times. files: the digests of the files by name, if
    there are files and no times. rows: how many there were, equal files counted once. edges, counts: a histogram of the
    times, where counts[i] rows have times in (edges[i - 1], edges[i]]. keys: of the inputs of each row, where there are
    files and no times, and KEPT rows at most: see `_packed`. None if the model is of a release that did not record it.
    """

    sha256: str
    time: float | str | None = None
    files: Mapping[str, str] | None = None
    rows: int | None = None
    edges: Sequence[float | str] | None = None
    counts: Sequence[int] | None = None
    keys: str | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """Data as they were at one moment.

    times (N,): of the wanted rows. parts: the files; None for a data set of the catalogue, and for a single file with
    times.
    """

    source: Source
    times: NDArray[Any] | None
    parts: Sequence[Part] | None

    @property
    def copies(self) -> Rows:
        """Which of the wanted rows (N,) are of a file that is there twice, under another name too."""
        # A file of one row may be a text, whose folder is its label.
        names = [(part.sha256, Path(part.name).parent if part.rows == 1 else None) for part in self.parts or ()]
        first = {name: place for place, name in reversed([*enumerate(names)])}
        return self.of_files([first[name] < place for place, name in enumerate(names)])

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """A number for each of the wanted rows (N,), the same for the same inputs in every reading."""
        return content_keys(self.source.data.train)

    def by_file(self, places: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
        """Yield some of the wanted rows, and their numbers in a file, for each file of several; its name is empty else.

        places: of the wanted rows (n,), in order.
        """
        numbers, parts = self.source.kept[places], self.parts or ()
        starts = np.cumsum([0, *(part.rows for part in parts[:-1])])
        which = np.searchsorted(starts, numbers, side="right") - 1
        for place in np.unique(which):
            here = which == place
            yield parts[place].name if len(parts) > 1 else "", places[here], numbers[here] - starts[place]

    def of_files(self, wanted: Sequence[bool]) -> Rows:
        """Return which of the wanted rows (N,) are of these files; none where there are no parts."""
        if self.parts is None:
            return np.zeros(len(self.source.data.train), bool)
        found: Rows = np.repeat(np.array(wanted, bool), [part.rows for part in self.parts])[self.source.kept]
        return found


@dataclass(frozen=True)
class Changes:
    """How the data have changed since a training.

    new: number of new rows. before: number of rows of the training, None if unknown. lost: number of those that are
    gone. late: rows that were not there, though they are no newer than the training's. repeated: rows of new or changed
    files that equal known ones. beyond: the training's latest time, if all times are earlier now. by_file: whether rows
    of the training are recognised only by their file. With times, lost and late are lower bounds: within one bin of a
    mark they cancel.
    """

    new: int
    before: int | None = None
    lost: int = 0
    late: int = 0
    repeated: int = 0
    beyond: float | str | None = None
    by_file: bool = False


def read(config: Config) -> Reading:
    """Read an experiment's data, with what is needed to find new rows.

    Raises DataError for times in the future, after which all later rows would look old, and for files that were changed
    while they were read.
    """
    spec = plain_files(config)
    before = [] if spec is None else files.listing(spec)
    source = load_source(config, spec)
    times = source.data.train.times
    if times is not None:
        times = parse_times(times, f"dataset.time {config.dataset.time}", source.kept)
        _check_past(config, times, source.kept)
    parts = None
    if spec is not None and (times is None or len(before) > 1):  # a single one may be a matrix
        parts = files.inventory(spec)
    if spec is not None and files.listing(spec) != before:
        raise DataError(f"{config.dataset.path} was changed while it was being read; run again.")
    return Reading(source, times, parts)


def _check_past(config: Config, times: NDArray[Any], rows: NDArray[Any]) -> None:
    if times.dtype.kind != "M":
        return
    ahead = times > np.datetime64("now") + np.timedelta64(1, "D")  # a time without an offset may be of any zone
    if ahead.any():
        raise DataError(
            f"dataset.time {config.dataset.time} is in the future in {row_list(rows[ahead])}, such as "
            f"{times[ahead][0]}; correct or remove these rows."
        )


def mark(reading: Reading) -> Mark:
    """Return the mark of the data that were read."""
    digest, once = reading.source.data.sha256, ~reading.copies
    n = int(once.sum())
    if reading.times is not None:
        edges, counts = _bins(reading.times[once])
        return Mark(digest, time=edges[-1], rows=n, edges=edges, counts=counts)
    names = None if reading.parts is None else {part.name: part.sha256 for part in reading.parts}
    keys = None if names is None or len(once) > KEPT else _packed(reading.keys)
    return Mark(digest, files=names, rows=n, keys=keys)


def _packed(keys: NDArray[np.uint64]) -> str:
    """Return different keys in order, eight bytes each, as text (base 64)."""
    return b64encode(np.unique(keys).astype("<u8").tobytes()).decode()


def _unpacked(keys: str | None) -> NDArray[Any]:
    return np.frombuffer(b64decode(keys or ""), dtype="<u8")


def _bins(times: NDArray[Any]) -> tuple[list[float | str], list[int]]:
    """Return the upper edges of at most BINS bins with about equally many times each, and the count of each bin."""
    times = np.sort(times)
    edges = np.unique(times[-(-np.arange(1, BINS + 1) * len(times) // BINS) - 1])
    counts = np.diff(np.searchsorted(times, edges, side="right"), prepend=0)
    return [str(edge) if times.dtype.kind == "M" else float(edge) for edge in edges], counts.tolist()


def find_new(config: Config, reading: Reading, then: Mark) -> Rows:
    """Return which of the wanted rows (N,) are newer than a training's data.

    With times, rows after its latest time are new; without, rows of files that it did not have, or that were changed,
    unless their inputs equal those of a row that it had; of a data set of the catalogue all rows, when its content has
    changed. A file that is there twice counts once. Raises DataError for a file that was changed where the keys of its
    rows were not kept, since its new rows cannot be told from the old ones.
    """
    times, source = reading.times, reading.source
    if (times is None) != (then.time is None):
        raise DataError(
            f"dataset.time is {config.dataset.time or 'not set'}, but the champion was trained "
            f"{'without' if then.time is None else 'with'} it, so new rows cannot be told from old ones; set it as it "
            "was then, or choose another production.model."
        )
    if times is not None and then.time is not None:
        if (times.dtype.kind == "M") != isinstance(then.time, str):
            kinds = ("numbers", "dates")
            raise DataError(
                f"dataset.time {config.dataset.time} has {kinds[times.dtype.kind == 'M']}, but had "
                f"{kinds[times.dtype.kind != 'M']} when the champion was trained; give the times as they were then, or "
                "choose another production.model."
            )
        newer: Rows = (times > _as_times([then.time])) & ~reading.copies
        return newer
    if (reading.parts is None) != (then.files is None):
        what = [f"a data set of the catalogue ({config.dataset.name})", "files (dataset.path)"]
        raise DataError(
            f"The data are {what[then.files is None]}, but were {what[then.files is not None]} when the champion was "
            "trained, so new rows cannot be told from old ones; use what was used then, or choose another "
            "production.model."
        )
    if reading.parts is None or then.files is None:
        return np.full(len(source.data.train), source.data.sha256 != then.sha256)
    known, keys = _in_known_files(reading, then), reading.keys
    found: Rows = ~known & ~reading.copies & ~np.isin(keys, keys[known]) & ~np.isin(keys, _unpacked(then.keys))
    return found


def _in_known_files(reading: Reading, then: Mark) -> Rows:
    known, parts = then.files or {}, reading.parts or ()
    read = set(known.values())  # under another name by now, or copied
    for part in parts if then.keys is None else ():
        if part.name in known and known[part.name] != part.sha256:
            raise DataError(
                f"{part.name} has changed since the champion was trained on it, so its new rows cannot be told from "
                "old ones; restore it and put new rows into new files, or choose another production.model."
            )
    return reading.of_files([part.sha256 in read for part in parts])


def count_changes(reading: Reading, then: Mark, new: Rows) -> Changes:
    """Count the rows that came and went since the training `then`. new: of `find_new`."""
    count = int(new.sum())
    if reading.times is not None and then.time is not None:
        latest, once = _as_times([then.time]), ~reading.copies
        beyond = then.time if (reading.times < latest).all() else None
        repeated = int(((reading.times > latest) & ~new).sum())
        lost, late = (0, 0) if then.rows is None else _moved(then, reading.times[once & ~new])
        return Changes(count, then.rows, lost, late, repeated, beyond)
    if then.files is None:
        return Changes(count)
    known, keys = _in_known_files(reading, then), _unpacked(then.keys)
    left = int(((known | np.isin(reading.keys, keys)) & ~reading.copies).sum())
    lost = max((then.rows or 0) - left, int((~np.isin(keys, reading.keys)).sum()))
    by_file = then.keys is None and not known.all()
    return Changes(count, then.rows, lost, repeated=int((~known & ~new).sum()), by_file=by_file)


def _moved(then: Mark, old: NDArray[Any]) -> tuple[int, int]:
    """Return how many rows are gone, and how many came late, given the times (n,) that are not new."""
    if then.edges is None or then.counts is None:  # a mark of an older release: only the difference is known
        change = np.array([len(old) - (then.rows or 0)])
    else:
        edges = _as_times(then.edges)
        change = np.bincount(np.searchsorted(edges, old), minlength=len(edges)) - np.array(then.counts)
    return int(-change[change < 0].sum()), int(change[change > 0].sum())


def _as_times(times: Sequence[float | str]) -> NDArray[Any]:
    return np.array(times, "datetime64" if isinstance(times[0], str) else float)
