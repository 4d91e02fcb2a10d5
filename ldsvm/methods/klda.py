"""Kernel discriminant analysis: Fisher's criterion in the feature space of a kernel, with one Cholesky factor."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, solve_triangular, svd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ldsvm.checks import check_labels, check_values, shown
from ldsvm.maps.features import row_blocks
from ldsvm.typing import Array

EPS = float(np.finfo(np.float64).eps)
LARGEST = 1e100  # of an input: sums of squares and their squares stay in float64
SMALLEST = 1e-250  # a mean squared distance from the mean below this counts as zero: its inverse would overflow
BLOCK = 2_000_000  # numbers in a block of rows of a kernel matrix: 16 MB, and as much again for its temporaries
EQUAL = 64 * EPS  # squared distances below this share of the squared norms are rounding of zero
FLOOR = 1e4 * EPS  # smallest rho as a share of the total variance: below it rounding would decide the directions


class KernelDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel linear (Fisher) discriminant analysis, KLDA: the L directions in feature space that tell K classes apart.

    Maximises w' S_b w / w' (S_w + rho I) w, S_b and S_w the covariances (sums divided by N) between and within
    classes in the feature space of the kernel. Over the training rows the projections have mean zero, their class
    means have covariance diag(eigenvalues_), and their pooled covariance within classes plus rho A' G A is the
    identity (A: ``dual_coef_``, G: the Gram matrix): as rho goes to 0, LinearDiscriminantAnalysis(solver="eigen").

    Parameters
    ----------
    n_components : int or None, default=None
        L. None is K - 1, the rank of S_b; more is refused.
    gamma : float, "scale" or "auto", default="scale"
        Width of exp(-gamma |x - x'|^2): "scale" is 1 / (D Var(X)), "auto" is 1 / D, as in scikit-learn's SVC.
    kernel : {"rbf", "linear"}, default="rbf"
        "linear" ignores gamma; it is ridge-regularised LDA in dual form, for comparison: it costs N^3 whatever D is.
    alpha : float in (0, 1e6], default=1e-3
        rho = alpha tr(S_w): |w|^2 in feature space is what is regularised, relative to the variance within classes,
        so that neither the kernel's scale nor repeated rows matter. The default damps directions that hold less than
        a thousandth of that variance; search it downwards, 1e-2 to 1e-6. rho is at least 2e-12 of the total
        variance, so that classes without variance of their own have finite quotients.

    Attributes
    ----------
    classes_ : (K,) labels.
    mean_ : (D,) mean of the training rows.
    X_fit_ : (N, D) training rows less ``mean_``, in float64; a copy.
    dual_coef_ : (N, L) coefficients of the training rows; every column sums to zero.
    intercept_ : (L,) so that the projection of x is k(x, training rows) ``dual_coef_`` + ``intercept_``.
    eigenvalues_ : (L,) the quotients, descending. A direction along which all class means agree has 0, projects to 0.
    gamma_ : width used; None for the linear kernel.
    ridge_ : rho.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Notes
    -----
    With w = Phi' a, G the centred Gram matrix, the columns of B (N, K - 1) an orthonormal basis of the class
    indicators less the constant, and C C' = G + N rho I, the singular values s of C^-1 B give the quotients
    (1 - e) / e, e = N rho s^2: one Cholesky factorisation, no eigenproblem of size N. It is kernel ridge regression
    on the indicators (Zhang et al.), positive definite where S_w in dual coefficients is always singular.

    Memory: one N x N array of float64, made, centred and factored in place; `transform` goes by blocks of rows, about
    40 MB beside its result. Time: N^2 D + N^3 / 3. Signs: the last class whose mean is not at zero has a positive one.

    References
    ----------
    S. Mika, G. Rätsch, J. Weston, B. Schölkopf and K.-R. Müller, "Fisher discriminant analysis with kernels", 1999.
    G. Baudat and F. Anouar, "Generalized discriminant analysis using a kernel approach", 2000 (several classes).
    Z. Zhang, G. Dai, C. Xu and M. I. Jordan, "Regularized discriminant analysis, ridge regression and beyond", 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ldsvm.methods.klda import KernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelDiscriminant(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale", "auto"})],
        "kernel": [StrOptions({"rbf", "linear"})],
        "alpha": [Interval(Real, 0, 1e6, closed="right")],
    }

    def __init__(
        self, n_components: int | None = None, *, gamma: float | str = "scale", kernel: str = "rbf", alpha: float = 1e-3
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> KernelDiscriminant:
        """Train on X (N, D), y (N,) of any labels.

        Raises
        ------
        ValueError : a parameter, label or value of X that is not allowed, by name; a single class; more components
            than classes less one; an alpha so small that rounding in X leaves no positive definite matrix.
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any) -> Array:
        """Train and return the projections (N, L) of the training rows, which the fit has at no further cost."""
        return self._fit(X, y)

    def transform(self, X: Any) -> Array:
        """Projections (n, L) of the rows of X (n, D), in float64."""
        check_is_fitted(self, "dual_coef_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_values(X, getattr(self, "feature_names_in_", None), LARGEST)
        Z = np.empty((X.shape[0], self.dual_coef_.shape[1]))
        for rows in row_blocks(X.shape[0], self.X_fit_.shape[0], BLOCK):
            x = X[rows] - self.mean_
            block = _kernel(x @ self.X_fit_.T, _squares(x), self._squares, self.gamma_)
            Z[rows] = block @ self.dual_coef_ + self.intercept_
        return Z

    @property
    def _n_features_out(self) -> int:
        return int(self.dual_coef_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _fit(self, X: Any, y: Any) -> Array:
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_values(X, getattr(self, "feature_names_in_", None), LARGEST)
        classes, index = np.unique(check_labels(y), return_inverse=True)
        L, gamma = self._dimensions(classes), self._width(X)
        # From the first row, so that a constant column is zero to the last bit however large it is.
        mean = X[0] + (X - X[0]).mean(axis=0)
        x = X - mean
        squares = _squares(x)
        G = _gram(x, squares, gamma)
        means = _center(G)
        values, dual, Z, ridge = _discriminant(G, index, self.alpha)
        self.classes_, self.mean_, self.X_fit_, self._squares, self.gamma_ = classes, mean, x, squares, gamma
        self.dual_coef_, self.eigenvalues_, self.ridge_ = np.ascontiguousarray(dual[:, :L]), values[:L], ridge
        # k(x, .) less the row means is the centred kernel up to a constant, which the zero sums of the dual cancel.
        self.intercept_ = -means @ self.dual_coef_
        return np.ascontiguousarray(Z[:, :L])

    def _dimensions(self, classes: Array) -> int:
        K = len(classes)
        if K < 2:
            raise ValueError(f"y contains one class only, {shown(classes[0])!r}; there must be at least two classes.")
        L = K - 1 if self.n_components is None else self.n_components
        if isinstance(L, bool) or L >= K:
            raise ValueError(f"n_components={L} must be a whole number from 1 to {K - 1}, one less than the classes.")
        return L

    def _width(self, X: Array) -> float | None:
        if self.kernel == "linear":
            return None
        if self.gamma == "scale":
            variance = float(X.var())
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        return 1.0 / X.shape[1] if self.gamma == "auto" else float(self.gamma)


def _squares(x: Array) -> Array:
    squares: Array = np.einsum("nd,nd->n", x, x)
    return squares


def _kernel(products: Array, rows: Array, columns: Array, gamma: float | None) -> Array:
    """Turn inner products (n, N) into the kernel in place, given the squared norms (n,) and (N,) of both sides.

    The Gaussian is taken less 1: centring removes constants, and a tiny gamma |x - x'|^2 keeps its digits.
    """
    if gamma is None:
        return products
    total = rows[:, None] + columns
    products *= -2.0
    products += total
    total *= EQUAL
    products[products < total] = 0.0  # equal rows have distance zero, also where gamma would magnify rounding
    with np.errstate(over="ignore"):
        products *= -gamma
    out: Array = np.expm1(products, out=products)
    return out


def _gram(x: Array, squares: Array, gamma: float | None) -> Array:
    G: Array = x @ x.T  # NumPy computes half of it: the two operands are one array
    for rows in row_blocks(len(G), len(G), BLOCK):
        _kernel(G[rows], squares[rows], squares, gamma)
    return G


def _center(G: Array) -> Array:
    """Centre G (N, N) in feature space, in place; return the means of its rows before."""
    means: Array = G.mean(axis=1)
    shift = means - means.mean()
    for rows in row_blocks(len(G), len(G), BLOCK):
        G[rows] -= means[rows, None]
        G[rows] -= shift
    return means


def _discriminant(G: Array, index: Array, alpha: float) -> tuple[Array, Array, Array, float]:
    """All K - 1 directions from the centred Gram matrix G (N, N), which is overwritten, and the classes' numbers (N,).

    Returns eigenvalues (K - 1,), dual coefficients and projections of the rows (N, K - 1), and rho. Inside, G is in
    units of its mean diagonal, so that no size of the kernel over- or underflows.
    """
    N, counts = len(G), np.bincount(index)
    scale = float(G.trace()) / N
    scale = scale if scale > SMALLEST else 1.0
    G /= scale
    ridge = max(alpha * _within(G, index, counts), FLOOR * N)
    factor = _factor(G, ridge, alpha)
    contrasts = _contrasts(counts)
    B = contrasts[index]
    U, s, Vt = svd(solve_triangular(factor, B, lower=True, check_finite=False), full_matrices=False)
    U, s, V = U[:, ::-1], s[::-1], Vt[::-1].T  # the smallest s is the largest quotient
    A = solve_triangular(factor, U * s, lower=True, trans=1, check_finite=False)
    e, mu, unit = _units(ridge, s, N)
    unit = unit * _signs(contrasts @ V)
    # G A = B V - N rho A: the projections of the training rows need no second pass over G.
    return mu / e, (A - A.mean(axis=0)) * (unit / scale), (B @ V - ridge * A) * unit, ridge * scale / N


def _units(ridge: float, s: Array, N: int) -> tuple[Array, Array, Array]:
    """e, mu = 1 - e, and the lengths that give w' (S_w + rho I) w = mu e / N before them the value 1 after."""
    e = ridge * s**2
    mu = 1.0 - e
    # A perturbation of G by rounding moves e by its ratio to the ridge: mu below that is zero, and has no length.
    seen = mu > 10.0 * EPS * N * max(1.0, 1.0 / ridge)
    return e, np.where(seen, mu, 0.0), np.sqrt(np.divide(N, mu * e, where=seen, out=np.zeros_like(e)))


def _within(G: Array, index: Array, counts: Array) -> float:
    """N tr(S_w) from a Gram matrix: its trace less the mean of every class's block times the class's size."""
    Y = np.eye(len(counts))[index]
    return float(G.trace() - (np.einsum("nk,nk->k", Y, G @ Y) / counts).sum())


def _factor(G: Array, ridge: float, alpha: float) -> Array:
    """Lower Cholesky factor of G + ridge I in the memory of G."""
    G.flat[:: G.shape[0] + 1] += ridge
    try:
        # The transpose of a symmetric matrix in C order is itself in LAPACK's order.
        factor: Array = cho_factor(G.T, lower=True, overwrite_a=True, check_finite=False)[0]
    except LinAlgError:
        raise ValueError(
            f"alpha={alpha} is below the rounding of distances in X; it must be larger, or X without far outliers."
        ) from None
    return factor


def _contrasts(counts: Array) -> Array:
    """(K, K - 1) values per class whose columns over all rows are orthonormal and orthogonal to the constant."""
    root = np.sqrt(counts)
    basis: Array = np.linalg.qr(root[:, None], mode="complete")[0][:, 1:]
    return basis / root[:, None]


def _signs(means: Array) -> Array:
    """Signs (L,) that make the last class mean away from zero positive, for means (K, L): rounding decides nothing."""
    clear = np.abs(means) > 1e-6 * np.abs(means).max(axis=0)
    last = means.shape[0] - 1 - clear[::-1].argmax(axis=0)
    signs: Array = np.sign(means[last, np.arange(means.shape[1])])
    return signs
