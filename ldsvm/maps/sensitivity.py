"""How strongly the scores of a fitted classifier answer to each input."""

from __future__ import annotations

import numpy as np

from ldsvm.maps.features import BasisMap
from ldsvm.maps.rbf import Gaussians
from ldsvm.typing import Array

CENTERS = 300  # at which the slopes are taken, at most


def importances(mapping: BasisMap, V: Array) -> Array:
    """Return the share of each input (D,) in the mean squared slope of all scores, in units of the inputs' spread.

    The diagonal of the average gradient outer product of s(x) = V F(x) (Radhakrishnan et al., 2024), at the centres,
    which lie where the rows do, times the variance of each input over them. Shares add up to 1; all are 0 where no
    score has a slope. V (K, L).

    Examples
    --------
    >>> basis = Gaussians(np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -0.1], [0.0, 0.1]]), 1.0)
    >>> W = np.array([[-1.0], [1.0], [0.0], [0.0]])
    >>> importances(BasisMap(basis, W), np.ones((1, 1))).round(3)
    array([1., 0.])
    """
    basis, U = mapping.basis, mapping.W @ V.T  # (M, K)
    assert isinstance(basis, Gaussians)
    centers = basis.centers.astype(np.float64)
    chosen = np.unique(np.linspace(0, len(centers) - 1, min(len(centers), CENTERS)).astype(int))
    total = np.zeros(centers.shape[1])
    pull = 2.0 * np.broadcast_to(basis.gamma, len(centers)) * basis(centers[chosen], np.float64)  # (n, M)
    for u in U.T:  # ds/dx = sum_m u_m phi_m(x) 2 gamma_m (c_m - x)
        share = pull * u
        slopes = share @ centers - share.sum(axis=1)[:, None] * centers[chosen]
        total += np.einsum("nd,nd->d", slopes, slopes)
    total *= centers.var(axis=0)
    whole = total.sum()
    return total / whole if whole > 0 else total
