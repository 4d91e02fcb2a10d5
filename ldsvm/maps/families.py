"""Which family of maps the parameters of an estimator name."""

from __future__ import annotations

from typing import Any

from ldsvm.maps.adaptive_rbf import AdaptiveRBF
from ldsvm.maps.base import Family
from ldsvm.maps.landmarks import number_of
from ldsvm.maps.linear import Linear
from ldsvm.maps.rbf import RBF
from ldsvm.maps.regressor import Regressor

DEFAULT_BASIS = "scale"
FEWEST, MOST, PER_CLASS, MOST_OF_ALL = 150, 300, 30, 1_000


def scaled_size(N: int, K: int) -> int:
    """Return the number of basis functions that "scale" stands for with N rows of K classes.

    A quarter of the rows, from 150 to 300, or 30 for each class where that is more, up to 1,000.

    Examples
    --------
    >>> [scaled_size(N, K) for N, K in ((500, 2), (1_000, 2), (60_000, 10), (5_000, 26))]
    [150, 250, 300, 780]
    """
    return min(max(PER_CLASS * K, min(max(N // 4, FEWEST), MOST)), MOST_OF_ALL)


def size_of(model: Any, N: float, K: int) -> int | None:
    """Return an estimator's number of basis functions for N rows of K classes.

    None for all rows, and where an estimator that finds the centres will tell.
    """
    if not isinstance(model.centers, str) and model.map in ("rbf", "adaptive_rbf"):
        return number_of(model.centers, model.n_basis)
    if model.n_basis == "scale":
        return scaled_size(int(N), K)
    return None if model.n_basis is None else int(model.n_basis)


def family_of(model: Any, size: int | None = None, alpha: float | None = None) -> Family:
    """Return the family for an estimator's ``map`` and what goes with it.

    size: see `size_of`; not needed to learn which kind of family it is. alpha: instead of the estimator's.

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
