"""K linear SVM problems on the same inputs: objective, optimality and the split into single problems, for any solver.

Shapes everywhere: Z (N, L) inputs · V (K, L), b (K,) SVMs · Y (N, K) signs in {-1, +1} · C (N, K) penalties, 0
where a row takes no part in a problem · alpha (N, K) multipliers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldsvm.typing import Array

Answer = tuple[Array, Array, Array]


def objective(Z: Array, V: Array, b: Array, Y: Array, C: Array) -> Array:
    """1/2 |V_k|^2 + sum_n C_nk max(0, 1 - Y_nk (V_k.z_n + b_k)) for every problem; (K,)."""
    value: Array = 0.5 * np.einsum("kl,kl->k", V, V) + hinges(Z, V, b, Y, C)
    return value


def hinges(Z: Array, V: Array, b: Array, Y: Array, C: Array) -> Array:
    """sum_n C_nk max(0, 1 - Y_nk (V_k.z_n + b_k)) for every problem; (K,)."""
    total: Array = np.einsum("nk,nk->k", C, np.maximum(0.0, 1.0 - Y * (Z @ V.T + b)))
    return total


def duality_gap(Z: Array, V: Array, b: Array, Y: Array, C: Array, alpha: Array) -> Array:
    """Relative duality gap of every problem, from any (V, b) and any multipliers; (K,), never negative.

    The multipliers are first clipped to the box and the heavier sign scaled down until sum_n alpha_n y_n = 0, so the
    dual value is a true lower bound whatever solver they come from.
    """
    return relative_gap(objective(Z, V, b, Y, C), *dual_parts(Z, Y, C, alpha))


def dual_parts(Z: Array, Y: Array, C: Array, alpha: Array) -> tuple[Array, Array]:
    """Return sum alpha (2, K) and sum alpha z (2, K, L) of the rows with Y > 0 and of the others, alpha in its box.

    They add up over rows, and `relative_gap` needs nothing else of the multipliers.
    """
    alpha = np.clip(alpha, 0.0, C)
    sides = [np.where(Y * sign > 0, alpha, 0.0) for sign in (1, -1)]
    return np.stack([side.sum(axis=0) for side in sides]), np.stack([side.T @ Z for side in sides])


def relative_gap(primal: Array, level: Array, moment: Array) -> Array:
    """Relative duality gap (K,) from the objective (K,) and from `dual_parts`."""
    share = level.min(axis=0) / np.where(level > 0, level, 1.0)
    normal = share[0, :, None] * moment[0] - share[1, :, None] * moment[1]
    dual = (share * level).sum(axis=0) - 0.5 * np.einsum("kl,kl->k", normal, normal)
    gap: Array = np.maximum(primal - dual, 0.0) / np.where(primal > 0, primal, 1.0)
    return gap


def one_by_one(fit: Callable[[int, Array, Array, Array], Answer], Z: Array, Y: Array, C: Array) -> Answer:
    """Train every problem alone on the rows with C > 0; a problem with one sign only gets v = 0 and b = that sign.

    ``fit(k, Z, y, c)`` returns v, b and alpha of one problem in any shapes that hold L, 1 and N numbers.
    """
    K = Y.shape[1]
    V, b, alpha = np.zeros((K, Z.shape[1])), np.zeros(K), np.zeros(C.shape)
    for k in range(K):
        rows = C[:, k] > 0
        signs = Y[rows, k]
        if signs.size == 0 or np.all(signs == signs[0]):
            b[k] = signs[0] if signs.size else 0.0
            continue
        v, bias, multipliers = fit(k, Z[rows], signs, C[rows, k])
        V[k], b[k], alpha[rows, k] = v.ravel(), bias.item(), multipliers.ravel()
    return V, b, alpha
