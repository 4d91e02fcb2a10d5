"""The dual of the Z-step: one small box-constrained QP per row, solved exactly for all rows.

For one row with r_k = 1 - y_k (V_k.f + b_k) and Q_kl = 1/2 y_k y_l V_k.V_l (dual of e:svm-optZm)

    max_alpha  sum_k alpha_k r_k - 1/2 alpha' Q alpha,   0 <= alpha_k <= c_k,   z = f + 1/2 sum_k alpha_k y_k V_k.

The gradient is 1 - m_k with the margins m_k = y_k (V_k.z + b_k). Q has rank at most L, so it is singular when there
are more machines than latent dimensions; the active set below only ever factors an independent subset.
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers.compiled import Rows, kernel
from ldsvm.typing import Array

# A pivot below this share of its diagonal counts as zero: the row depends on the free set.
DEPENDENT = 1e-11
# The active set stops when the row's residual (see `residual`) is below this, or below what rounding allows.
TOLERANCE = 1e-10
ROUNDING = 8 * np.finfo(np.float64).eps


@kernel
def _append(chol, order, size, gram, signs, j):  # type: ignore[no-untyped-def]
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
def _back_substitute(chol, size, row, out):  # type: ignore[no-untyped-def]
    """out = L^-T row, the second half of a Cholesky solve (the first half is a row of the factor already)."""
    for a in range(size - 1, -1, -1):
        value = row[a]
        for p in range(a + 1, size):
            value -= chol[p, a] * out[p]
        out[a] = value / chol[a, a]


@kernel
def _drop(chol, order, where, size, gram, signs):  # type: ignore[no-untyped-def]
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
def _gradient(alpha, active, count, signs, V, b, f, z, slope):  # type: ignore[no-untyped-def]
    """z = f + 1/2 sum alpha_k y_k V_k and slope_k = 1 - y_k (V_k.z + b_k) for the machines that take part."""
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
def _violation(k, alpha, upper, slope, q):  # type: ignore[no-untyped-def]
    """q_k |alpha_k - clip(alpha_k + slope_k / q_k, 0, c_k)| with q_k = 1/2 |V_k|^2."""
    target = alpha[k] + slope[k] / q
    if target < 0.0:
        target = 0.0
    elif target > upper[k]:
        target = upper[k]
    return q * abs(alpha[k] - target)


@kernel
def _solve_row(alpha, upper, signs, gram, V, b, f, z, work):  # type: ignore[no-untyped-def]
    """Exact active-set ascent for one row: bring in the worst machine, move along the free set's optimum, repeat.

    Every move raises the dual strictly or drops a machine from the free set, so the loop ends; alpha and z are
    overwritten and the final residual returned.
    """
    K = alpha.shape[0]
    slope, inner = work[0], work[1]
    chol = work[2 : K + 3]
    active = np.empty(K, np.int64)
    order = np.empty(K, np.int64)
    free = np.zeros(K, np.bool_)
    count = 0
    tolerance = TOLERANCE
    for k in range(K):
        tolerance = max(tolerance, ROUNDING * upper[k] * gram[k, k])
        if upper[k] > 0.0 and gram[k, k] > 0.0:
            active[count] = k
            count += 1
            alpha[k] = min(max(alpha[k], 0.0), upper[k])
        else:
            # A machine with V_k = 0 cannot move z; its optimal multiplier follows from the sign of its slope.
            alpha[k] = upper[k] if gram[k, k] == 0.0 and signs[k] * b[k] < 1.0 else 0.0
    size = 0
    worst = 0.0
    for _ in range(20 * K + 20):
        _gradient(alpha, active, count, signs, V, b, f, z, slope)
        j, worst, drift = -1, 0.0, 0.0
        for a in range(count):
            k = active[a]
            value = _violation(k, alpha, upper, slope, gram[k, k])
            if free[k]:
                drift = max(drift, value)  # rounding left over on machines that should be stationary
            elif value > worst:
                j, worst = k, value
        if max(worst, drift) <= tolerance:
            return max(worst, drift)
        if worst < drift:  # re-solve on the free set alone (iterative refinement), staying inside the box
            for a in range(size):
                value = slope[order[a]]
                for p in range(a):
                    value -= chol[a, p] * work[K + 3, p]
                work[K + 3, a] = value / chol[a, a]
            _back_substitute(chol, size, work[K + 3], inner)
            for a in range(size):
                k = order[a]
                alpha[k] = min(max(alpha[k] + inner[a], 0.0), upper[k])
            continue
        while True:
            pivot = _append(chol, order, size, gram, signs, j)
            _back_substitute(chol, size, chol[size], inner)
            ascent = 1.0 if slope[j] > 0.0 else -1.0
            # Moving alpha_j by t moves the free ones by -t * inner, which keeps their slopes at zero.
            length = abs(slope[j]) / pivot if pivot > 0.0 else np.inf
            room = upper[j] - alpha[j] if ascent > 0.0 else alpha[j]
            stop = -1
            if room <= length:
                length, stop = room, size
            for a in range(size):
                k = order[a]
                move = -ascent * inner[a]
                if move > 0.0 and (upper[k] - alpha[k]) < length * move:
                    length, stop = (upper[k] - alpha[k]) / move, a
                elif move < 0.0 and alpha[k] < -length * move:
                    length, stop = -alpha[k] / move, a
            for a in range(size):
                k = order[a]
                alpha[k] = min(max(alpha[k] - ascent * length * inner[a], 0.0), upper[k])
            alpha[j] = min(max(alpha[j] + ascent * length, 0.0), upper[j])
            if stop == -1:
                order[size] = j
                free[j] = True
                size += 1
                break
            if stop == size:
                alpha[j] = upper[j] if ascent > 0.0 else 0.0
                break
            k = order[stop]
            alpha[k] = upper[k] if -ascent * inner[stop] > 0.0 else 0.0
            before = size
            for a in range(before):
                free[order[a]] = False
            size = _drop(chol, order, stop, size, gram, signs)
            for a in range(size):
                free[order[a]] = True
            _gradient(alpha, active, count, signs, V, b, f, z, slope)
            if slope[j] * ascent <= 0.0:
                break
    _gradient(alpha, active, count, signs, V, b, f, z, slope)
    for a in range(count):
        k = active[a]
        worst = max(worst, _violation(k, alpha, upper, slope, gram[k, k]))
    return worst


@kernel
def _solve_rows(alpha, upper, signs, gram, V, b, F, Z):  # type: ignore[no-untyped-def]
    K = V.shape[0]
    work = np.zeros((K + 4, K + 1))
    worst = 0.0
    for n in range(F.shape[0]):
        worst = max(worst, _solve_row(alpha[n], upper[n], signs[n], gram, V, b, F[n], Z[n], work))
    return worst


def solve(
    F: Array, V: Array, b: Array, Y: Array, upper: Array, start: Array | None = None, n_threads: int = 1
) -> tuple[Array, Array]:
    """Solve every row's Z-step QP exactly (e:svm-optZ, e:svm-optZm).

    Parameters
    ----------
    F : (N, L) values of the map.
    V, b : (K, L) and (K,) linear machines.
    Y : (N, K) signs in {-1, +1}.
    upper : (N, K) box c = 2 C / mu; 0 takes a machine out of that row's problem.
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

    with Rows(F.shape[0], n_threads) as work:
        work.map(block)
    return Z, alpha


def closed_form(F: Array, v: Array, b: float, y: Array, upper: Array) -> tuple[Array, Array]:
    """The one-machine case: the three cases of Algorithm a:drsvm-optZ, and z = f where the machine is zero.

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
