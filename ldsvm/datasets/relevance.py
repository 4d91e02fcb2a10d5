"""A step that learns from the labels how much each input counts: automatic relevance determination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ldsvm import threads
from ldsvm.maps.leave_one_out import Sample, best
from ldsvm.maps.lowering import RANGE, Slopes
from ldsvm.maps.rbf import Gaussians
from ldsvm.solvers.ridge import Ridge

KINDS = (np.float64, np.float32)
ROWS, CENTERS = 2_000, 50  # rows that are looked at, and basis functions, at most
RIDGE, PENALTY = 1.0, 0.3  # on the weights of the basis functions, and on the squared logarithms of the factors
UNIT = 0.3  # of logarithms, where that of centres is the spread of the inputs
POWERS = (0.0, 0.5, 1.0)  # of the factors, 0 for none: few or noisy rows tell less than their factors say
WIDTHS, LANDMARKS = (0.3, 1.0, 3.0), 200  # times gamma="scale", and centres, of the maps that compare the powers
FEWEST = 20  # rows, below which nothing is learned
JITTER = 1e-6  # share of the mean squared feature that is the least ridge: the Gram matrix is one of float32 numbers


class RelevanceScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Multiply each input by a factor that is learned from the labels.

    Gaussian basis functions and Gaussian kernels depend on distances, in which every input counts alike. Where some
    inputs say little about the classes, they hide what the others say. The factors, centres, widths and weights of a
    small RBF network are learned together: L-BFGS lowers the squared distance of its outputs from codes of the classes,
    with the weights eliminated (variable projection, Golub & Pereyra, 1973). Inputs that do not help get small factors.

    Few or noisy rows can mislead it. So factors that were learned from one half of the rows are tried on the other,
    with their square roots and with none, by the leave-one-out errors of a ridge regression on Gaussians, and these
    errors decide which are used.

    The inputs should be on like scales before, for example by `sklearn.preprocessing.StandardScaler`. The step can
    stand before any classifier that is based on distances.

    Parameters
    ----------
    max_iter : int, default=40
        Iterations of L-BFGS; with many more, factors are fitted to noise.
    random_state : int, RandomState instance or None, default=None
        Chooses 2,000 rows where there are more, their halves, and the first centres. An integer gives the same
        factors each time.

    Attributes
    ----------
    scale_ : ndarray of shape (D,)
        The factors. Their mean square, weighted by the variances of the inputs, is 1, so that the mean variance stays.
    power_ : float
        The power of the learned factors that is used: 0 where none helped, so that all are 1; else 0.5 or 1.
    n_iter_ : int
        The iterations of the longest of the descents.
    n_features_in_ : int
        The number of inputs.
    feature_names_in_ : ndarray of shape (D,)
        The names of the inputs, where all of them are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from ldsvm import RelevanceScaler
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> y = X[:, 0] * X[:, 2] > 0  # the other two inputs are noise
    >>> scaler = RelevanceScaler(random_state=0).fit(X, y)
    >>> np.flatnonzero(scaler.scale_ > 1)
    array([0, 2])
    """

    def __init__(self, max_iter: int = 40, random_state: Any = None) -> None:
        self.max_iter, self.random_state = max_iter, random_state

    def fit(self, X: Any, y: Any) -> RelevanceScaler:
        """Learn the factors from inputs X (N, D) and their classes y (N,)."""
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter is {self.max_iter!r}; allowed: a whole number of at least 1.")
        X, y = validate_data(self, X, y, dtype=KINDS)
        check_classification_targets(y)
        random = check_random_state(self.random_state)
        rows = random.permutation(len(X))[:ROWS]
        X, y = X[rows].astype(np.float64), np.unique(y[rows], return_inverse=True)[1]
        X /= np.abs(X).max() or 1.0  # whose squares could be beyond float64
        x = (X - X.mean(axis=0)) / (np.sqrt(np.mean(np.var(X, axis=0))) or 1.0)
        self.n_iter_ = 0
        with threads.limit(1):  # for products so small that more would wait for each other
            self.power_ = self._power(x, y, random)
            factors = self._learned(x, y, random) ** self.power_ if self.power_ else np.ones(X.shape[1])
        self.scale_ = _levelled(factors, x)
        return self

    def transform(self, X: Any) -> Any:
        """Return X (N, D), each input times its factor."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=KINDS, reset=False)
        return X * self.scale_.astype(X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _power(self, x: NDArray[Any], y: NDArray[Any], random: np.random.RandomState) -> float:
        """Return the power whose factors, from the other half, have the fewest errors."""
        if len(y) < FEWEST or y.max() == 0 or not x.any():
            return 0.0
        errors = {power: np.zeros(2) for power in POWERS}
        for some, others in _halves(y):
            factors = self._learned(x[some], y[some], random)
            for power in POWERS:
                scaled = x[others] * _levelled(factors**power, x[others])
                errors[power] += len(others) * np.array(_errors(scaled, y[others]))
        return min(POWERS, key=lambda power: tuple(errors[power]))

    def _learned(self, x: NDArray[Any], y: NDArray[Any], random: np.random.RandomState) -> NDArray[Any]:
        """Return the factors (D,) that some rows suggest."""
        from scipy.optimize import minimize

        network = _Network(x, _codes(y), random)
        start, bounds = network.start()
        options = {"maxiter": int(self.max_iter)}
        end = minimize(network, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        self.n_iter_ = max(self.n_iter_, int(end.nit))
        factors: NDArray[Any] = np.exp(network.parts(end.x)[2])
        return factors


class _Network:
    """Half the squared residual of a small RBF network on scaled inputs, as a function of what is not eliminated.

    x (N, D) around 0 with mean variance 1, z (N, K). The numbers that are varied are the centres in units of x, and the
    logarithms of widths and factors in units of UNIT.
    """

    def __init__(self, x: NDArray[Any], z: NDArray[Any], random: np.random.RandomState) -> None:
        (N, self.D), self.M = x.shape, min(CENTERS, len(x) // 2)
        self.x, self.z = x.astype(np.float32), z.astype(np.float32)
        self.center = x[random.permutation(N)[: self.M]]
        self.slopes = Slopes(N, self.M, self.D, z.shape[1])

    def start(self) -> tuple[NDArray[Any], list[tuple[float | None, float | None]]]:
        """Return where the descent begins, rows as centres and factors of 1, and the bounds."""
        M, width, most = self.M, -np.log(self.D * float(self.x.var() or 1.0)), np.log(RANGE)
        start = np.concatenate([self.center.ravel(), np.full(M, width / UNIT), np.zeros(self.D)])
        free: list[tuple[float | None, float | None]] = [(None, None)] * self.center.size
        widths = [((width - most) / UNIT, (width + most) / UNIT)] * M
        return start, [*free, *widths, *[(-most / UNIT, most / UNIT)] * self.D]

    def parts(self, at: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return centres (M, D), log-widths (M,) and log-factors (D,)."""
        size = self.center.size
        return at[:size].reshape(self.M, self.D), UNIT * at[size : size + self.M], UNIT * at[size + self.M :]

    def __call__(self, at: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        center, width, logs = self.parts(at)
        factors, width = np.exp(logs), width.astype(np.float32)
        scaled = (center * factors).astype(np.float32)
        self.slopes.features((self.x * factors).astype(np.float32), scaled, width)
        gram, cross = (product.astype(np.float64) for product in self.slopes.normal(self.z, None))
        ridge = RIDGE + JITTER * float(np.trace(gram)) / self.M
        W = Ridge(gram).solve(cross, ridge)
        half = self.slopes.derive(self.z, None, scaled, W.astype(np.float32))
        by_center = self.slopes.center.astype(np.float64)
        by_factor = self.slopes.by_input(scaled, width) + np.einsum("md,md->d", by_center, scaled)
        value = half + 0.5 * ridge * float(np.sum(W * W)) + PENALTY * float(logs @ logs)
        slopes = [(factors * by_center).ravel(), UNIT * self.slopes.width, UNIT * (by_factor + 2.0 * PENALTY * logs)]
        return value, np.concatenate(slopes)


def _codes(y: NDArray[Any]) -> NDArray[Any]:
    """Return 1 for a row's class and -1 for the others (N, K), around their means."""
    z = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    centred: NDArray[Any] = z - z.mean(axis=0)
    return centred


def _halves(y: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield two halves of the rows with like shares of the classes, as they are and exchanged."""
    order = np.argsort(y, kind="stable")
    yield order[::2], order[1::2]
    yield order[1::2], order[::2]


def _levelled(factors: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """Return the factors times what leaves the mean variance of the columns of x as it is."""
    variances = np.var(x, axis=0)
    after = float(np.mean(np.square(factors) * variances))
    found: NDArray[Any] = factors * np.sqrt(float(np.mean(variances)) / after) if after > 0 else factors
    return found


def _errors(x: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """Return the leave-one-out errors of a ridge regression on Gaussians: their share, and their mean square."""
    ones, scale = np.ones(len(y)), 1.0 / (x.shape[1] * float(x.var() or 1.0))
    centers = x[np.linspace(0, len(x) - 1, min(LANDMARKS, len(x))).astype(int)]
    sample = Sample(x, y, _codes(y), ones, ones)
    return best(sample, lambda gamma: Gaussians(centers, gamma)(x, np.float64), [scale * times for times in WIDTHS])[:2]
