"""How far classes have collapsed onto the corners of a regular simplex, in numbers ("neural collapse").

V. Papyan, X. Y. Han and D. L. Donoho, "Prevalence of neural collapse during the terminal phase of deep learning
training", PNAS 117 (2020), call the first within-class variability collapse (NC1) and the second convergence to a
simplex (NC2). Neither depends on where Z lies, how it is turned, or how large it is.
"""

from __future__ import annotations

import numpy as np

from ldsvm.mac.scheme import Labels
from ldsvm.typing import Array

FLAT = 1e-10  # directions in which the class means vary less, relative to the largest, are no directions of theirs


def within_to_between(Z: Array, y: Labels) -> float:
    """NC1 = trace(S_W S_B^+) / K: 0 when every class is a point; the classes' spread in units of their distances.

    Z (N, L) with class indices y (N,) from 0 to K - 1. S_W is the mean of (z - m_k)(z - m_k)' over all samples, S_B
    that of (m_k - m)(m_k - m)' over the class means m_k, m being the mean of these, and ^+ the pseudoinverse.
    Infinite when all class means are the same.

    Examples
    --------
    >>> within_to_between(np.array([[0.0], [2.0], [10.0], [12.0]]), np.array([0, 0, 1, 1]))
    0.02
    """
    means = class_means(Z, y)
    rest, centred = Z - means[y], means - means.mean(axis=0)
    if not centred.any():
        return float("inf")
    within, between = rest.T @ rest / len(Z), centred.T @ centred / len(means)
    return float(np.trace(within @ np.linalg.pinv(between, rcond=FLAT, hermitian=True)) / len(means))


def from_simplex(Z: Array, y: Labels) -> float:
    """NC2 = |G / |G| - S / |S||, Frobenius norms: 0 when the class means are the corners of a regular simplex.

    G (K, K) is the Gram matrix of the centred class means, S = I - 11'/K that of a simplex, as in Z. Zhu et al., "A
    geometric analysis of neural collapse with unconstrained features", NeurIPS 2021. It lies between 0 and the square
    root of 2; two classes are always a simplex. NaN when all class means are the same.

    Examples
    --------
    >>> round(from_simplex(np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 2])), 4)
    0.7654
    """
    centred = class_means(Z, y)
    centred = centred - centred.mean(axis=0)
    gram = centred @ centred.T
    size = float(np.linalg.norm(gram))
    if size == 0:
        return float("nan")
    K = len(gram)
    return float(np.linalg.norm(gram / size - (np.eye(K) - 1.0 / K) / np.sqrt(K - 1.0)))


def least_from_simplex(K: int, L: int) -> float:
    """The smallest NC2 that K class means in L dimensions can have: that of the simplex's best shadow there.

    Examples
    --------
    >>> least_from_simplex(3, 2), round(least_from_simplex(3, 1), 4)
    (0.0, 0.7654)
    """
    return float(np.sqrt(2.0 - 2.0 * np.sqrt(min(1.0, L / (K - 1)))))


def class_means(Z: Array, y: Labels) -> Array:
    """Means (K, L) of the classes."""
    return np.stack([Z[y == k].mean(axis=0) for k in range(int(y.max()) + 1)])
