"""Reduce the dimension first, classify then: pipelines of the steps `reduce` and `classify`.

Without a search they reduce to two dimensions, which can be looked at, as the paper does, except that PCA keeps 95 % of
the variance and discriminants are as many as there can be, K - 1 for K classes.
"""

from __future__ import annotations

from typing import Any

from ldsvm.methods import neighbours, svm


def two_steps(reduce: Any, classify: Any) -> Any:
    """Return an unfitted pipeline; its parameters are `reduce__…` and `classify__…`."""
    from sklearn.pipeline import Pipeline

    return Pipeline([("reduce", reduce), ("classify", classify)])


def pca_nn() -> Any:
    """Return principal components, then the nearest neighbour."""
    return two_steps(_pca(), neighbours.nearest())


def kpca_nn() -> Any:
    """Return kernel principal components of a Gaussian kernel, then the nearest neighbour."""
    from sklearn.decomposition import KernelPCA

    # ARPACK finds the few leading components without a second N x N matrix, and copy_X would keep X twice.
    return two_steps(KernelPCA(2, kernel="rbf", eigen_solver="arpack", copy_X=False), neighbours.nearest())


def lda_nn() -> Any:
    """Return linear discriminants (at most K - 1), then the nearest neighbour."""
    return two_steps(_lda(), neighbours.nearest())


def klda_nn() -> Any:
    """Return kernel discriminants of a Gaussian kernel (K - 1), then the nearest neighbour."""
    from ldsvm.methods.klda import KernelDiscriminant

    return two_steps(KernelDiscriminant(), neighbours.nearest())


def lmnn_nn() -> Any:
    """Return a large-margin map of the inputs themselves with the paper's three targets, then the nearest neighbour."""
    from ldsvm.methods.lmnn import LargeMarginNN

    return two_steps(LargeMarginNN(2, n_neighbors=3), neighbours.nearest())


def nca_nn() -> Any:
    """Return neighbourhood components, then the nearest neighbour."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    return two_steps(NeighborhoodComponentsAnalysis(2), neighbours.nearest())


def pca_gaussian_svm() -> Any:
    """Return principal components, then Gaussian SVMs, one SVM against the rest for each class."""
    return two_steps(_pca(), svm.gaussian_one_vs_rest())


def lda_gaussian_svm() -> Any:
    """Return linear discriminants (at most K - 1), then Gaussian SVMs, one against the rest for each class."""
    return two_steps(_lda(), svm.gaussian_one_vs_rest())


def _pca() -> Any:
    from sklearn.decomposition import PCA

    return PCA(0.95)


def _lda() -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    # Constant inputs, such as the borders of images, make the scatter within classes singular: some ridge is needed.
    return LinearDiscriminantAnalysis(solver="eigen", shrinkage=1e-3)
