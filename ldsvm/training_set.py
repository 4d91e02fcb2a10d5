"""From what `fit` is given to what training uses: checked, without rows of weight zero, validation rows set aside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from ldsvm.checks import check_classes, check_labels, check_start, check_weight, check_X, label_array
from ldsvm.maps import Family
from ldsvm.typing import Array


@dataclass(frozen=True)
class TrainingSet:
    """Rows X (N, D) with class indices (N,) into ``classes`` (K,), weights (N,) or None, and given starting
    coordinates (N, L) or None; ``validation`` are validation rows, class indices and weights, or None.
    """

    X: Any
    index: Array
    classes: Array
    weight: Array | None
    init: Array | None
    validation: tuple[Any, Array, Array | None] | None = None

    def take(self, rows: Array) -> TrainingSet:
        """These rows only."""
        weight, init = (None if a is None else a[rows] for a in (self.weight, self.init))
        return replace(self, X=self.X[rows], index=self.index[rows], weight=weight, init=init)


def training_set(estimator: Any, X: Any, y: Any, sample_weight: Any, eval_set: Any, family: Family) -> TrainingSet:
    """Check the arguments of ``estimator.fit``; errors are one sentence each."""
    X = check_X(estimator, X, sparse=family.sparse, reset=True, largest=family.largest)
    y = check_labels(y)
    check_consistent_length(X, y)
    weight = check_weight(sample_weight, X.shape[0])
    init = check_start(estimator.init, X.shape[0], estimator.n_components)
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    classes, index = np.unique(y[kept], return_inverse=True)
    check_classes(classes, len(kept))
    if len(kept) < len(y):
        X, weight, init = X[kept], weight[kept] if weight is not None else None, None if init is None else init[kept]
    data = TrainingSet(X, index, classes, weight, init)
    if eval_set is not None:
        return replace(data, validation=_given(estimator, eval_set, classes, family))
    if not estimator.early_stopping:
        return data
    train, valid = _split(index, estimator.validation_fraction, estimator.random_state)
    aside = data.take(valid)
    return replace(data.take(train), validation=(aside.X, aside.index, aside.weight))


def _given(estimator: Any, eval_set: Any, classes: Array, family: Family) -> tuple[Any, Array, None]:
    if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
        raise ValueError(
            f"eval_set must be a pair (X_valid, y_valid), got {type(eval_set).__name__}; RowBlocks go with RowBlocks."
        )
    X = check_X(estimator, eval_set[0], sparse=family.sparse, reset=False, largest=family.largest)
    y = label_array(eval_set[1], "the y of eval_set")
    check_consistent_length(X, y)
    known = set(classes.tolist())
    unknown = [label for label in y.tolist() if label not in known]
    if unknown:
        raise ValueError(f"eval_set has the label {unknown[0]!r}, which is not among the training labels.")
    return X, np.searchsorted(classes, y), None


def _split(index: Array, fraction: float, random_state: Any) -> tuple[Array, Array]:
    """Row numbers for training and for early stopping, stratified."""
    counts = np.bincount(index)
    size = max(int(np.ceil(fraction * len(index))), len(counts))
    if counts.min() < 2 or len(index) - size < len(counts):
        raise ValueError(
            f"early_stopping=True with validation_fraction={fraction} needs at least two rows of every class and "
            f"must leave one for training (of {len(index)} rows); give more rows, an eval_set, or early_stopping=False."
        )
    # a RandomState of its own, so that the split does not depend on how many numbers the basis draws
    seed = check_random_state(random_state).randint(2**31 - 1)
    train, valid = train_test_split(np.arange(len(index)), test_size=size, stratify=index, random_state=seed)
    return np.sort(train), np.sort(valid)
