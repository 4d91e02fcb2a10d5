"""Row kernels of the interior-point SVM (`linear_svm`): three passes over the rows per Newton step.

Each pass takes the machine and adds sums over rows first..last; only these sums reach the (L + 1) x (L + 1) system.
Zt is (P, N) with the bias as its row of ones and zero rows up to a multiple of four, so that four sums run at once.
Slices are taken before the inner loops because an index counted from a variable start keeps the compiler from SIMD.

Letters: v = (weights, bias) · f = y (v.z) margins · alpha in (0, C) and eta = C - alpha · slacks s
of the margin and xi of the hinge with f - 1 = s - xi · w = 1 / (s / alpha + xi / eta).
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers.compiled import kernel

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
def place(Zt, first, last, v, y, c, product, a, e, s, x, da, ds, dx):
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
def hinge(Zt, first, last, v, y, c):
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
def assemble(
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
def predict(Zt, first, last, v, dv, y_all, a_all, e_all, s_all, x_all, centre, curve):
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
def aim_at(Zt, first, last, v, dv, aim, trust, y_all, a_all, e_all, s_all, x_all, left_all, right_all):
    """Complementarity right-hand sides left, right (N,) of the corrected direction: towards products of ``aim``.

    ``trust``: 1 adds the second-order terms of the affine direction dv, 0 leaves them out.
    """
    f, df = np.empty(TILE), np.empty(TILE)
    for lo in range(first, last, TILE):
        hi = min(lo + TILE, last)
        y = y_all[lo:hi]
        a, e, s, x = a_all[lo:hi], e_all[lo:hi], s_all[lo:hi], x_all[lo:hi]
        left, right = left_all[lo:hi], right_all[lo:hi]
        _margins(Zt, lo, hi, v, y, f)
        _margins(Zt, lo, hi, dv, y, df)
        for t in range(hi - lo):
            ia, ie = 1.0 / a[t], 1.0 / e[t]
            d = trust * (1.0 - f[t] - df[t]) / (s[t] * ia + x[t] * ie)
            left[t] = aim - a[t] * s[t] + d * s[t] * (trust + d * ia)
            right[t] = aim - e[t] * x[t] - d * x[t] * (trust - d * ie)


@kernel
def direct(Zt, first, last, v, dv, y_all, a_all, e_all, s_all, x_all, left_all, right_all, da_all, ds_all, dx_all):
    """The rows' part of the direction dv, stored in da, ds, dx; returns 1 / the longest step that keeps signs."""
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
def recentre(
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
def factor(H):
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
def substitute(H, rhs, out):
    """out = (L L')^-1 rhs with L from `factor`."""
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
