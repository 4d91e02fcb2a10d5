"""The dual of the Z-step: one small box-constrained QP per row, solved exactly for all rows.

For one row with r_k = 1 - y_k (V_k.f + b_k) and Q_kl = 1/2 y_k y_l V_k.V_l (dual of e:svm-optZm)

    max_alpha  sum_k alpha_k r_k - 1/2 alpha' Q alpha,   0 <= alpha_k <= c_k,   z = f + 1/2 sum_k alpha_k y_k V_k.

The gradient is 1 - m_k with the margins m_k = y_k (V_k.z + b_k). Q has rank at most L, so it is singular when there
are more SVMs than latent dimensions; the active set below only ever factors an independent subset.
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers.compiled import entry, kernel
from ldsvm.threads import Blocks
from ldsvm.typing import Array

# A pivot below this share of its diagonal counts as zero: the row depends on the free set.
DEPENDENT = 1e-11
# The active set stops when the row's residual (see `residual`) is below this, or below what rounding allows.
TOLERANCE = 1e-10
# Sweeps of coordinate ascent before the active set: enough to guess most of the free set, not to converge.
SWEEPS = 4
ROUNDING = 8 * np.finfo(np.float64).eps


@kernel
def _append(chol, order, size, gram, signs, j):
    """Row `size` of the Cholesky factor for variable j; returns the squared pivot (0 where j depends on the set)."""
    total = gram[j, j]
    for a in range(size):
        i = order[a]
        value = signs[i] * signs[j] * gram[i, j]
        for p in range(a):
            value -= chol[a, p] * chol[size, p]
        value /= chol[a, a]
        chol[size, a] = value
        total -= value * value
    if total <= DEPENDENT * gram[j, j]:
        return 0.0
    chol[size, size] = np.sqrt(total)
    return total


@kernel
def _back_substitute(chol, size, row, out):
    """out = L^-T row, the second half of a Cholesky solve (the first half is a row of the factor already)."""
    for a in range(size - 1, -1, -1):
        value = row[a]
        for p in range(a + 1, size):
            value -= chol[p, a] * out[p]
        out[a] = value / chol[a, a]


@kernel
def _drop(chol, order, where, size, gram, signs):
    """Remove the variable at position `where` and refactor what follows it; returns the new size."""
    rest = size - where - 1
    for a in range(rest):
        order[where + a] = order[where + a + 1]
    kept = where
    for a in range(rest):
        j = order[where + a]
        if _append(chol, order, kept, gram, signs, j) > 0.0:
            order[kept] = j
            kept += 1
    return kept


@kernel
def _gradient(alpha, active, count, signs, V, b, f, z, slope):
    """z = f + 1/2 sum alpha_k y_k V_k and slope_k = 1 - y_k (V_k.z + b_k) for the SVMs that take part."""
    L = f.shape[0]
    for i in range(L):
        z[i] = f[i]
    for a in range(count):
        k = active[a]
        if alpha[k] != 0.0:
            step = 0.5 * alpha[k] * signs[k]
            for i in range(L):
                z[i] += step * V[k, i]
    for a in range(count):
        k = active[a]
        margin = b[k]
        for i in range(L):
            margin += V[k, i] * z[i]
        slope[k] = 1.0 - signs[k] * margin


@kernel
def _violation(k, alpha, upper, slope, q):
    """q_k |alpha_k - clip(alpha_k + slope_k / q_k, 0, c_k)| with q_k = 1/2 |V_k|^2."""
    target = alpha[k] + slope[k] / q
    if target < 0.0:
        target = 0.0
    elif target > upper[k]:
        target = upper[k]
    return q * abs(alpha[k] - target)


@kernel
def _sweep(alpha, upper, active, count, signs, gram, pull):
    """Coordinate ascent, SWEEPS times over the SVMs: a good guess of which multipliers end inside their box.

    pull_k = y_k slope_k, so that one change of alpha_k is one scaled row of the Gram matrix.
    """
    K = alpha.shape[0]
    for _ in range(SWEEPS):
        moved = False
        for a in range(count):
            k = active[a]
            target = alpha[k] + signs[k] * pull[k] / gram[k, k]
            target = min(max(target, 0.0), upper[k])
            change = (target - alpha[k]) * signs[k]
            if change != 0.0:
                moved = True
                alpha[k] = target
                row = gram[k]
                for i in range(K):
                    pull[i] -= change * row[i]
        if not moved:
            break


@kernel
def _newton_on_free_set(alpha, upper, order, size, chol, slope, half, step):
    """Move the free multipliers towards their optimum; returns the position of the first that hits a bound, or -1."""
    for a in range(size):
        value = slope[order[a]]
        for p in range(a):
            value -= chol[a, p] * half[p]
        half[a] = value / chol[a, a]
    _back_substitute(chol, size, half, step)
    length, stop = 1.0, -1
    for a in range(size):
        k = order[a]
        if step[a] > 0.0 and upper[k] - alpha[k] < length * step[a]:
            length, stop = (upper[k] - alpha[k]) / step[a], a
        elif step[a] < 0.0 and alpha[k] < -length * step[a]:
            length, stop = -alpha[k] / step[a], a
    for a in range(size):
        k = order[a]
        alpha[k] = min(max(alpha[k] + length * step[a], 0.0), upper[k])
    if stop >= 0:
        k = order[stop]
        alpha[k] = upper[k] if step[stop] > 0.0 else 0.0
    return stop


@kernel
def _slide(alpha, upper, j, order, size, chol, ascent, step):
    """Move alpha_j, whose SVM depends on the free set, keeping the free slopes at zero, until a bound is hit.

    The dual rises linearly along this line. Returns the position of the free multiplier that stopped it, or -1 for j.
    """
    _back_substitute(chol, size, chol[size], step)  # row `size` of the factor is the first half of the solve
    length = upper[j] - alpha[j] if ascent > 0.0 else alpha[j]
    stop = -1
    for a in range(size):
        k = order[a]
        move = -ascent * step[a]
        if move > 0.0 and upper[k] - alpha[k] < length * move:
            length, stop = (upper[k] - alpha[k]) / move, a
        elif move < 0.0 and alpha[k] < -length * move:
            length, stop = -alpha[k] / move, a
    for a in range(size):
        k = order[a]
        alpha[k] = min(max(alpha[k] - ascent * length * step[a], 0.0), upper[k])
    if stop < 0:
        alpha[j] = upper[j] if ascent > 0.0 else 0.0
    else:
        k = order[stop]
        alpha[k] = upper[k] if -ascent * step[stop] > 0.0 else 0.0
        alpha[j] = min(max(alpha[j] + ascent * length, 0.0), upper[j])
    return stop


@kernel
def _solve_row(alpha, upper, signs, gram, V, b, f, z, chol, work):
    """Exact ascent for one row: coordinate sweeps guess the free set, then an active-set method finishes.

    Every move raises the dual or takes an SVM out of the free set, so the loop ends; alpha and z are overwritten
    and the final residual returned.
    """
    K = alpha.shape[0]
    slope, half, step = work[0], work[1], work[2]
    active, order = np.empty(K, np.int64), np.empty(K, np.int64)
    free = np.zeros(K, np.bool_)
    count, size = 0, 0
    tolerance = TOLERANCE
    for k in range(K):
        tolerance = max(tolerance, ROUNDING * upper[k] * gram[k, k])
        if upper[k] > 0.0 and gram[k, k] > 0.0:
            active[count] = k
            count += 1
            alpha[k] = min(max(alpha[k], 0.0), upper[k])
        else:
            # An SVM with V_k = 0 cannot move z; its optimal multiplier follows from the sign of its slope.
            alpha[k] = upper[k] if gram[k, k] == 0.0 and signs[k] * b[k] < 1.0 else 0.0
    _gradient(alpha, active, count, signs, V, b, f, z, slope)
    for k in range(K):
        half[k] = signs[k] * slope[k]
    _sweep(alpha, upper, active, count, signs, gram, half)
    for a in range(count):
        k = active[a]
        if 0.0 < alpha[k] < upper[k] and _append(chol, order, size, gram, signs, k) > 0.0:
            order[size] = k
            free[k] = True
            size += 1
    worst = 0.0
    for _ in range(20 * K + 20):
        _gradient(alpha, active, count, signs, V, b, f, z, slope)
        j, outside, inside = -1, 0.0, 0.0
        for a in range(count):
            k = active[a]
            value = _violation(k, alpha, upper, slope, gram[k, k])
            if free[k]:
                inside = max(inside, value)
            elif value > outside:
                j, outside = k, value
        worst = max(inside, outside)
        if worst <= tolerance:
            break
        if inside <= tolerance:
            ascent = 1.0 if slope[j] > 0.0 else -1.0
            if _append(chol, order, size, gram, signs, j) > 0.0:
                order[size] = j
                free[j] = True
                size += 1
                continue
            stop = _slide(alpha, upper, j, order, size, chol, ascent, step)
        else:
            stop = _newton_on_free_set(alpha, upper, order, size, chol, slope, half, step)
        if stop >= 0:
            for a in range(size):
                free[order[a]] = False
            size = _drop(chol, order, stop, size, gram, signs)
            for a in range(size):
                free[order[a]] = True
    return worst


@entry
def _solve_rows(alpha, upper, signs, gram, V, b, F, Z):
    K = V.shape[0]
    chol, work = np.zeros((K + 1, K + 1)), np.zeros((3, K))
    for n in range(F.shape[0]):
        _solve_row(alpha[n], upper[n], signs[n], gram, V, b, F[n], Z[n], chol, work)


def solve(
    F: Array, V: Array, b: Array, Y: Array, upper: Array, start: Array | None = None, n_threads: int = 1
) -> tuple[Array, Array]:
    """Solve every row's Z-step QP exactly (e:svm-optZ, e:svm-optZm).

    Parameters
    ----------
    F : (N, L) values of the map.
    V, b : (K, L) and (K,) linear SVMs.
    Y : (N, K) signs in {-1, +1}.
    upper : (N, K) box c = 2 C / mu; 0 takes an SVM out of that row's problem.
    start : (N, K) multipliers to start from (default zero).
    n_threads : blocks of rows solved at the same time.

    Returns
    -------
    Z : (N, L) optimal coordinates.
    alpha : (N, K) optimal multipliers.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> Z, alpha = solve(F=0 * one, V=one, b=np.zeros(1), Y=one, upper=9 * one)
    >>> Z.item(), alpha.item()  # the margin is reached exactly: case 2 of Algorithm a:drsvm-optZ
    (1.0, 2.0)
    """
    F, V, b = (np.ascontiguousarray(a, dtype=np.float64) for a in (F, V, b))
    Y, upper = (np.ascontiguousarray(a, dtype=np.float64) for a in (Y, upper))
    if V.shape[0] == 1:
        return closed_form(F, V[0], b[0], Y[:, 0], upper[:, 0])
    alpha = np.zeros_like(upper) if start is None else np.array(start, dtype=np.float64)
    Z = np.empty_like(F)
    gram = 0.5 * V @ V.T

    def block(rows: slice) -> None:
        _solve_rows(alpha[rows], upper[rows], Y[rows], gram, V, b, F[rows], Z[rows])

    with Blocks(F.shape[0], n_threads) as rows:
        rows.map(block)
    return Z, alpha


def closed_form(F: Array, v: Array, b: float, y: Array, upper: Array) -> tuple[Array, Array]:
    """The one-SVM case: the three cases of Algorithm a:drsvm-optZ, and z = f where the SVM is zero.

    Shapes: F (N, L), v (L,), y and upper (N,); returns Z (N, L) and alpha (N, 1).
    """
    slack = 1.0 - y * (F @ v + b)
    square = float(v @ v)
    if square == 0.0:
        return F.copy(), np.where(slack > 0, upper, 0.0)[:, None]
    alpha = np.clip(2.0 * slack / square, 0.0, upper)
    return F + 0.5 * (alpha * y)[:, None] * v, alpha[:, None]


def residual(Z: Array, alpha: Array, V: Array, b: Array, Y: Array, upper: Array) -> Array:
    """Distance of each row from its optimality conditions, computed from (Z, alpha) alone.

    With q_k = 1/2 |V_k|^2 and margins m_k: max_k q_k |alpha_k - clip(alpha_k + (1 - m_k) / q_k, 0, c_k)|, 0 where
    V_k = 0. Returns (N,). It is zero exactly at the optimum as long as z = f + 1/2 sum alpha_k y_k V_k.
    """
    q = 0.5 * np.einsum("kl,kl->k", V, V)
    slope = 1.0 - Y * (Z @ V.T + b)
    safe = np.where(q > 0, q, 1.0)
    target = np.clip(alpha + slope / safe, 0.0, upper)
    distance: Array = np.where(q > 0, q, 0.0) * np.abs(alpha - target)
    return distance.max(axis=1)
