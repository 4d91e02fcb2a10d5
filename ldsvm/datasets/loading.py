"""Load any data set by its name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ldsvm.datasets import digits, local, mnist, newsgroups, spirals
from ldsvm.datasets.catalog import catalogue
from ldsvm.datasets.dataset import DataError, Dataset, Places
from ldsvm.datasets.entry import Entry
from ldsvm.datasets.words import one_of


class Source(Protocol):
    """What the module of a data set offers: the data, and the raw files they are read from."""

    def load(self, entry: Entry, places: Places, /) -> Dataset:
        """Return the data, checked against the catalogue."""

    def items(self, entry: Entry, places: Places, /) -> Sequence[local.Item]:
        """Return the raw files, each there or not."""


# A name needs a module here and an entry in the catalogue.
SOURCES: Mapping[str, Source] = {
    "digits": digits,
    "fashion-mnist": mnist,
    "mnist": mnist,
    "newsgroups": newsgroups,
    "spirals": spirals,
}
GENERATED = {"spirals": spirals.load}  # these take options


def load(
    name: str,
    *,
    cache_dir: str | os.PathLike[str],
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    entries: Mapping[str, Entry] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Dataset:
    """Load a data set by name, pixels scaled to [0, 1], checked against the catalogue's SHA-256.

    Parameters
    ----------
    name : "digits", "fashion-mnist", "mnist", "newsgroups" or "spirals"
    cache_dir : folder for prepared (Parquet) data, created when needed; never a folder of raw files
    data_home : folder of raw files; None means the environment variable ``LDSVM_DATA_HOME``, where it is set
    download : whether a source on the network may be used when the raw files are not there
    entries : the catalogue to check against; None means the project's own
    options : of generated data, see `ldsvm.datasets.spirals.make`; the others take none

    Returns
    -------
    Dataset
        X (N, D) float32 with labels y (N,) int64, or X (N,) texts with labels str (newsgroups), and the official
        test set X_test, y_test (M rows) where there is one.

    Raises
    ------
    DataError
        For an unknown name or option, data that cannot be found, a damaged raw file, a cache folder that cannot be
        written, and missing optional packages; each time with one sentence that says what to do.

    Examples
    --------
    >>> data = load("digits", cache_dir="data/prepared")
    >>> data.X.shape, float(data.X.max()), data.image_shape
    ((1797, 64), 1.0, (8, 8))
    >>> load("spirals", cache_dir="data/prepared", options={"n_classes": 3, "n_samples": 40}).X.shape
    (120, 2)
    """
    entry = find(name, entries)
    places = local.places(cache_dir, data_home, download)
    if name in GENERATED:
        return GENERATED[name](entry, places, options)
    if options:
        raise DataError(
            f"{name} takes no options, but {next(iter(options))!r} was given: only {', '.join(GENERATED)} has some."
        )
    return SOURCES[name].load(entry, places)


def find(name: str, entries: Mapping[str, Entry] | None = None) -> Entry:
    """Return the catalogue's entry of this name; raise `DataError` when there is none."""
    known = catalogue() if entries is None else entries
    if name not in SOURCES or name not in known:
        raise DataError(f"name={name!r} is not a known data set: {one_of(name, sorted(SOURCES))}")
    return known[name]
