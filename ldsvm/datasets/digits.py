"""UCI optical digits, the copy of its test part that scikit-learn ships: 1,797 images of 8 x 8 pixels, 0…16."""

from __future__ import annotations

import numpy as np

from ldsvm.datasets.catalog import Entry
from ldsvm.datasets.dataset import Dataset, Places, Raw, finish, require


def load(entry: Entry, _places: Places) -> Dataset:
    """Return the digits with X (1797, 64) in [0, 1] and no test set; raise `DataError` if scikit-learn's copy changed.

    Nothing is cached: the installed file is as near as a cache would be.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    raw = Raw(
        X=bunch.data.astype(np.uint8),
        y=bunch.target.astype(np.uint8),
        X_test=None,
        y_test=None,
        source=entry.sources["scikit-learn"],
    )
    return finish(require(raw, entry), entry, full_scale=16, image_shape=(8, 8))
