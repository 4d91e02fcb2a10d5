"""Row kernels of the interior-point SVM (`linear_svm`): three passes over a block of rows per Newton step.

Every array over rows has shape (K, N), one row per problem; Zt is (P, N) with the bias as its row of ones and zero
rows up to a multiple of four, so that four sums run at once. Slices are taken before the inner loops because an
index counted from a variable start keeps the compiler from using SIMD.

Letters, for one problem: v = (weights, bias) · f = y (v.z) margins · alpha in (0, C) and eta = C - alpha · slacks s
of the margin and xi of the hinge with f - 1 = s - xi · w = 1 / (s / alpha + xi / eta).
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers.compiled import kernel

TILE = 256  # rows per tile: the tile's weights and a few rows of Z stay in the first-level cache


@kernel
def _margins(Zt, lo, hi, v, y, out):  # type: ignore[no-untyped-def]
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
def _add_moments(Zt, lo, hi, weight, out):  # type: ignore[no-untyped-def]
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
def _add_gram(Zt, lo, hi, weight, wz, H):  # type: ignore[no-untyped-def]
    """H += sum_n weight_n z_n z_n' over rows lo..hi; only the block-lower triangle is filled."""
    n = hi - lo
    for i in range(Zt.shape[0]):
        zi = Zt[i, lo:hi]
        for t in range(n):
            wz[t] = weight[t] * zi[t]
        _add_moments(Zt[: (i // 4 + 1) * 4], lo, hi, wz, H[i])


@kernel
def assemble(problems, Zt, first, last, v, Y, C, A, E, S, X, dA, dS, dX, step, H, rhs, dual, sums):  # type: ignore[no-untyped-def]
    """Take the last iteration's step, then add what the next Newton system needs.

    H (K, P, P): sum w z z'. rhs (K, P): sum y w (1 - f) z. dual (K, P): sum alpha y z.
    sums (K, 3): complementarity, sum C hinge, sum alpha.
    """
    f, w, g, wz = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for k in problems:
        beta = step[k]
        for lo in range(first, last, TILE):
            hi = min(lo + TILE, last)
            y, c = Y[k, lo:hi], C[k, lo:hi]
            a, e, s, x = A[k, lo:hi], E[k, lo:hi], S[k, lo:hi], X[k, lo:hi]
            da, ds, dx = dA[k, lo:hi], dS[k, lo:hi], dX[k, lo:hi]
            _margins(Zt, lo, hi, v[k], y, f)
            gap, hinge, total = 0.0, 0.0, 0.0
            for t in range(hi - lo):
                a[t] += beta * da[t]
                e[t] -= beta * da[t]
                s[t] += beta * ds[t]
                x[t] += beta * dx[t]
                w[t] = a[t] * e[t] / (s[t] * e[t] + x[t] * a[t])
                g[t] = y[t] * w[t] * (1.0 - f[t])
                gap += a[t] * s[t] + e[t] * x[t]
                hinge += c[t] * max(0.0, 1.0 - f[t])
                total += a[t]
            sums[k, 0] += gap
            sums[k, 1] += hinge
            sums[k, 2] += total
            _add_gram(Zt, lo, hi, w, wz, H[k])
            _add_moments(Zt, lo, hi, g, rhs[k])
            for t in range(hi - lo):
                g[t] = a[t] * y[t]
            _add_moments(Zt, lo, hi, g, dual[k])


@kernel
def predict(problems, Zt, first, last, v, dv, Y, A, E, S, X, centre, curve, sums):  # type: ignore[no-untyped-def]
    """Along the affine direction dv: the longest step, and both parts of the corrected right-hand side.

    centre (K, P): sum y w (1/alpha - 1/eta) z, to be multiplied by the complementarity aimed at.
    curve (K, P): sum y w (-dalpha ds / alpha + deta dxi / eta) z. sums (K, 2): 1 / step, sum of second-order terms.
    """
    f, df, g, h = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for k in problems:
        worst, second = 0.0, 0.0
        for lo in range(first, last, TILE):
            hi = min(lo + TILE, last)
            y = Y[k, lo:hi]
            a, e, s, x = A[k, lo:hi], E[k, lo:hi], S[k, lo:hi], X[k, lo:hi]
            _margins(Zt, lo, hi, v[k], y, f)
            _margins(Zt, lo, hi, dv[k], y, df)
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
            _add_moments(Zt, lo, hi, g, centre[k])
            _add_moments(Zt, lo, hi, h, curve[k])
        sums[k, 0] = worst
        sums[k, 1] = second


@kernel
def correct(problems, Zt, first, last, v, dv0, dv, aim, Y, A, E, S, X, dA, dS, dX, worst):  # type: ignore[no-untyped-def]
    """The corrected direction over rows, stored in dA, dS, dX; worst (K,): 1 / the longest step that keeps signs."""
    f, df0, df = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for k in problems:
        most = 0.0
        for lo in range(first, last, TILE):
            hi = min(lo + TILE, last)
            y = Y[k, lo:hi]
            a, e, s, x = A[k, lo:hi], E[k, lo:hi], S[k, lo:hi], X[k, lo:hi]
            da, ds, dx = dA[k, lo:hi], dS[k, lo:hi], dX[k, lo:hi]
            _margins(Zt, lo, hi, v[k], y, f)
            _margins(Zt, lo, hi, dv0[k], y, df0)
            _margins(Zt, lo, hi, dv[k], y, df)
            for t in range(hi - lo):
                ia, ie = 1.0 / a[t], 1.0 / e[t]
                w = 1.0 / (s[t] * ia + x[t] * ie)
                d0 = w * (1.0 - f[t] - df0[t])
                left = aim[k] - a[t] * s[t] + d0 * s[t] * (1.0 + d0 * ia)
                right = aim[k] - e[t] * x[t] - d0 * x[t] * (1.0 - d0 * ie)
                d = w * (left * ia - right * ie - (f[t] - 1.0 + x[t] - s[t]) - df[t])
                da[t] = d
                ds[t] = (left - s[t] * d) * ia
                dx[t] = (right + x[t] * d) * ie
                most = max(most, max(max(-d * ia, d * ie), max(-ds[t] / s[t], -dx[t] / x[t])))
        worst[k] = most
