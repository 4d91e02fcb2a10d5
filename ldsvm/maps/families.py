"""Which family of maps the parameters of an estimator name."""

from __future__ import annotations

from typing import Any

from ldsvm.maps.adaptive_rbf import AdaptiveRBF
from ldsvm.maps.base import Family
from ldsvm.maps.linear import Linear
from ldsvm.maps.rbf import RBF
from ldsvm.maps.regressor import Regressor

DEFAULT_BASIS = "scale"
FEWEST, MOST, PER_CLASS, MOST_OF_ALL = 150, 300, 30, 1_000


def size_of(model: Any, N: float, K: int) -> int | None:
    """Return the number of basis functions for N rows of K classes, None for all of them.

    A quarter of the rows, from 150 to 300, or 30 for each class where that is more, up to 1,000.

    Examples
    --------
    >>> from ldsvm import LDSVMClassifier
    >>> [size_of(LDSVMClassifier(), N, K) for N, K in ((500, 2), (1_000, 2), (60_000, 10), (5_000, 26))]
    [150, 250, 300, 780]
    """
    if model.n_basis == "scale":
        return min(max(PER_CLASS * K, min(max(int(N) // 4, FEWEST), MOST)), MOST_OF_ALL)
    return None if model.n_basis is None else int(model.n_basis)


def family_of(model: Any, size: int | None = None, alpha: float | None = None) -> Family:
    """Return the family for an estimator's ``map`` and what goes with it.

    size: see `size_of`; of no matter where only the kind of family is. alpha: instead of the estimator's.

    Examples
    --------
    >>> from ldsvm import LDSVMClassifier
    >>> type(family_of(LDSVMClassifier(map="linear"))).__name__
    'Linear'
    """
    if not isinstance(model.map, str):
        return Regressor(model.map)
    alpha = model.alpha if alpha is None else alpha
    if model.map == "linear":
        return Linear(alpha)
    basis = size, model.centers, model.gamma, alpha
    asked = model.n_basis != DEFAULT_BASIS
    if model.map == "adaptive_rbf":
        return AdaptiveRBF(*basis, model.center_steps, model.z_follows, asked)
    return RBF(*basis, asked)
