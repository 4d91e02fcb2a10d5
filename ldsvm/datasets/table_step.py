"""The step ``table``: the columns of a table, each by its role, to numbers of a like scale.

========  ==========================================================================================================
number    gaps filled with the training median (``gaps: own``: 0 after scaling, the mean), then mean 0 and variance 1
          (``numbers: quantile``: ranks as a normal distribution; ``robust``: median 0 and quartiles 1 apart, but for
          columns with equal quartiles)
yes/no    gaps filled as those of numbers, then mean 0 and variance 1
category  one column a value, 1 or 0, a gap being a value; values that are rare in training, and unseen ones, share one
          column. With more than ``many`` values: how often each class goes with a value (`TargetEncoder`), scaled
date      year, month, weekday and days since the first training date, filled and scaled as numbers
text      word counts (TF-IDF) of at most ``max_features`` words; with more than 100, their components (`TruncatedSVD`)
========  ==========================================================================================================

Where gaps of numbers, truth values or dates are not rare, one more column says where they are. Columns without any
training value are left out. The module imports what is heavy: `ldsvm.datasets.features` imports it only when a step
is made.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, RobustScaler, StandardScaler, TargetEncoder

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.table_cells import check_cells, check_roles
from ldsvm.datasets.table_graph import add_table, graph_inputs
from ldsvm.datasets.table_parts import DateParts, Gaps, Words
from ldsvm.datasets.transformers import make
from ldsvm.datasets.words import shown, unknown

FOLDS = 5  # of the training rows, for target encoding
QUANTILES = 1000
WORD = r"\b\w\w+\b"  # what `Words` takes for a word


class TableFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of a table with mixed columns, by scikit-learn's `ColumnTransformer`.

    It takes a pandas DataFrame as `ldsvm.datasets.table_cells` has it. Columns are found by name: their order does
    not matter, and those without a role are ignored. What it makes is a dense array of float32.

    Parameters
    ----------
    roles : mapping of str to str
        The columns to use, each with its role: number, yes/no, category, date or text.
    gaps : {"median", "own"}, default="median"
        How gaps of numbers, truth values and dates are filled: with the training median, and a column of gaps where
        they are not rare; or with 0 after scaling, and a column of gaps where there is any in training.
    numbers : {"standard", "quantile", "robust"}, default="standard"
        How numbers are scaled.
    rare : int or float, default=10
        Values and gaps of fewer training rows than this number, or than this share of them, are rare.
    many : int, default=30
        Categories of more values than this are target-encoded.
    max_features : int, default=10000
        Words of each text column, the most frequent ones.
    own : sequence of mappings, default=()
        Transformers by import path that take columns in place of the groups above: ``path``, ``columns`` (names; one
        name passes the column as (N,)) and ``params``.
    random_state : int, default=0
        Seed of the folds of target encoding, of components of words, and of the rows that quantiles are taken from.

    Attributes
    ----------
    columns_ : ColumnTransformer
        What was fitted.
    empty_ : list of str
        Columns without any training value, which are left out.

    Examples
    --------
    >>> from pandas import DataFrame
    >>> table = DataFrame({"age": [20.0, 40.0] * 10, "town": ["Ulm", "Bonn"] * 10})
    >>> step = TableFeatures({"age": "number", "town": "category"}).fit(table)
    >>> step.transform(table[:2]).tolist()
    [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """

    def __init__(
        self,
        roles: Mapping[str, str],
        *,
        gaps: str = "median",
        numbers: str = "standard",
        rare: float = 10,
        many: int = 30,
        max_features: int = 10_000,
        own: Sequence[Mapping[str, Any]] = (),
        random_state: int = 0,
    ) -> None:
        self.roles = roles
        self.gaps = gaps
        self.numbers = numbers
        self.rare = rare
        self.many = many
        self.max_features = max_features
        self.own = own
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> TableFeatures:
        """Learn from the training rows X (N, D) and their labels y (N,), which only target encoding needs."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from the training rows and return their features (N, L).

        Target encoding of a row uses other rows only: `transform` of the same row is not equal.
        """
        check_roles(self.roles)
        X = check_cells(X, self.roles)
        self.feature_names_in_ = np.array(list(self.roles), dtype=object)
        self.n_features_in_ = len(self.roles)
        self.empty_ = [name for name in X if _is_empty(X[name], self.roles[name])]
        groups = self._groups(X, y)
        if not groups:
            raise DataError(f"None of the {len(self.roles):,} columns has a training value; allowed: at least one.")
        self.columns_ = ColumnTransformer(groups, sparse_threshold=0)
        with warnings.catch_warnings():
            # A class of fewer rows than folds is in some of them only, which is right here.
            warnings.filterwarnings("ignore", "The least populated class in y has only", UserWarning)
            return _float32(self.columns_.fit_transform(X, y))

    def transform(self, X: Any) -> Any:
        """Return the features (n, L) of more rows X (n, D)."""
        return _float32(self.columns_.transform(check_cells(X, self.roles)))

    def graph_inputs(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return the inputs of the ONNX graph for a table X (n, D), see `ldsvm.onnx_inputs`."""
        return graph_inputs(check_cells(X, self.roles), self.roles)

    def add_nodes(self, graph: Any, x: str) -> str:
        """Add the inputs and this step to an ONNX graph and return the name of the features."""
        return add_table(graph, self.roles, self.columns_.transformers_)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the features, such as ``number__age``."""
        names: NDArray[np.object_] = self.columns_.get_feature_names_out()
        return names

    def columns_of_features(self) -> list[str]:
        """Return the column that each feature is of, in their order; several columns of one transformer with commas."""
        found: list[str] = []
        for name, step, columns in self.columns_.transformers_:
            names = list(np.atleast_1d(columns))
            place = self.columns_.output_indices_[name]
            size = place.stop - place.start
            if name == "category":
                counts = [
                    len(values) - (0 if rare is None else len(rare) - 1)
                    for values, rare in zip(step.categories_, step.infrequent_categories_, strict=True)
                ]
            elif name.startswith("own-"):
                names, counts = [", ".join(names)], [size]
            else:  # as many of each column
                counts = [size // len(names) if names else 0] * len(names)
            found += [column for column, count in zip(names, counts, strict=True) for _ in range(count)]
        return found

    def _groups(self, X: Any, y: Any) -> list[tuple[str, Any, Any]]:
        """Return name, unfitted transformer and columns of each group that has columns."""
        of: dict[str, list[str]] = {}
        own = self._own()
        taken = {name for _, _, columns in own for name in np.atleast_1d(columns)}
        for name, role in self.roles.items():
            if name not in self.empty_ and name not in taken:
                of.setdefault(role, []).append(name)
        many = [name for name in of.get("category", ()) if X[name].nunique(dropna=False) > self.many]
        few = [name for name in of.get("category", ()) if name not in many]
        filled = [name for role in ("number", "yes/no", "date") for name in of.get(role, ())]
        flat = [name for name in of.get("number", ()) if self.numbers == "robust" and _has_equal_quartiles(X[name])]
        spread = [name for name in of.get("number", ()) if name not in flat]
        groups = [
            ("number", self._filled(self._scaler(len(X))), spread),
            ("flat", self._filled(StandardScaler()), flat),
            ("yes/no", self._filled(StandardScaler()), of.get("yes/no")),
            ("date", self._dates(), of.get("date")),
            ("gap", Gaps(), [name for name in filled if self._gaps_count(X[name])]),
            ("category", self._one_hot(len(X)), few),
            ("many", self._target_encoder(y) if many else None, many),
        ]
        words = Words(max_features=self.max_features, random_state=self.random_state)
        texts = [(f"text-{i}", words, name) for i, name in enumerate(of.get("text", ()))]
        return [*(group for group in groups if group[2]), *texts, *own]

    def _own(self) -> list[tuple[str, Any, Any]]:
        for one in self.own:
            for name in np.atleast_1d(one["columns"]):
                if name not in self.roles:
                    raise DataError(unknown(f"features.{one['path']}.columns: {shown(name)}", name, self.roles))
        return [(f"own-{i}", make(one["path"], one["params"]), one["columns"]) for i, one in enumerate(self.own)]

    def _filled(self, scaler: Any) -> Pipeline:
        if self.gaps == "own":
            return Pipeline([("scale", scaler), ("impute", SimpleImputer(strategy="constant", fill_value=0.0))])
        return Pipeline([("impute", SimpleImputer(strategy="median")), ("scale", scaler)])

    def _scaler(self, rows: int) -> Any:
        if self.numbers == "quantile":
            return QuantileTransformer(
                n_quantiles=min(QUANTILES, rows), output_distribution="normal", random_state=self.random_state
            )
        return RobustScaler() if self.numbers == "robust" else StandardScaler()

    def _dates(self) -> Pipeline:
        return Pipeline([("parts", DateParts()), *self._filled(StandardScaler()).steps])

    def _fewest(self, rows: int) -> int:
        """Return how many of the training rows a value must have not to be rare."""
        return self.rare if isinstance(self.rare, int) else math.ceil(self.rare * rows)

    def _gaps_count(self, column: Any) -> bool:
        gaps = int(column.isna().sum())
        return gaps > 0 and (self.gaps == "own" or gaps >= self._fewest(len(column)))

    def _one_hot(self, rows: int) -> OneHotEncoder:
        return OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=self._fewest(rows),
            sparse_output=False,
            dtype=np.float32,
        )

    def _target_encoder(self, y: Any) -> Pipeline:
        if y is None:
            raise DataError("Columns of many values are encoded by the labels, and there are none; allowed: labels y.")
        most = int(np.unique(y, return_counts=True)[1].max())
        folds = StratifiedKFold(max(2, min(FOLDS, most)), shuffle=True, random_state=self.random_state)
        if TargetEncoder().get_params().get("random_state") is None:  # scikit-learn before 1.9 makes the folds itself
            encoder = TargetEncoder(cv=folds.n_splits, random_state=self.random_state)
        else:
            encoder = TargetEncoder(cv=folds)
        return Pipeline([("encode", encoder), ("scale", StandardScaler())])


def _is_empty(column: Any, role: str) -> bool:
    return not (column.str.contains(WORD).any() if role == "text" else column.notna().any())


def _has_equal_quartiles(column: Any) -> bool:
    """Whether robust scaling would leave a column, once it is filled, as large as it is."""
    low, high = column.fillna(column.median()).quantile([0.25, 0.75])
    return bool(low == high)


def _float32(X: Any) -> NDArray[np.float32]:
    return np.ascontiguousarray(X, dtype=np.float32)
