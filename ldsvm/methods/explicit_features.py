"""A kernel machine through M explicit features: Nyström, random Fourier features, an RBF network by least squares.

All are pipelines of the steps `reduce` (to M = `reduce__n_components` features) and `classify`.
"""

from __future__ import annotations

from typing import Any

from ldsvm.methods import svm
from ldsvm.methods.memory import N_FEATURES
from ldsvm.methods.reductions import two_steps


def nystroem_svm() -> Any:
    """Return a linear SVM on Nyström features; landmarks are training rows drawn at random."""
    from sklearn.kernel_approximation import Nystroem

    return two_steps(Nystroem(n_components=N_FEATURES), svm.linear())


def nystroem_kmeans_svm() -> Any:
    """Return a linear SVM on Nyström features; landmarks are the centres that ours would choose."""
    from ldsvm.methods.approximations import KMeansNystroem

    return two_steps(KMeansNystroem(), svm.linear())


def fourier_svm() -> Any:
    """Return a linear SVM on random Fourier features."""
    from sklearn.kernel_approximation import RBFSampler

    return two_steps(RBFSampler(gamma="scale", n_components=N_FEATURES), svm.linear())


def rbf_network() -> Any:
    """Return ridge regression of the classes' indicators on Gaussians around the centres that ours would choose.

    The basis is that of our classifier with the same seed and width, so that what differs is the joint training.
    """
    from sklearn.linear_model import RidgeClassifier

    from ldsvm.methods.approximations import KMeansGaussians

    return two_steps(KMeansGaussians(), RidgeClassifier(alpha=1e-3))
