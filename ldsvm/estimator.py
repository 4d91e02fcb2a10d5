"""LDSVMClassifier: parameters and validation; the mathematics is in `ldsvm.mac` and `ldsvm.maps`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ldsvm import threads
from ldsvm.blocks.row_blocks import RowBlocks
from ldsvm.calibration import METHODS, Calibrator, available
from ldsvm.checks import check_X, label_array
from ldsvm.mac.g_step import SOLVERS
from ldsvm.mac.loop import Callback
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.start import STARTS
from ldsvm.mac.state import Solution
from ldsvm.mac.stopping import unfinished
from ldsvm.mac.z_step import solver_by_name
from ldsvm.maps.families import DEFAULT_BASIS, family_of
from ldsvm.maps.features import BasisMap
from ldsvm.maps.linear import Identity
from ldsvm.maps.rbf import Gaussians
from ldsvm.maps.sensitivity import importances
from ldsvm.training import options_of, prepare, reported, shape_choices, train, unchanged_by_failure
from ldsvm.typing import Array


class LDSVMClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Low-dimensional SVM: a nonlinear map into a few latent dimensions and a linear SVM on top, trained jointly.

    The classifier is g(F(x)) with F(x) = W' phi(x) of M Gaussian basis functions and g linear SVMs in L dimensions.
    Training alternates three exact, convex steps (method of auxiliary coordinates): a small QP per sample for its
    latent coordinates, linear SVMs on the coordinates, ridge regression of the coordinates on the inputs. Scale
    features to comparable ranges first, as for any Gaussian kernel.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        L, the latent dimensions. "auto" is K - 1 for K classes, where the classes can sit on a regular simplex and
        more dimensions no longer widen the margin (section "The role of dimension reduction" of the paper): further
        dimensions stay unused. "auto" is at most 50, since the SVMs cost O(K N L^2) (with L = K - 1 and N in
        proportion to K, that is K^4), while many classes sit nearly as far apart in 50 dimensions (300 classes at 0.9
        of the simplex's distance). Fewer dimensions trade accuracy for a picture: for many classes in two dimensions
        use ``multi_class="ovo"`` and stop early.
    map : {"rbf", "adaptive_rbf", "linear"} or a scikit-learn regressor, default="rbf"
        The map F. "rbf" has Gaussian basis functions with fixed centres. "adaptive_rbf" also learns the centres, and a
        width for each, in every F-step, so that fewer are needed; search ``alpha`` with it. "linear" accepts sparse X.
        A regressor is cloned and refitted in every F-step; it must predict L outputs (wrap one that predicts a single
        output in sklearn.multioutput.MultiOutputRegressor).
    n_basis : int, "scale", "auto" or None, default="scale"
        M, the number of basis functions of ``map="rbf"`` and "adaptive_rbf". A prediction costs O(M D). "scale" is a
        quarter of the rows, between 150 and 300, or 30 per class if that is more, up to 1,000. "auto" tries 32, 64,
        128, … and takes the smallest whose error on the validation rows, which it needs, is within 0.2 % of the best;
        see `ldsvm.size_path` for the whole curve and `ldsvm.smallest` for budgets of time and memory. None makes every
        distinct training row a centre (the paper's "nonparametric" map; the fitted model then holds training data).
        M is reduced to the number of distinct training rows, with a warning unless ``n_basis`` is the default.
    centers : {"kmeans", "random"}, array-like (M, D) or estimator, default="kmeans"
        The centres, or with ``map="adaptive_rbf"`` their starting values: k-means on X, distinct training rows drawn
        at random, the rows of an array, or the ``cluster_centers_`` of an estimator such as scikit-learn's
        MiniBatchKMeans (a clone is fitted to X). With an array or an estimator, ``n_basis="scale"`` takes all its
        centres; a number sets the ``n_clusters`` of the estimator.
    gamma : float, "scale" or "auto", default="auto"
        Width of ``phi_m(x) = exp(-gamma |x - c_m|^2)``, ``gamma = 1 / (2 sigma^2)`` in the paper's letters. "scale" is
        1 / (D Var(X)), as in scikit-learn's SVC. "auto" is 0.1, 0.3, 1, 3 or 10 times that, chosen together with
        ``alpha``. With ``map="adaptive_rbf"`` the learned widths start at this value, and "auto" chooses among 1, 3
        and 10 times "scale".
    center_steps : int or "auto", default="auto"
        Number of gradient steps, of 100 rows each, that move the centres of ``map="adaptive_rbf"`` in the first F-step;
        later F-steps take a fifth as many, or with ``z_follows`` as many. Training time is proportional to this number.
        "auto" takes no such steps for up to 100,000 rows in an array, but one step of L-BFGS on all rows for every 50
        of them, from 60 to 200 steps, in the first F-step, and later ones keep the centres: the error is lower, and up
        to some 10,000 rows the time too. Otherwise, and with ``z_follows``, it uses every row 100 times, in at least
        1,000 and at most 50,000 steps.
    z_follows : bool, default=False
        Update Z together with F in the later F-steps of ``map="adaptive_rbf"``: the Z-step is repeated for each batch
        of rows, so that an F-step lowers the penalised objective over F and Z jointly, whatever ``z_solver`` is. This
        lowers the test error when there are more rows than the map can fit, as with distorted copies of images; with
        few rows it overfits.
    C : float, default=1.0
        Penalty of the hinge loss, common to all SVMs. Search it on validation data, from 1e-3 to 1e3 (`ldsvm.fit_path`
        shares the work). A larger C fits the training rows more closely and takes more iterations; use early stopping
        with it.
    alpha : float or "auto", default="auto"
        Ridge penalty of the map (the paper's lambda). "auto" takes the power of ten from 1e-6 to 100 with the fewest
        leave-one-out errors of the first regression; these have a closed form, so that no row is set aside and nothing
        is fitted twice. It uses at most 2,000 rows and 500 centres. With ``map="adaptive_rbf"``, which fits more
        closely, search it from 1e-2 to 10; fewer or noisier rows need a larger one.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the rows of each class. "balanced" is N / (K N_k) for class k with N_k rows (sums of their
        weights, if given), as in scikit-learn's SVC, so that all classes have the same weight in the hinge loss. The
        regression of the map is not affected.
    multi_class : {"ovr", "ovo"}, default="ovr"
        One-vs-all as in the paper, or one-vs-one with votes.
    init : {"simplex", "random", "pca"} or array of shape (n_samples, n_components), default="simplex"
        Starting coordinates. "simplex" puts the classes as far apart as the dimensions allow; "random" gives
        every class one random centroid; "pca" takes the principal coordinates of X.
    mu, mu_factor : float, default=2.0, 1.5
        The quadratic penalty starts at ``mu`` and is multiplied by ``mu_factor`` whenever the alternation at fixed
        mu has converged.
    mu_max : float or "auto", default="auto"
        The largest mu. As mu grows, the hinge is smoothed less and the effective ridge 2 alpha / mu falls: both fit the
        training rows more closely, and only validation rows can tell how long that helps. "auto" is 1e6 with
        validation rows, and for an ``init`` that does not separate the classes; otherwise it is twice ``mu``, and
        training ends when the steps there have converged.
    tol : float, default=1e-2
        Relative tolerance. The alternation at fixed mu has converged when the penalised objective falls by less than
        this fraction, and training when ``|Z - F(X)|`` is below this fraction of ``|F(X)|``.
    max_iter : int, default=200
        Maximum number of MAC iterations; reaching it gives a ConvergenceWarning.
    early_stopping : bool, default=False
        Set aside a stratified fraction ``validation_fraction`` of the rows, stop when the error on them has not fallen
        for ``n_iter_no_change`` iterations, and keep the best iteration. An ``eval_set`` given to `fit` does the same
        with your own rows.
    validation_fraction : float, default=0.1
        Fraction of the rows that ``early_stopping`` sets aside.
    n_iter_no_change : int, default=10
        Iterations without a lower validation error after which training stops.
    time_limit : float or None, default=None
        Seconds from the call of `fit` after which no new iteration begins; an iteration that has begun is finished.
        The start (centres, features, first map and SVMs) is always finished; if it takes longer than the limit, its
        model is kept, with a ConvergenceWarning. In `fit_path` the limit holds for each C, after the shared
        preparation; with ``n_basis="auto"`` it holds for each size.
    z_solver : str, default="batched"
        Solver of the Z-step: "batched" (exact active sets, all samples at a time), "osqp" (one workspace per class), or
        any installed solver of qpsolvers by name.
    g_solver : {"ipm", "libsvm", "liblinear"}, default="ipm"
        Solver of the SVMs: "ipm" is our exact interior-point method; the others are scikit-learn's, as references.
    calibration : {"auto", "sigmoid", "temperature", "isotonic"} or None, default="auto"
        How ``predict_proba`` turns scores into probabilities. "temperature" is the softmax of the scores times a
        number; "auto" has a separate number for each predicted class. With both, the most probable class is always
        that of `predict`; with "sigmoid" (one per column of scores, normalised) and "isotonic" (for thousands of rows)
        it can differ. They are fitted on the validation rows. With ``map="rbf"`` and "linear" they are also fitted on
        at most 5,000 training rows, by their leave-one-out scores, which have a closed form: that takes about a tenth
        of the time of a fit. Other maps have probabilities only with validation rows. With ``multi_class="ovo"`` the
        scores are votes, with ties broken by the confidences. None: no ``predict_proba``.
    warm_start : bool, default=False
        Continue from the basis, weights and SVMs of the previous fit, provided that features, classes and the
        parameters that determine basis and SVMs are unchanged. ``n_basis="scale"`` then keeps its number, also with
        more rows.
    n_jobs : int or None, default=None
        Number of threads. None leaves BLAS as it is and uses the cores of this process (at most OMP_NUM_THREADS). In a
        process forked after a fit, use 1, or spawn it instead: with more, the OpenMP of scikit-learn's k-means hangs.
    random_state : int, RandomState or None, default=None
        Seed of the centres, the random start and the validation split. On one machine, the same seed and ``n_jobs``
        give bit-identical models.
    verbose : int, default=0
        1 prints a line for each iteration to standard error.

    Attributes
    ----------
    classes_ : (K,) labels.
    latent_coef_, intercept_ : (n_svms, L) and (n_svms,) linear SVMs V and b on the latent space.
    coef_ : (n_svms, D) weights of the inputs; only with ``map="linear"``.
    feature_importances_ : (D,) the mean squared slope of the scores along each input, times its variance, scaled to sum
        1 (all 0 if the scores are constant); only with ``map="rbf"`` and "adaptive_rbf". It describes the model: an
        input that others could replace may have a large importance, while sklearn.inspection.permutation_importance
        finds none.
    centers_ : (M, D) centres; only with ``map="rbf"`` and "adaptive_rbf".
    map_ : the fitted F.
    n_basis_ : number of basis functions evaluated per prediction: M; D for a linear map; for a regressor, the rows that
        it keeps if it is a kernel method, else L.
    n_components_ : L.
    gamma_ : the gamma used; with ``map="adaptive_rbf"`` (M,), one for each centre; only with ``map="rbf"`` and
        "adaptive_rbf".
    alpha_ : ridge used, 0 with a regressor.
    history_ : one dict per iteration (0 is the start): iteration, mu, nested, penalised, distance, train_error,
        valid_error, kkt (residual of the Z-step), gap (of the g-step), seconds_z, seconds_g, seconds_f.
    n_iter_, best_iter_ : the number of iterations, and the one whose model was kept.
    stop_reason_ : "early_stopping", "converged", "settled" (converged at the last mu, with ``mu_max="auto"``),
        "mu_max", "max_iter", "time_limit" or "callback"; the limits mu_max, max_iter and time_limit also give a
        ConvergenceWarning that says what helps.
    calibrator_ : the function from scores to probabilities, or None.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    References
    ----------
    W. Wang and M. Á. Carreira-Perpiñán, "The role of dimensionality reduction in linear classification", 2014.

    Notes
    -----
    In a pipeline, the rows of an ``eval_set`` must already be transformed by the earlier steps; with
    ``early_stopping=True`` the pipeline does this by itself.

    Temporary arrays cover a block of rows at a time and take at most 20 MB per thread, or less if
    ``sklearn.set_config(working_memory=...)`` sets fewer MiB. In addition, training keeps the features phi(X): in
    float64 if that takes at most 32 MB, else in float32, 4 N M bytes. ``map="adaptive_rbf"`` does not keep them.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from ldsvm import LDSVMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    >>> model = LDSVMClassifier(n_basis=200, C=0.1, early_stopping=True, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.97
    True
    >>> model.transform(X_test).shape
    (450, 9)
    >>> model.predict_proba(X_test).sum(axis=1).round(6).tolist() == [1.0] * 450
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "map": [StrOptions({"rbf", "adaptive_rbf", "linear"}), HasMethods(["fit", "predict"])],
        "n_basis": [Interval(Integral, 1, None, closed="left"), StrOptions({"scale", "auto"}), None],
        "centers": [StrOptions({"kmeans", "random"}), "array-like", HasMethods(["fit"])],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale", "auto"})],
        "center_steps": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "z_follows": ["boolean"],
        "C": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "init": [StrOptions(set(STARTS)), "array-like"],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "mu_factor": [Interval(Real, 1, None, closed="neither")],
        "mu_max": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "z_solver": [str],
        "g_solver": [StrOptions(set(SOLVERS))],
        "calibration": [StrOptions({"auto", *METHODS}), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        map: Any = "rbf",
        n_basis: int | str | None = DEFAULT_BASIS,
        centers: Any = "kmeans",
        gamma: float | str = "auto",
        center_steps: int | str = "auto",
        z_follows: bool = False,
        C: float = 1.0,
        alpha: float | str = "auto",
        class_weight: Any = None,
        multi_class: str = "ovr",
        init: Any = "simplex",
        mu: float = 2.0,
        mu_factor: float = 1.5,
        mu_max: float | str = "auto",
        tol: float = 1e-2,
        max_iter: int = 200,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        time_limit: float | None = None,
        z_solver: str = "batched",
        g_solver: str = "ipm",
        calibration: str | None = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.map = map
        self.n_basis = n_basis
        self.centers = centers
        self.gamma = gamma
        self.center_steps = center_steps
        self.z_follows = z_follows
        self.C = C
        self.alpha = alpha
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.init = init
        self.mu = mu
        self.mu_factor = mu_factor
        self.mu_max = mu_max
        self.tol = tol
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.time_limit = time_limit
        self.z_solver = z_solver
        self.g_solver = g_solver
        self.calibration = calibration
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, eval_set: Any = None,
        callback: Callback | None = None, executor: Any = None, checkpoint: str | os.PathLike[str] | None = None,
    ) -> LDSVMClassifier:  # fmt: skip
        """Train on X (N, D), y (N,), or on `RowBlocks` with labels of their own.

        Parameters
        ----------
        X : array-like or sparse matrix (N, D), or RowBlocks
        y : array-like (N,), any labels; None with RowBlocks
        sample_weight : array-like (N,), default=None
            A weight w counts a row w times, in every step; 0 leaves it out.
        eval_set : tuple (X_valid, y_valid), default=None
            Validation rows for early stopping. They choose the iteration that is kept, and calibrate the probabilities.
            With RowBlocks as X, they may be RowBlocks too.
        callback : callable, default=None
            Called with the dict of every iteration (see ``history_``); training stops when it returns true.
        executor : Serial, Threads or OnRay of ldsvm.blocks, default=None
            How to work on RowBlocks, or on X and y as a single block. None means Serial() for RowBlocks.
        checkpoint : path, default=None
            With RowBlocks, a file that stores the model after every iteration. If it exists, the fit continues from it.
            It is removed when the fit has ended, unless it ended by ``max_iter`` or ``time_limit``.

        Raises
        ------
        ValueError : if a parameter, label, weight or value of X is not allowed; the message names it.
        TypeError : sparse X with a map that needs dense X.

        Returns
        -------
        self
        """
        options = options_of(self)  # time_limit counts from here
        self._validate_params()
        by_blocks = isinstance(X, RowBlocks) or executor is not None or checkpoint is not None
        if self.n_basis == "auto" and not by_blocks:
            from ldsvm.auto_size import automatic

            chosen = automatic(self, X, y, sample_weight, eval_set=eval_set, callback=callback)
            self.__dict__ = {**vars(chosen), **self.get_params(deep=False)}
            return self
        report = reported(self.verbose, callback)
        with unchanged_by_failure(self):
            if by_blocks:
                from ldsvm.blocks import fitting

                rows = X, y, sample_weight, eval_set
                return self._keep(*fitting.fit(self, *rows, options, report, executor, checkpoint))
            with threads.limit(self.n_jobs):
                return self._keep(*train(self, prepare(self, X, y, sample_weight, eval_set), report, options))

    def decision_function(self, X: Any) -> Array:
        """Scores (N, K), of which the largest wins, or (N,) for two classes, where positive means ``classes_[1]``.

        One-vs-one gives votes with ties broken by confidence, as in scikit-learn's SVC. Here and in the other methods
        X may be RowBlocks: they are read block by block, and must have the same steps (`RowBlocks.then`) as the
        training rows.
        """
        return self._each(X, self._scores)

    def predict(self, X: Any) -> Any:
        """Labels (N,) with the largest score."""
        return self._each(X, self._labels)

    @available_if(available)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (N, K) of the classes; each row sums to 1. See ``calibration``."""
        return self._each(X, self._probabilities)

    @available_if(available)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities (N, K); -inf for 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def transform(self, X: Any) -> Array:
        """Latent coordinates F(X) (N, L), in the precision of X."""
        return self._each(X, self._coordinates)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows whose label is predicted correctly. Leave y out with RowBlocks."""
        if not isinstance(X, RowBlocks):
            if y is None:
                raise TypeError("score needs y, the labels of X; it may be left out with RowBlocks only.")
            return float(super().score(X, label_array(y), sample_weight))
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight must be left out when X is RowBlocks.")
        from ldsvm.blocks import prediction

        check_is_fitted(self, "map_")
        return prediction.score(self, X, self._labels)

    def _each(self, X: Any, function: Callable[[Any], Any]) -> Any:
        """The function's results for checked X (n, D), or for all blocks of rows."""
        check_is_fitted(self, "map_")
        if not isinstance(X, RowBlocks):
            return function(check_X(self, X, sparse=self._sparse, reset=False))
        from ldsvm.blocks import prediction

        return prediction.each(self, X, function)

    def _scores(self, X: Any) -> Array:
        with self._threads(X):
            return self._scheme.scores(self.map_.decide(X, self.latent_coef_, self.intercept_))

    def _scores_and_coordinates(self, X: Any) -> tuple[Array, Array]:
        """What `decision_function` and `transform` give for checked X (n, D), in one pass."""
        with self._threads(X):
            decisions, F = self.map_.both(X, self.latent_coef_, self.intercept_)
            return self._scheme.scores(decisions), F

    def _labels(self, X: Any) -> Any:
        return self.classes_[self._scheme.classes(self._scores(X))]

    def _probabilities(self, X: Any) -> Array:
        calibrator: Any = self.calibrator_
        return np.asarray(calibrator(self._scores(X)))

    def _coordinates(self, X: Any) -> Array:
        with self._threads(X):
            F: Array = self.map_(X)
        return F

    @property
    def coef_(self) -> Array:
        """Weights of the inputs (n_svms, D), which scikit-learn's feature selection reads; only with map="linear"."""
        mapping = self.__dict__.get("map_")
        if isinstance(mapping, BasisMap) and isinstance(mapping.basis, Identity):
            weights: Array = self.latent_coef_ @ mapping.W.T
            return weights
        raise AttributeError(
            f"{type(self).__name__} has coef_ only when fitted with map='linear'; with other maps, use "
            "feature_importances_ for the inputs, or latent_coef_ for the latent dimensions."
        )

    @property
    def feature_importances_(self) -> Array:
        """Importances of the inputs (D,), by how strongly the scores change; only with map="rbf" and "adaptive_rbf"."""
        mapping = self.__dict__.get("map_")
        if isinstance(mapping, BasisMap) and isinstance(mapping.basis, Gaussians):
            return importances(mapping, self.latent_coef_)
        raise AttributeError(
            f"{type(self).__name__} has feature_importances_ only when fitted with map='rbf' or 'adaptive_rbf'; "
            "with other maps, use coef_ (map='linear') or sklearn.inspection.permutation_importance."
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "coef_" in state:  # the name of latent_coef_ in models of earlier versions
            state = {"latent_coef_" if name == "coef_" else name: value for name, value in state.items()}
        if "alpha" in state and state["alpha"] != "auto":
            state = {"alpha_": state["alpha"], **state}
        super().__setstate__({**LDSVMClassifier().get_params(), **state})  # parameters that they did not have

    def _threads(self, X: Any) -> AbstractContextManager[Any]:
        """Limit BLAS to the number of threads that pays for mapping X (n, D)."""
        return threads.limit(threads.worth(self.n_jobs, X.shape[0] * X.shape[1] * self.n_basis_))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = family_of(self).sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate_params(self) -> None:
        """Check each parameter by itself, then what scikit-learn's constraints cannot express."""
        super()._validate_params()
        for name in ("n_components", "n_basis", "center_steps"):
            if isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)} must be a whole number, not a bool.")
        if not isinstance(self.mu_max, str) and self.mu > self.mu_max:
            raise ValueError(f"mu={self.mu} must be at most mu_max={self.mu_max}.")
        solver_by_name(self.z_solver)  # an unknown name fails now, not after minutes of features

    def _keep(
        self, solution: Solution, classes: Any, scheme: Scheme, alpha: float, calibrator: Calibrator | None
    ) -> LDSVMClassifier:
        if (remark := unfinished(solution, options_of(self))) is not None:
            warnings.warn(remark, ConvergenceWarning, stacklevel=3)
        self.classes_, self.alpha_, self.calibrator_ = classes, alpha, calibrator
        # As they were when fitted: a later set_params must not change what the SVMs mean.
        self._scheme, self._sparse = scheme, family_of(self).sparse
        self._shape_fitted = shape_choices(self)
        self.map_, self.latent_coef_, self.intercept_ = solution.mapping, solution.V, solution.b
        self.n_components_ = solution.V.shape[1]
        self.n_basis_ = solution.mapping.n_basis
        self.history_, self.n_iter_, self.best_iter_ = solution.history, solution.n_iter, solution.best_iter
        self.stop_reason_ = solution.reason.name.lower()
        for name in ("centers_", "gamma_"):
            self.__dict__.pop(name, None)  # of an earlier fit with another map
        if isinstance(self.map_, BasisMap) and isinstance(self.map_.basis, Gaussians):
            self.centers_, self.gamma_ = self.map_.basis.centers, self.map_.basis.gamma
        return self
