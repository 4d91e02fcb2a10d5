"""The one way in: a name, and where to look."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ldsvm.datasets import digits, mnist
from ldsvm.datasets.catalog import Entry, catalogue
from ldsvm.datasets.dataset import DataError, Dataset, Places

# One module per source; a name needs an entry here and one in the catalogue.
SOURCES = {"digits": digits.load, "mnist": mnist.load}


def load(
    name: str,
    *,
    cache_dir: str | os.PathLike[str],
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    entries: Mapping[str, Entry] | None = None,
) -> Dataset:
    """Load a data set by name, scaled to [0, 1] and checked against the catalogue's SHA-256.

    Parameters
    ----------
    name : "digits" or "mnist"
    cache_dir : folder for prepared (Parquet) data, created when needed; never a folder of raw files
    data_home : folder of raw files; None means the environment variable ``LDSVM_DATA_HOME``, where it is set
    download : whether a source on the network may be used when the raw files are not there
    entries : the catalogue to check against; None means the project's own

    Returns
    -------
    Dataset
        X (N, D) float32, y (N,) int64, and the official test set X_test (M, D), y_test (M,) where there is one.

    Raises
    ------
    DataError
        For an unknown name, data that cannot be found, a damaged raw file, a cache folder that cannot be written,
        and missing optional packages; each time with one sentence that says what to do.

    Examples
    --------
    >>> data = load("digits", cache_dir="data/prepared")
    >>> data.X.shape, float(data.X.max()), data.image_shape
    ((1797, 64), 1.0, (8, 8))
    """
    known = catalogue() if entries is None else entries
    if name not in SOURCES or name not in known:
        raise DataError(f"name={name!r} is no known data set: use one of {', '.join(sorted(SOURCES))}.")
    home = data_home or os.environ.get("LDSVM_DATA_HOME")
    places = Places(Path(cache_dir), Path(home) if home else None, download)
    return SOURCES[name](known[name], places)
