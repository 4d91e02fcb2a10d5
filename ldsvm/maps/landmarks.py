"""Centres that the user gives: as an array, or by an estimator that finds them as k-means does."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from ldsvm.checks import check_values
from ldsvm.typing import Array


def number_of(centers: Any, n_basis: Any) -> int | None:
    """Return how many centres there will be; None where that is known once they are found.

    centers: an array (M, D) or an estimator. n_basis: "scale" follows these; a number is the `n_clusters` of the
    estimator, and of an array what it must have. Raises ValueError.
    """
    array = not hasattr(centers, "fit")
    M = len(centers) if array else None
    if n_basis == "scale":
        return M
    if n_basis is None or isinstance(n_basis, str) or (array and n_basis != M):
        given = f"an array of {M:,} rows" if array else repr(centers)
        raise ValueError(
            f"n_basis={n_basis!r} does not match centers={given}; allowed: 'scale', which takes all centres"
            + (f", or {M}." if array else ", or a number of clusters.")
        )
    return int(n_basis)


def landmarks(
    centers: Any, X: Array, weight: Array | None, n_basis: int | None, random_state: np.random.RandomState
) -> Array:
    """Return the centres (M, D) in float32.

    centers: an array (M, D), or an estimator whose clone has `cluster_centers_` (M, D) after `fit(X)`; its
    `random_state` is drawn where it is None. n_basis: its `n_clusters`, unless None. Raises ValueError.
    """
    if not hasattr(centers, "fit"):
        return as_centers(centers, X.shape[1])
    from sklearn.utils.validation import has_fit_parameter

    from ldsvm.maps.regressor import seeded_clone

    estimator = seeded_clone(centers, random_state)
    if n_basis is not None and "n_clusters" not in estimator.get_params():
        raise ValueError(
            f"n_basis={n_basis} cannot be passed to centers={centers!r}, which has no n_clusters; allowed: 'scale'."
        )
    if weight is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(f"sample_weight cannot be used with centers={centers!r}: its fit takes no sample_weight.")
    if n_basis is not None:
        estimator.set_params(n_clusters=n_basis)
    estimator.fit(X, **({} if weight is None else {"sample_weight": weight}))
    if not hasattr(estimator, "cluster_centers_"):
        raise ValueError(
            f"centers={centers!r} has no cluster_centers_ after fit; allowed: an estimator such as "
            "sklearn.cluster.MiniBatchKMeans, an array (M, D), 'kmeans' or 'random'."
        )
    return as_centers(estimator.cluster_centers_, X.shape[1])


def as_centers(values: Any, D: int) -> Array:
    """Return an array of centres in float32. Raises ValueError unless it is (M, D) of numbers that float32 can hold."""
    found = np.asarray(values.toarray() if sp.issparse(values) else values)
    if found.ndim != 2 or found.shape[1] != D or not len(found) or found.dtype.kind not in "biuf":
        raise ValueError(
            f"centers has shape {found.shape} and type {found.dtype}; allowed: numbers of shape (M, {D}), one row for "
            "each centre and one column for each column of X."
        )
    try:
        check_values(found, largest=1e18)
    except ValueError as error:
        raise ValueError(f"centers: {error}") from None
    return found.astype(np.float32)


def named(centers: Any) -> str:
    """Return a text that is the same for the same centres, and another for others."""
    if isinstance(centers, str):
        return centers
    if hasattr(centers, "fit"):
        return repr(centers)
    values = np.ascontiguousarray(centers, dtype=np.float64)
    return hashlib.sha256(repr(values.shape).encode() + values.tobytes()).hexdigest()
