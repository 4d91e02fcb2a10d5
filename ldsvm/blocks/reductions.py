"""Scaling and principal components of rows in blocks, from sums, as fitted estimators of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ldsvm import threads
from ldsvm.blocks.executors import Team, chosen
from ldsvm.blocks.preparation import look
from ldsvm.blocks.source import Rows, check_count
from ldsvm.typing import Array


def scaler(rows: Rows, executor: Any) -> Any:
    """Return a fitted sklearn StandardScaler of all rows."""
    from sklearn.preprocessing import StandardScaler

    with chosen(executor).team(rows, None, None) as team:
        N, mean = begin(team)
        variance = team.sum("column_squares", mean) / N
    out = StandardScaler()
    out.mean_, out.var_, out.n_samples_seen_, out.n_features_in_ = mean, variance, N, len(mean)
    out.scale_ = np.where(variance > 10 * np.finfo(np.float64).eps * mean**2, np.sqrt(variance), 1.0)
    return out


def pca(rows: Rows, n_components: int, executor: Any) -> Any:
    """Return a fitted sklearn PCA of all rows."""
    from sklearn.decomposition import PCA

    check_count("n_components", n_components, 1)
    with chosen(executor).team(rows, None, None) as team:
        N, mean = begin(team)
        cross = team.sum("cross_products", mean)
    D = len(mean)
    if n_components > min(N, D):
        raise ValueError(f"n_components={n_components} must be from 1 to {min(N, D)}, for {N:,} rows of {D} inputs.")
    with threads.alone():  # of BLAS's threads all but one would wait by running idle
        values, vectors = scipy.linalg.eigh(cross / max(N - 1, 1), subset_by_index=[D - n_components, D - 1])
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
    # the sign is free: the largest entry is positive, as in scikit-learn
    largest = np.abs(vectors).argmax(axis=1)
    vectors = vectors * np.sign(vectors[np.arange(n_components), largest])[:, None]
    out, whole = PCA(n_components), float(np.trace(cross)) / max(N - 1, 1)
    out.mean_, out.components_, out.explained_variance_ = mean, vectors, values
    out.explained_variance_ratio_ = values / whole if whole > 0 else values
    out.singular_values_ = np.sqrt(values * max(N - 1, 1))
    out.noise_variance_ = (whole - values.sum()) / (min(N, D) - n_components) if n_components < min(N, D) else 0.0
    out.n_components_, out.n_samples_, out.n_features_in_ = n_components, N, D
    return out


def begin(team: Team) -> tuple[int, Array]:
    """Read all rows once; return how many there are, and their mean (D,)."""
    facts = look(team)
    return facts.N, team.sum("column_sums") / facts.N
