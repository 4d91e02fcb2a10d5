"""Which rows are new since a model was trained, and which are gone: by times, by files, or by content. No MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError, files
from ldsvm.datasets.files import Part
from ldsvm.datasets.moments import moments
from ldsvm.datasets.words import told
from ldsvm.experiment.config import Config
from ldsvm.experiment.prepared import Source, load_source

Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Mark:
    """How far the data of a training went, as plain values.

    sha256: of the content. time: the latest one, where the rows have times. files: the digests of the files by name,
    where there are files and no times. rows: how many there were; None for what was kept before it was counted.
    """

    sha256: str
    time: float | str | None = None
    files: Mapping[str, str] | None = None
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """Data as they were at one moment. times (N,): of the wanted rows. parts: the files, where there are no times."""

    source: Source
    times: NDArray[Any] | None
    parts: Sequence[Part] | None


@dataclass(frozen=True)
class News:
    """What a reading has that a training had not. new: rows. before: rows that the training had, None if unknown.

    lost: so many of those are gone. late: rows that are no newer than the training's, yet were not there.
    """

    new: int
    before: int | None = None
    lost: int = 0
    late: int = 0


def read(config: Config) -> Reading:
    """Read an experiment's data, and what tells new rows from old ones.

    Raises DataError, in one sentence, where nothing would tell them; for times that have not come yet, after which all
    that follows would look old; and for files that were changed while they were read.
    """
    spec = config.dataset.files
    before = None if spec is None else files.listing(spec)
    source = load_source(config)
    times = source.data.train.times
    if times is not None:
        times = moments(times, f"dataset.time {config.dataset.time}", source.kept)
        _check_past(config, times, source.kept)
    parts = None if spec is None or times is not None else files.inventory(spec)
    if spec is not None and files.listing(spec) != before:
        raise DataError(f"{config.dataset.path} was changed while it was read; start again.")
    return Reading(source, times, parts)


def _check_past(config: Config, times: NDArray[Any], rows: NDArray[Any]) -> None:
    if times.dtype.kind != "M":
        return
    ahead = times > np.datetime64("now") + np.timedelta64(1, "D")  # a time without an offset may be of any zone
    if ahead.any():
        raise DataError(
            f"dataset.time {config.dataset.time} is in the future in {told('row', rows[ahead])}, such as "
            f"{times[ahead][0]}; allowed: times until now, so correct these rows or leave them out."
        )


def mark(reading: Reading) -> Mark:
    """Return how far the data go."""
    digest, n = reading.source.data.sha256, len(reading.source.data.train)
    if reading.times is not None:
        latest = reading.times.max()
        return Mark(digest, time=str(latest) if reading.times.dtype.kind == "M" else float(latest), rows=n)
    names = None if reading.parts is None else {part.name: part.sha256 for part in reading.parts}
    return Mark(digest, files=names, rows=n)


def fresh(config: Config, reading: Reading, then: Mark) -> Rows:
    """Return which of the wanted rows (N,) are newer than a training's data.

    Rows are newer than its latest time; without times, those of files that it did not have; of a data set of the
    catalogue all, when its content is another. Raises DataError for a file that was changed: which of its rows are new,
    nothing tells.
    """
    times, source = reading.times, reading.source
    if (times is None) != (then.time is None):
        raise DataError(
            f"dataset.time is {config.dataset.time or 'absent'}, which it was not when the champion was trained, so "
            "new rows cannot be told; allowed: as it was then, or another production.model."
        )
    if times is not None and then.time is not None:
        if (times.dtype.kind == "M") != isinstance(then.time, str):
            raise DataError(
                f"dataset.time {config.dataset.time} has {'dates' if times.dtype.kind == 'M' else 'numbers'}, which it "
                "had not when the champion was trained; allowed: as it was then, or another production.model."
            )
        newer: Rows = times > (np.datetime64(then.time) if isinstance(then.time, str) else then.time)
        return newer
    if reading.parts is not None and then.files is not None:
        return _in_new_files(reading.parts, source, then.files)
    return np.full(len(source.data.train), source.data.sha256 != then.sha256)


def _in_new_files(parts: Sequence[Part], source: Source, known: Mapping[str, str]) -> Rows:
    for part in parts:
        if part.name in known and known[part.name] != part.sha256:
            raise DataError(
                f"{part.name} was changed since the champion was trained on it, so its new rows cannot be told; "
                "allowed: new files beside the old ones, or a column of times as dataset.time."
            )
    read = set(known.values())  # under another name by now, or copied
    fresh = [part.name not in known and part.sha256 not in read for part in parts]
    new = np.repeat(fresh, [part.rows for part in parts])
    found: Rows = new[source.kept]
    return found


def news(reading: Reading, then: Mark, new: Rows) -> News:
    """Count what has come, and what has gone since. new: of `fresh`."""
    count, old = int(new.sum()), int((~new).sum())
    if then.rows is None or (then.time is None and then.files is None):
        return News(count)
    late = 0 if reading.times is None else max(0, old - then.rows)
    return News(count, then.rows, max(0, then.rows - old), late)
