"""UCI optical digits, the copy of its test part that scikit-learn ships: 1,797 images of 8 x 8 pixels, 0…16."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np

from ldsvm.datasets import local
from ldsvm.datasets.dataset import Dataset, Places, Raw, Rows, finish, require
from ldsvm.datasets.entry import Entry


def load(entry: Entry, _places: Places) -> Dataset:
    """Return the digits with X (1797, 64) in [0, 1] and no test set; raise `DataError` if scikit-learn's copy changed.

    Nothing is cached: the installed file is as near as a cache would be.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    rows = Rows(bunch.data.astype(np.uint8), bunch.target.astype(np.uint8))
    raw = Raw(rows, None, entry.sources["installed"])
    return finish(require(raw, entry), entry, full_scale=16, image_shape=(8, 8))


def items(entry: Entry, places: Places) -> list[local.Item]:
    """Return the file that is installed with scikit-learn."""
    path = Path(str(files("sklearn.datasets.data") / f"{entry.files[0].name}.gz"))
    return [local.Item(entry.files[0].name, path, partial(load, entry, places))]
