"""Our classifier, by itself and after principal components."""

from __future__ import annotations

from typing import Any


def ours() -> Any:
    """Return our classifier."""
    from ldsvm.estimator import LDSVMClassifier

    return LDSVMClassifier()


def pca_ours() -> Any:
    """Return principal components that keep 95 % of the variance, then our classifier."""
    from sklearn.decomposition import PCA

    from ldsvm.methods.reduced import ReducedLDSVM

    return ReducedLDSVM([("reduce", PCA(0.95)), ("classify", ours())])
