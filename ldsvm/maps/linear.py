"""F(x) = W' x: linear dimensionality reduction; dense or sparse inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ldsvm.maps.base import Map
from ldsvm.maps.features import Basis, FeatureFamily
from ldsvm.maps.leave_one_out import Sample, choose, ridges
from ldsvm.typing import Array

WIDE = 500  # rows that choose the ridge of as many inputs or more: the Gram matrix has this size


class Identity(Basis):
    """phi(x) = x, kept as given: no copy in another precision, sparse stays sparse."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, X: Any, dtype: Any) -> Any:
        return X.astype(dtype, copy=False)

    def keep(self, X: Any, n_threads: int) -> Any:
        return X


class Linear(FeatureFamily):
    """Linear maps with R(F) = |W|^2."""

    sparse = True

    def __init__(self, lam: float | str) -> None:
        self.lam = lam

    def chosen(self, sample: Sample, width: float) -> Linear:
        if sample.X.shape[1] > WIDE:
            sample = sample.thinned(WIDE)
        X = sample.X if sp.issparse(sample.X) else sample.X.astype(np.float64)
        return Linear(choose(sample, lambda gamma: X, [width], ridges(self.lam))[1])

    def basis(
        self, X: Any, weight: Array | None, random_state: np.random.RandomState, n_threads: int, near: Map | None
    ) -> Basis:
        return Identity(X.shape[1])
