"""M explicit features of a Gaussian kernel, around centres that k-means finds."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ldsvm import threads
from ldsvm.maps.rbf import RBF
from ldsvm.methods.memory import N_FEATURES
from ldsvm.typing import Array


class KMeansGaussians(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features exp(-gamma |x - c|²) around k-means centres c: the basis of LDSVMClassifier with the same parameters.

    Parameters
    ----------
    n_components : M, reduced to the number of distinct training rows; default=300.
    gamma : float or "scale", default="scale"; 1 / (D Var(X)) as in scikit-learn's SVC.
    n_jobs, random_state : as in LDSVMClassifier, default=None.

    Attributes
    ----------
    centers_ : (M, D) in float32. gamma_ : the width used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> KMeansGaussians(20, random_state=0).fit_transform(X).shape
    (150, 20)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = N_FEATURES,
        *,
        gamma: float | str = "scale",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> KMeansGaussians:
        """Choose the centres from X (N, D); y is not looked at."""
        self._validate_params()
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        family = RBF(self.n_components, "kmeans", self.gamma, 0.0, asked=False)
        with threads.limit(self.n_jobs):
            cores = threads.n_threads(self.n_jobs)
            basis: Any = family.basis(X, None, check_random_state(self.random_state), cores, None)
        self._basis, self.centers_, self.gamma_ = basis, basis.centers, basis.gamma
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, M) of X (n, D) in float64: least squares on them would be singular in float32."""
        check_is_fitted(self)
        features: Array = self._basis(validate_data(self, X, dtype=np.float64, reset=False), np.float64)
        return features

    @property
    def _n_features_out(self) -> int:
        return len(self.centers_)


class KMeansNystroem(KMeansGaussians):
    """Nyström features on k-means landmarks: the Gaussians times the inverse root of their own kernel matrix.

    Parameters and attributes are those of `KMeansGaussians`, and ``normalization_`` (M, M).

    References
    ----------
    K. Zhang, I. W. Tsang and J. T. Kwok, "Improved Nyström low-rank approximation and error analysis", ICML 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> X, y = load_iris(return_X_y=True)
    >>> Z = KMeansNystroem(20, gamma=0.1, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - rbf_kernel(X, gamma=0.1)).max() < 0.01)
    True
    """

    def fit(self, X: Any, y: Any = None) -> KMeansNystroem:
        """Choose the landmarks from X (N, D); y is not looked at."""
        from sklearn.kernel_approximation import Nystroem

        super().fit(X)
        landmarks = self.centers_.astype(np.float64)  # with as many components as rows it only orders them anew
        found = Nystroem(gamma=self.gamma_, n_components=len(landmarks), random_state=0).fit(landmarks)
        order = np.argsort(found.component_indices_)
        self.normalization_ = found.normalization_[np.ix_(order, order)]
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, M) of X (n, D), whose products approximate the kernel."""
        return super().transform(X) @ self.normalization_.T
