"""Steps of our own for columns of a table: the parts of dates, where gaps are, and words.

They are stored with a model, so they are ordinary scikit-learn transformers; skops asks to trust them by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

PARTS = ("year", "month_sin", "month_cos", "weekday_sin", "weekday_cos", "days")
DAY = 86_400 * 10**6  # microseconds


class DateParts(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Year, month and weekday of dates, and the days since the first training date.

    Months and weekdays are points on a circle, sine and cosine, so that December is beside January. The time of day is
    a fraction of the days. All parts of NaT are NaN.

    Examples
    --------
    >>> from pandas import DataFrame, Timestamp
    >>> table = DataFrame({"day": [Timestamp("2024-04-01"), Timestamp("2024-01-08")]})  # both are Mondays
    >>> DateParts().fit_transform(table).round(2).tolist()
    [[2024.0, 1.0, 0.0, 0.0, 1.0, 84.0], [2024.0, 0.0, 1.0, 0.0, 1.0, 0.0]]
    """

    def fit(self, X: Any, y: object = None) -> DateParts:
        """Learn the first date of each column of a DataFrame X (N, D) of datetime64; 1970 where it has none."""
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        firsts = [X[name].min() for name in X.columns]
        self.first_ = np.array([_micro(np.array([first], dtype="datetime64[us]"))[0] for first in firsts])
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the parts (N, 6 D) of the dates X (N, D)."""
        dates = [X[name].to_numpy() for name in self.feature_names_in_]
        return np.hstack([_parts(column, first) for column, first in zip(dates, self.first_, strict=True)])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the parts, such as ``day_year``."""
        return np.array([f"{name}_{part}" for name in self.feature_names_in_ for part in PARTS], dtype=object)


def _micro(dates: NDArray[np.datetime64]) -> NDArray[np.int64]:
    return np.where(np.isnat(dates), 0, dates.astype("datetime64[us]").astype(np.int64))


def _parts(dates: NDArray[np.datetime64], first: int) -> NDArray[np.float64]:
    since = _micro(dates)
    months = since.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    month, weekday = (
        2 * np.pi / 12 * (months % 12),
        2 * np.pi / 7 * ((since // DAY + 3) % 7),
    )  # 1970 began on a Thursday
    parts = [
        months // 12 + 1970.0,
        np.sin(month),
        np.cos(month),
        np.sin(weekday),
        np.cos(weekday),
        (since - first) / DAY,
    ]
    found = np.column_stack(parts)
    found[np.isnat(dates)] = np.nan
    return found


class Gaps(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Where the cells of a DataFrame are gaps, 1 or 0; for numbers and dates alike, as `MissingIndicator` is not."""

    def fit(self, X: Any, y: object = None) -> Gaps:
        """Learn the names of the columns of X (N, D)."""
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return 1 where X (N, D) has a gap and 0 elsewhere."""
        gaps: NDArray[np.float32] = X[list(self.feature_names_in_)].isna().to_numpy(dtype=np.float32)
        return gaps

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns."""
        return self.feature_names_in_


class Words(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Word counts (TF-IDF) of a column of texts as a dense array: the map of Gaussians takes no sparse rows.

    More words than ``n_components`` become that many components (`TruncatedSVD`); fewer stay as they are.

    Examples
    --------
    >>> Words().fit_transform(["a red disk", "a disk"]).round(2).tolist()
    [[0.5799999833106995, 0.8100000023841858], [1.0, 0.0]]
    """

    def __init__(self, *, max_features: int = 10_000, n_components: int = 100, random_state: int = 0) -> None:
        self.max_features = max_features
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Words:
        """Learn words and components of the texts X (N,)."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> NDArray[np.float32]:
        """Learn words and components of the texts X (N,) and return their coordinates (N, L)."""
        self.words_ = TfidfVectorizer(dtype=np.float32, max_features=self.max_features)
        counts = self.words_.fit_transform(X)
        self.svd_ = None
        if min(counts.shape) > self.n_components:
            self.svd_ = TruncatedSVD(self.n_components, random_state=self.random_state).fit(counts)
        return self._reduced(counts)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the coordinates (n, L) of more texts X (n,)."""
        return self._reduced(self.words_.transform(X))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the words, or numbers of the components."""
        if self.svd_ is None:
            return np.asarray(self.words_.get_feature_names_out(), dtype=object)
        return np.array([str(i) for i in range(self.n_components)], dtype=object)

    def _reduced(self, counts: Any) -> NDArray[np.float32]:
        counts.sort_indices()  # sums in the same order, however the counts were made
        found: NDArray[np.float32] = counts.toarray() if self.svd_ is None else self.svd_.transform(counts)
        return found
