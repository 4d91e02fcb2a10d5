"""Which family of maps the parameters of an estimator name."""

from __future__ import annotations

from typing import Any

from ldsvm.maps.adaptive_rbf import AdaptiveRBF
from ldsvm.maps.base import Family
from ldsvm.maps.linear import Linear
from ldsvm.maps.rbf import RBF
from ldsvm.maps.regressor import Regressor

DEFAULT_BASIS = 300


def family_of(model: Any, alpha: float | None = None) -> Family:
    """Return the family for an estimator's ``map`` and what goes with it. alpha: instead of the estimator's.

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
    size = None if isinstance(model.n_basis, str) else model.n_basis  # "auto" is no number before the fit has chosen
    basis = size, model.centers, model.gamma, alpha
    asked = model.n_basis != DEFAULT_BASIS
    if model.map == "adaptive_rbf":
        return AdaptiveRBF(*basis, model.center_steps, model.z_follows, asked)
    return RBF(*basis, asked)
