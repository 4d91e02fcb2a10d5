"""Row kernels of the interior-point SVM (`linear_svm`): three passes over the rows per Newton step.

Each pass takes the machine and adds sums over rows first..last; only these sums reach the (L + 1) x (L + 1) system.
Zt is (P, N) with the bias as its row of ones and zero rows up to a multiple of four, so that four sums run at once.
Slices are taken before the inner loops because an index counted from a variable start keeps the compiler from SIMD.

Letters: v = (weights, bias) · f = y (v.z) margins · alpha in (0, C) and eta = C - alpha · slacks s
of the margin and xi of the hinge with f - 1 = s - xi · w = 1 / (s / alpha + xi / eta).
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers.compiled import entry, kernel

TOLERANCE = 1e-10  # relative duality gap at which a problem is solved
ROUNDING = 1e-13  # relative complementarity below which a further step is rounding only
MAX_ITER = 200
FAR, NEAR = 2.0, 1.0  # first complementarity over the objective, for a rough guess and for a nearby answer
SHORT, CENTRE = 0.1, 0.5  # a step below SHORT is a bad one; the next aims at CENTRE times the complementarity
CORRECTORS, LONG = 3, 0.9  # centrality correctors at most per iteration, tried while the step is not long
LEVEL = 1e-8  # |sum alpha y| over sum alpha at which a bound counts
RESTART = 1e-6  # relative gap above which a stuck problem begins again
PATIENCE = 12  # iterations in a row without progress in complementarity: rounding rules, stop
DAMPING = 0.995  # share of the longest step to the boundary that is taken
SPREAD = 0.1  # products within this factor of the one aimed at are well centred
TILE = 256  # rows per tile: the tile's weights and a few rows of Z stay in the first-level cache


@kernel
def _margins(Zt, lo, hi, v, y, out):
    """out = y * (v.z) over rows lo..hi."""
    n = hi - lo
    for t in range(n):
        out[t] = 0.0
    for i in range(0, Zt.shape[0], 4):
        c0, c1, c2, c3 = v[i], v[i + 1], v[i + 2], v[i + 3]
        z0, z1, z2, z3 = Zt[i, lo:hi], Zt[i + 1, lo:hi], Zt[i + 2, lo:hi], Zt[i + 3, lo:hi]
        for t in range(n):
            out[t] += c0 * z0[t] + c1 * z1[t] + c2 * z2[t] + c3 * z3[t]
    for t in range(n):
        out[t] *= y[t]


@kernel
def _add_moments(Zt, lo, hi, weight, out):
    """out += sum_n weight_n z_n over rows lo..hi."""
    for i in range(0, Zt.shape[0], 4):
        z0, z1, z2, z3 = Zt[i, lo:hi], Zt[i + 1, lo:hi], Zt[i + 2, lo:hi], Zt[i + 3, lo:hi]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for t in range(hi - lo):
            s0 += weight[t] * z0[t]
            s1 += weight[t] * z1[t]
            s2 += weight[t] * z2[t]
            s3 += weight[t] * z3[t]
        out[i] += s0
        out[i + 1] += s1
        out[i + 2] += s2
        out[i + 3] += s3


@kernel
def _add_gram(Zt, lo, hi, weight, wz, H):
    """H += sum_n weight_n z_n z_n' over rows lo..hi; only the block-lower triangle is filled."""
    n = hi - lo
    for i in range(Zt.shape[0]):
        zi = Zt[i, lo:hi]
        for t in range(n):
            wz[t] = weight[t] * zi[t]
        _add_moments(Zt[: (i // 4 + 1) * 4], lo, hi, wz, H[i])


@kernel
def _place(Zt, first, last, v, y, c, product, a, e, s, x, da, ds, dx):
    """Rows whose two complementarity products equal ``product``, at machine v: perfectly centred.

    With d = f - 1 = s - xi, alpha s = eta xi = m and alpha + eta = C, s solves C s^2 - (C d + 2 m) s + m d = 0.
    """
    f = np.empty(TILE)
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        _margins(Zt, lo, hi, v, y[lo:hi], f)
        for t in range(hi - lo):
            i = lo + t
            d = c[i] * (f[t] - 1.0)
            # the larger of s and xi, free of cancellation, and the multiplier that goes with it
            large = (abs(d) + 2.0 * product + np.sqrt(d * d + 4.0 * product * product)) / (2.0 * c[i])
            strong = product / large
            small = product / (c[i] - strong)
            if d >= 0.0:
                s[i], x[i], a[i], e[i] = large, small, strong, c[i] - strong
            else:
                s[i], x[i], a[i], e[i] = small, large, c[i] - strong, strong
            da[i], ds[i], dx[i] = 0.0, 0.0, 0.0


@kernel
def _hinge(Zt, first, last, v, y, c):
    """sum_n C_n max(0, 1 - y_n v.z_n)."""
    f = np.empty(TILE)
    total = 0.0
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        penalty = c[lo:hi]
        _margins(Zt, lo, hi, v, y[lo:hi], f)
        for t in range(hi - lo):
            total += penalty[t] * max(0.0, 1.0 - f[t])
    return total


@kernel
def _assemble(
    Zt, first, last, v, y_all, c_all, a_all, e_all, s_all, x_all, da_all, ds_all, dx_all, step, H, rhs, dual, sums
):
    """Take the last iteration's step, then add what the next Newton system needs.

    H (P, P): sum w z z'. rhs (P,): sum y w (1 - f) z. dual (P,): sum alpha y z.
    sums (3,): complementarity, sum C hinge, sum alpha.
    """
    f, w, g, wz = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        y, c = y_all[lo:hi], c_all[lo:hi]
        a, e, s, x = a_all[lo:hi], e_all[lo:hi], s_all[lo:hi], x_all[lo:hi]
        da, ds, dx = da_all[lo:hi], ds_all[lo:hi], dx_all[lo:hi]
        _margins(Zt, lo, hi, v, y, f)
        gap, lost, total = 0.0, 0.0, 0.0
        for t in range(hi - lo):
            a[t] += step * da[t]
            e[t] -= step * da[t]
            s[t] += step * ds[t]
            x[t] += step * dx[t]
            w[t] = a[t] * e[t] / (s[t] * e[t] + x[t] * a[t])
            g[t] = y[t] * w[t] * (1.0 - f[t])
            gap += a[t] * s[t] + e[t] * x[t]
            lost += c[t] * max(0.0, 1.0 - f[t])
            total += a[t]
        sums[0] += gap
        sums[1] += lost
        sums[2] += total
        _add_gram(Zt, lo, hi, w, wz, H)
        _add_moments(Zt, lo, hi, g, rhs)
        for t in range(hi - lo):
            g[t] = a[t] * y[t]
        _add_moments(Zt, lo, hi, g, dual)


@kernel
def _predict(Zt, first, last, v, dv, y_all, a_all, e_all, s_all, x_all, centre, curve):
    """Along the affine direction dv: 1 / the longest step, the sum of second-order terms, and both parts of the
    corrected right-hand side.

    centre (P,): sum y w (1/alpha - 1/eta) z, to be multiplied by the complementarity aimed at.
    curve (P,): sum y w (-dalpha ds / alpha + deta dxi / eta) z.
    """
    f, df, g, h = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    worst, second = 0.0, 0.0
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        y = y_all[lo:hi]
        a, e, s, x = a_all[lo:hi], e_all[lo:hi], s_all[lo:hi], x_all[lo:hi]
        _margins(Zt, lo, hi, v, y, f)
        _margins(Zt, lo, hi, dv, y, df)
        for t in range(hi - lo):
            ia, ie = 1.0 / a[t], 1.0 / e[t]
            w = 1.0 / (s[t] * ia + x[t] * ie)
            da = w * (1.0 - f[t] - df[t])
            ra, re = da * ia, da * ie
            # ds = -s (1 + ra) and dxi = -xi (1 - re): every ratio follows from ra and re
            worst = max(worst, max(max(-ra, re), max(1.0 + ra, 1.0 - re)))
            p, q = da * s[t] * (1.0 + ra), da * x[t] * (1.0 - re)
            second += q - p
            g[t] = y[t] * w * (ia - ie)
            h[t] = y[t] * w * (p * ia + q * ie)
        _add_moments(Zt, lo, hi, g, centre)
        _add_moments(Zt, lo, hi, h, curve)
    return worst, second


@kernel
def _correct(
    Zt,
    first,
    last,
    v,
    dv0,
    dv,
    aim,
    trust,
    y_all,
    a_all,
    e_all,
    s_all,
    x_all,
    left_all,
    right_all,
    da_all,
    ds_all,
    dx_all,
):
    """The rows' part of the corrected direction dv, stored in da, ds, dx; returns 1 / the longest step.

    left, right (N,) become its complementarity right-hand sides, towards products of ``aim``. ``trust``: 1 adds the
    second-order terms of the affine direction dv0, 0 leaves them out.
    """
    f, df0, df = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    worst = 0.0
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        y = y_all[lo:hi]
        a, e, s, x = a_all[lo:hi], e_all[lo:hi], s_all[lo:hi], x_all[lo:hi]
        left, right = left_all[lo:hi], right_all[lo:hi]
        da, ds, dx = da_all[lo:hi], ds_all[lo:hi], dx_all[lo:hi]
        _margins(Zt, lo, hi, v, y, f)
        _margins(Zt, lo, hi, dv0, y, df0)
        _margins(Zt, lo, hi, dv, y, df)
        for t in range(hi - lo):
            ia, ie = 1.0 / a[t], 1.0 / e[t]
            w = 1.0 / (s[t] * ia + x[t] * ie)
            d0 = trust * w * (1.0 - f[t] - df0[t])
            p = aim - a[t] * s[t] + d0 * s[t] * (trust + d0 * ia)
            q = aim - e[t] * x[t] - d0 * x[t] * (trust - d0 * ie)
            d = w * (p * ia - q * ie - (f[t] - 1.0 + x[t] - s[t]) - df[t])
            left[t], right[t], da[t] = p, q, d
            ds[t] = (p - s[t] * d) * ia
            dx[t] = (q + x[t] * d) * ie
            worst = max(worst, max(max(-d * ia, d * ie), max(-ds[t] / s[t], -dx[t] / x[t])))
    return worst


@kernel
def _direct(Zt, first, last, v, dv, y_all, a_all, e_all, s_all, x_all, left_all, right_all, da_all, ds_all, dx_all):
    """The rows' part of the direction dv for the given left and right, as in `_correct`."""
    f, df = np.empty(TILE), np.empty(TILE)
    worst = 0.0
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        y = y_all[lo:hi]
        a, e, s, x = a_all[lo:hi], e_all[lo:hi], s_all[lo:hi], x_all[lo:hi]
        left, right = left_all[lo:hi], right_all[lo:hi]
        da, ds, dx = da_all[lo:hi], ds_all[lo:hi], dx_all[lo:hi]
        _margins(Zt, lo, hi, v, y, f)
        _margins(Zt, lo, hi, dv, y, df)
        for t in range(hi - lo):
            ia, ie = 1.0 / a[t], 1.0 / e[t]
            d = left[t] * ia - right[t] * ie - (f[t] - 1.0 + x[t] - s[t]) - df[t]
            d /= s[t] * ia + x[t] * ie
            da[t] = d
            ds[t] = (left[t] - s[t] * d) * ia
            dx[t] = (right[t] + x[t] * d) * ie
            worst = max(worst, max(max(-d * ia, d * ie), max(-ds[t] / s[t], -dx[t] / x[t])))
    return worst


@kernel
def _recentre(
    Zt, first, last, step, aim, y_all, a_all, e_all, s_all, x_all, da_all, ds_all, dx_all, left_all, right_all, rhs
):
    """Gondzio's corrector: move left and right so that products far from ``aim`` after a longer step come nearer.

    rhs (P,): what the change of left and right adds to the Newton system.
    """
    g = np.empty(TILE)
    low, high = aim * SPREAD, aim / SPREAD
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        y = y_all[lo:hi]
        a, e, s, x = a_all[lo:hi], e_all[lo:hi], s_all[lo:hi], x_all[lo:hi]
        da, ds, dx = da_all[lo:hi], ds_all[lo:hi], dx_all[lo:hi]
        left, right = left_all[lo:hi], right_all[lo:hi]
        for t in range(hi - lo):
            p = (a[t] + step * da[t]) * (s[t] + step * ds[t])
            q = (e[t] - step * da[t]) * (x[t] + step * dx[t])
            p = max(min(max(p, low), high) - p, -high)
            q = max(min(max(q, low), high) - q, -high)
            left[t] += p
            right[t] += q
            w = 1.0 / (s[t] / a[t] + x[t] / e[t])
            g[t] = y[t] * w * (p / a[t] - q / e[t])
        _add_moments(Zt, lo, hi, g, rhs)


@kernel
def _factor(H):
    """Lower Cholesky factor in place of the lower triangle; False where rounding has made H indefinite."""
    for j in range(H.shape[0]):
        total = H[j, j]
        for p in range(j):
            total -= H[j, p] * H[j, p]
        if not total > 0.0:
            return False
        H[j, j] = np.sqrt(total)
        for i in range(j + 1, H.shape[0]):
            value = H[i, j]
            for p in range(j):
                value -= H[i, p] * H[j, p]
            H[i, j] = value / H[j, j]
    return True


@kernel
def _substitute(H, rhs, out):
    """out = (L L')^-1 rhs with L from `_factor`."""
    for i in range(H.shape[0]):
        value = rhs[i]
        for p in range(i):
            value -= H[i, p] * out[p]
        out[i] = value / H[i, i]
    for i in range(H.shape[0] - 1, -1, -1):
        value = out[i]
        for p in range(i + 1, H.shape[0]):
            value -= H[p, i] * out[p]
        out[i] = value / H[i, i]


@entry
def least_squares(Zt, gram):
    """gram (P, P) becomes the Cholesky factor of sum z z' with a little ridge, from which `interior_point` guesses."""
    P, N = Zt.shape
    _add_gram(Zt, 0, N, np.ones(N), np.empty(N), gram)
    ridge = 0.0
    for i in range(P):
        ridge += 1e-6 * gram[i, i] / P
    for i in range(P):
        gram[i, i] += ridge
    _factor(gram)


@entry
def interior_point(Zt, L, y, c, gram, near, answer, alpha):
    """One problem: answer (P,) becomes the best machine seen, alpha (N,) the best multipliers.

    It begins at the guess of lowest objective: least-squares machines at three sizes, from the factored Gram matrix
    (P, P) of Zt, or ``near`` (P,), a nearby problem's answer, where it is not zero.
    """
    P, N = Zt.shape
    a, e, s, x, left, right = np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N)
    da, ds, dx, da2, ds2, dx2 = np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty(N)
    H, v, whole = np.empty((P, P)), np.empty(P), c.sum()
    rhs, dual, affine, move, centre, curve = (
        np.empty(P), np.empty(P), np.zeros(P), np.zeros(P), np.empty(P), np.empty(P),
    )  # fmt: skip
    rhs[:] = 0.0
    _add_moments(Zt, 0, N, y, rhs)
    _substitute(gram, rhs, affine)
    best, share = np.inf, FAR
    for size in (1.0, 2.0, 4.0):
        move[:] = size * affine
        value = 0.5 * np.sum(move[:L] ** 2) + _hinge(Zt, 0, N, move, y, c)
        if value < best:
            best, v[:] = value, move
    if np.any(near[:L] != 0.0):
        value = 0.5 * np.sum(near[:L] ** 2) + _hinge(Zt, 0, N, near, y, c)
        if value < best:
            best, v[:], share = value, near, NEAR
    _place(Zt, 0, N, v, y, c, share * best / N, a, e, s, x, da, ds, dx)
    best, proved, previous, stalled, restarted, step = np.inf, -np.inf, np.inf, 0, False, 0.0
    for _ in range(MAX_ITER):
        H[:], rhs[:], dual[:], centre[:], curve[:] = 0.0, 0.0, 0.0, 0.0, 0.0
        sums = np.zeros(3)
        _assemble(Zt, 0, N, v, y, c, a, e, s, x, da, ds, dx, step, H, rhs, dual, sums)
        gap = sums[0]
        primal, bound = 0.5 * np.sum(v[:L] ** 2) + sums[1], sums[2] - 0.5 * np.sum(dual[:L] ** 2)
        if primal < best:
            best, answer[:] = primal, v
        # Rounding can spoil late multipliers for huge C: keep those of the best bound, once sum alpha y is near zero.
        level = abs(dual[L]) <= LEVEL * sums[2]
        if proved == -np.inf or (level and bound > proved):
            alpha[:] = a
            proved = bound if level else proved
        balanced = abs(dual[L]) <= TOLERANCE * whole
        # With as many rows on the margin as unknowns rounding spoils the bound first, not the iterate.
        if (balanced and best - bound <= TOLERANCE * best) or gap <= ROUNDING * best:
            break
        stalled = stalled + 1 if gap > 0.9 * previous else 0
        cautious = 0.0 < step < SHORT or gap > previous
        previous = gap
        if stalled >= (PATIENCE if restarted else PATIENCE // 2):
            if restarted or (balanced and gap <= RESTART * best):
                break
            # a guess that misled: begin again from the zero machine, once
            v[:], restarted, stalled, previous, step = 0.0, True, 0, np.inf, 0.0
            _place(Zt, 0, N, v, y, c, whole / N, a, e, s, x, da, ds, dx)
            continue
        for i in range(P):  # 1 for the weights, 0 for the bias; the padding becomes the identity
            if i != L:
                H[i, i] += 1.0
        if not _factor(H):
            break
        rhs += dual
        rhs[:L] -= v[:L]
        _substitute(H, rhs, affine)
        worst, second = _predict(Zt, 0, N, v, affine, y, a, e, s, x, centre, curve)
        reach = 1.0 / max(1.0, worst)
        # Mehrotra's rule: aim at (mu_affine / mu)^3 mu
        after = max(gap * (1.0 - reach) + reach * reach * second, 0.0)
        aim, trust = (after / gap) ** 3 * gap / (2 * N), 1.0
        if cautious:  # Mehrotra's steps can cycle; after a bad one take a plain step towards the central path
            aim, trust = max(aim, CENTRE * gap / (2 * N)), 0.0
        rhs += aim * centre + trust * curve
        _substitute(H, rhs, move)
        worst = _correct(Zt, 0, N, v, affine, move, aim, trust, y, a, e, s, x, left, right, da, ds, dx)
        step = DAMPING / max(worst, DAMPING)
        for _ in range(CORRECTORS):
            if step > LONG:
                break
            _recentre(Zt, 0, N, min(1.0, 2.0 * step + 0.1), aim, y, a, e, s, x, da, ds, dx, left, right, rhs)
            _substitute(H, rhs, affine)
            longer = DAMPING / max(_direct(Zt, 0, N, v, affine, y, a, e, s, x, left, right, da2, ds2, dx2), DAMPING)
            if longer < 1.1 * step:
                break
            step, move, affine = longer, affine, move
            da, da2, ds, ds2, dx, dx2 = da2, da, ds2, ds, dx2, dx
        v += step * move
