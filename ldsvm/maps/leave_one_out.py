"""Width and ridge of a map from the leave-one-out errors of its first regression, which have a closed form.

For a ridge regression F = H Z of coordinates Z, the map fitted without row n has the value
f_n - h_n / (1 - h_n) (z_n - f_n) at that row, with the leverage h_n = H_nn. One eigendecomposition of the Gram matrix
gives F and h for every ridge. A row counts as an error where the class whose mean coordinates are nearest to that value
is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ldsvm.typing import Array

ROWS, CENTERS, FEW = 2_000, 500, 100  # that are looked at, at most; centres that are enough for the width
ALPHAS = tuple(10.0**power for power in range(-6, 3))
WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # times gamma="scale"
FULL = 1.0 - 1e-9  # leverage of a row that the map goes through, whatever the other rows say


@dataclass(frozen=True)
class Sample:
    """Some training rows: inputs X (n, D), class indices y (n,), coordinates Z (n, L), weights in the regression (n,)
    and in the count of errors (n,).
    """

    X: Any
    y: Array
    Z: Array
    weight: Array
    cost: Array

    def thinned(self, size: int) -> Sample:
        """Return so many of the rows, evenly spaced, or all of them where they are fewer."""
        if len(self.y) <= size:
            return self
        rows = np.linspace(0, len(self.y) - 1, size).astype(int)
        return Sample(self.X[rows], *(part[rows] for part in (self.y, self.Z, self.weight, self.cost)))


def sample_rows(N: int, random_state: np.random.RandomState) -> Array:
    """Return the numbers of the rows that are looked at, ascending: all of them, or ROWS at random."""
    if N <= ROWS:
        return np.arange(N)
    from sklearn.utils.random import sample_without_replacement

    return np.sort(sample_without_replacement(N, ROWS, random_state=random_state))


def values_left_out(Phi: Any, Z: Array, weight: Array, alphas: Sequence[float]) -> Iterator[Array]:
    """Yield the values (n, L) at each row of the ridge regression without it, for one ridge after the other.

    Phi (n, M) features, dense or sparse. A row of weight w > 1 loses one unit of it, as one of w equal rows would be
    left out; a row of a smaller weight is left out whole.

    Examples
    --------
    >>> Phi, Z = np.array([[1.0], [2.0], [1.0]]), np.array([[1.0], [2.0], [3.0]])
    >>> next(values_left_out(Phi, Z, np.ones(3), [1.0]))[2]  # of the first two rows: 5 / (5 + 1)
    array([0.83333333])
    """
    root = np.sqrt(weight)[:, None]
    scaled = Phi.multiply(root).tocsr() if sp.issparse(Phi) else Phi * root
    wide = scaled.shape[0] < scaled.shape[1]
    gram = scaled @ scaled.T if wide else scaled.T @ scaled
    values, vectors = scipy.linalg.eigh(gram.toarray() if sp.issparse(gram) else gram, driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    smallest = max(values[-1] * len(values) * np.finfo(np.float64).eps, np.finfo(np.float64).tiny)
    rotated = vectors * np.sqrt(values) if wide else scaled @ vectors  # (n, rank): its rows' products are the Gram's
    cross, squares = rotated.T @ (root * Z), np.square(rotated)
    unit = (np.minimum(weight, 1.0) / weight)[:, None]
    shrunk = 1.0 / np.maximum(values[:, None] + np.asarray(alphas), smallest)  # (rank, alphas)
    leverages = np.minimum(unit * (squares @ shrunk), FULL)
    for h, part in zip(leverages.T[:, :, None], shrunk.T[:, :, None], strict=True):
        F = rotated @ (part * cross) / root
        yield F - h / (1.0 - h) * (Z - F)


def best(
    sample: Sample, features: Callable[[float], Any], gammas: Iterable[float], alphas: Iterable[float] = ALPHAS
) -> tuple[float, float, float, float]:
    """Return the fewest leave-one-out errors and their squared ones, which decide ties, with their gamma and alpha.

    features: Phi (n, M) of the sample's rows for a gamma. Both errors are means over the rows.
    """
    alphas, count = list(alphas), _Errors(sample)
    return min(
        (*count(F), gamma, alpha)
        for gamma in gammas
        for alpha, F in zip(alphas, values_left_out(features(gamma), sample.Z, sample.weight, alphas), strict=True)
    )


def choose(
    sample: Sample, features: Callable[[float], Any], gammas: Iterable[float], alphas: Iterable[float] = ALPHAS
) -> tuple[float, float]:
    """Return the gamma and the alpha of the `best` errors."""
    return best(sample, features, gammas, alphas)[2:]


def ridges(alpha: float | str) -> tuple[float, ...]:
    """Return the ridges to choose from: ALPHAS for "auto", else the one that is given."""
    return ALPHAS if isinstance(alpha, str) else (alpha,)


class _Errors:
    """Counts errors of values (n, L) at a sample's rows: where another class's mean coordinates are nearer."""

    def __init__(self, sample: Sample) -> None:
        classes, self.index = np.unique(sample.y, return_inverse=True)
        belongs = (self.index == np.arange(len(classes))[:, None]) * sample.weight
        means = belongs @ sample.Z / np.maximum(belongs.sum(axis=1), np.finfo(np.float64).tiny)[:, None]
        self.points, self.half = means.T, 0.5 * np.einsum("kl,kl->k", means, means)
        self.Z, self.share = sample.Z, sample.cost / sample.cost.sum()

    def __call__(self, F: Array) -> tuple[float, float]:
        """Return the share of errors and the mean squared distance from Z, both weighted."""
        wrong = np.argmax(F @ self.points - self.half, axis=1) != self.index
        apart = F - self.Z
        return float(self.share @ wrong), float(self.share @ np.einsum("nl,nl->n", apart, apart))
