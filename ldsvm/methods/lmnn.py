"""Large margin nearest neighbour: a linear map after which the nearest neighbours of a point share its label."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh, norm, svd
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ldsvm.checks import shown
from ldsvm.methods.lmnn_loss import Loss
from ldsvm.typing import Array

WINDOW = 10  # iterations over which `tol` averages: single short steps at kinks of the hinge do not end the descent


class LargeMarginNN(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Large margin nearest neighbour (LMNN): a supervised linear map A (L, D), learnt for a nearest-neighbour rule.

    Every row i has k targets, its nearest rows j of the same class in the input space (fixed, as in the source).
    Targets are pulled near, and rows l of other classes ("impostors") are pushed a unit margin beyond them. With
    d(i, j) = |A(x_i - x_j)|² the map descends on

        loss(A) = 1/N sum_ij [ (1 - weight) d(i, j) + weight sum_l max(0, 1 + d(i, j) - d(i, l)) ].

    L-BFGS descends on this loss itself: every evaluation counts all impostors, so that the loss never rises. They are
    read from a list of near pairs, found by an exact search in the projected space, and found anew once points have
    moved so far that an unlisted pair might matter. A is of low rank by its shape, hence the problem is not convex
    and its solution depends on the start. A factor on X changes nothing but the scale of ``components_``.

    Parameters
    ----------
    n_components : int or None, default=None
        L, at most D. None is D, or the rows of an ``init`` array.
    n_neighbors : int, default=3
        Targets k of every row, the source's choice. A class of n rows has n - 1 at most: the only row of a class has
        none and still acts as impostor.
    weight : float, default=0.5
        The source's mu, strictly between 0 (all points collapse) and 1 (nothing pulls).
    init : {"auto", "pca", "lda"} or array (L, D), default="auto"
        The start. "auto" is "lda" for L < K classes, as discriminants use the labels from the start, and "pca"
        otherwise: there are only K - 1 discriminants, and an empty row of A would stay empty. Both are scaled to a
        mean squared distance of 1 to the targets, the size of the margin; an array is taken as it is.
    max_iter : int, default=500
        L-BFGS iterations at most; reaching it raises a ConvergenceWarning.
    tol : float, default=1e-4
        Stop when an iteration lowers the loss by less than this share of max(1, loss), on average over ten; 1 is the
        margin, and the loss is a mean over rows, so that neither N nor the scale of X matters. The descent also ends
        where the line search finds nothing lower.
    max_impostors : int, default=5_000_000
        Pairs (i, l) that the list may hold, 8 bytes each. With more in reach, every evaluation searches all rows block
        by block: slower, while memory stays bounded and the loss exact.

    Attributes
    ----------
    components_ : (L, D) the map A, unique up to a rotation of the L dimensions; zero in directions where X is constant.
    classes_ : (K,) labels.
    n_iter_ : iterations done.
    loss_, loss_history_ : the final loss, and the loss at the start and after every iteration (n_iter_ + 1,).
    n_features_in_, feature_names_in_ : as in scikit-learn.

    References
    ----------
    K. Q. Weinberger and L. K. Saul, "Distance metric learning for large margin nearest neighbor classification",
    JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(LargeMarginNN(n_components=2), KNeighborsClassifier(n_neighbors=1))
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weight": [Interval(Real, 0, 1, closed="neither")],
        "init": [StrOptions({"auto", "pca", "lda"}), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_impostors": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 3,
        weight: float = 0.5,
        init: Any = "auto",
        max_iter: int = 500,
        tol: float = 1e-4,
        max_impostors: int = 5_000_000,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.weight = weight
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.max_impostors = max_impostors

    def fit(self, X: Any, y: Any) -> LargeMarginNN:
        """Learn the map from X (N, D) and labels y (N,).

        Raises
        ------
        ValueError : a parameter, label or value of X that is not allowed, by name; a single class; n_components
            above D, or above K - 1 with init="lda"; an init array of another shape.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y contains one class only, {shown(classes[0])!r}; LargeMarginNN needs at least two.")
        X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
        scale = norm(X) / np.sqrt(len(X)) or 1.0  # total variance 1: no over- or underflow, the same steps at any scale
        V = _basis(X / scale)  # gradients lie in the span of the rows, so that a map of their coordinates is enough
        loss = Loss(X / scale @ V.T, index, self.n_neighbors, self.weight, self.max_impostors)
        A, history, settled = _descend(loss, self._start(loss, V * scale, len(classes)), self.max_iter, self.tol)
        self.classes_, self.components_ = classes, A @ V / scale
        self.loss_history_, self.loss_, self.n_iter_ = np.array(history), history[-1], len(history) - 1
        if not settled:
            message = f"LMNN stopped at max_iter={self.max_iter} before its loss settled: increase max_iter or tol."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> Array:
        """Return A x for every row of X (N, D): (N, L), in the precision of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        projected: Array = X @ self.components_.T.astype(X.dtype)
        return projected

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _start(self, loss: Loss, V: Array, n_classes: int) -> Array:
        """The first map (L, R) of coordinates in the basis V (R, D)."""
        R, D = V.shape
        L = D if self.n_components is None else int(self.n_components)
        if not isinstance(self.init, str):
            return self._given(D) @ V.T
        if D < L:
            raise ValueError(f"n_components={L} must be at most the number of features of X, {D}.")
        if self.init == "lda" and n_classes <= L:
            raise ValueError(f"init='lda' has at most {n_classes - 1} components for {n_classes} classes, not {L}.")
        if self.init == "pca" or n_classes <= L:
            A = np.eye(L, R)  # the basis is of principal directions
        else:
            A = _discriminants(loss.X, loss.y, L)
        return A / loss.size(A)

    def _given(self, D: int) -> Array:
        A = check_array(self.init, dtype=np.float64, input_name="init")
        if A.shape[1] != D or len(A) > D or self.n_components not in (None, len(A)):
            rows = f"at most {D}" if self.n_components is None else self.n_components
            raise ValueError(f"init has shape {A.shape}; it must be (n_components, n_features) = ({rows}, {D}).")
        return A


def _descend(loss: Loss, A: Array, max_iter: int, tol: float) -> tuple[Array, list[float], bool]:
    """The map, the loss of every iterate, and whether it settled within ``max_iter`` iterations."""
    history = [loss(A)[0]]

    def settled() -> bool:
        return len(history) > WINDOW and history[-1 - WINDOW] - history[-1] <= WINDOW * tol * max(1.0, history[-1])

    def watch(intermediate_result: Any) -> None:
        history.append(float(intermediate_result.fun))
        if settled():
            raise StopIteration

    def flat(a: Array) -> tuple[float, Array]:
        value, gradient = loss(a.reshape(A.shape))
        return value, gradient.ravel()

    # A line search that fails at a kink ends L-BFGS: it starts again with an empty memory as long as that helps.
    while not settled() and (done := len(history) - 1) < max_iter:
        options = {"maxiter": max_iter - done, "maxfun": np.inf, "ftol": 0.0, "gtol": 0.0}
        A = minimize(flat, A.ravel(), jac=True, method="L-BFGS-B", callback=watch, options=options).x.reshape(A.shape)
        if len(history) - 1 == done:
            return A, history, True
    return A, history, settled()


def _basis(X: Array) -> Array:
    """Principal directions (R, D) of centred X, R its rank; one row of zeros where X is constant."""
    _, values, V = svd(np.linalg.qr(X, mode="r"), full_matrices=False)
    rank = int(np.count_nonzero(values > max(X.shape) * np.finfo(np.float64).eps * values[0]))
    return V[:rank] if rank else np.zeros((1, X.shape[1]))


def _discriminants(X: Array, y: Array, L: int) -> Array:
    """Linear discriminants (L, R) of centred X (N, R) of total variance 1; zero beyond the first R."""
    N, R = X.shape
    sums = csr_array((np.ones(N), (y, np.arange(N)))) @ X
    means = sums / np.bincount(y)[:, None]
    within = X - means[y]
    # The mean variance of a feature is added to all: with few rows a singular scatter has discriminants of mere noise.
    best = eigh(sums.T @ means / N, within.T @ within / N + np.eye(R) / R)[1].T[::-1]
    return np.vstack([best[:L], np.zeros((max(0, L - R), R))])
