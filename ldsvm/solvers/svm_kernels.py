"""The compiled interior-point SVM: Newton steps, each a few passes over the rows.

`newton` is the method: it asks for passes and never sees a row. `rows_pass` does a pass over the rows of one place.
`interior_point` joins the two where all rows are in one place (`linear_svm`); `block_svm` adds up the sums of several.

Each pass is a map over the rows and some sums; only the sums reach the (L + 1) x (L + 1) system. Zt is (P, N) with the
bias as its row of ones and zero rows up to a multiple of four, so that four sums run at once. What belongs to a row of
the problem is a column of R (ROWS, N). Slices are taken before the inner loops because an index counted from a
variable start keeps the compiler from using SIMD.

Letters: v = (weights, bias) · f = y (v.z) margins · alpha in (0, C) and eta = C - alpha, in the code a and e · slacks
s of the margin and xi of the hinge, in the code x, with f - 1 = s - xi · w = 1 / (s / alpha + xi / eta).
"""

from __future__ import annotations

import numpy as np

from ldsvm.solvers.compiled import entry, kernel

TOLERANCE = 1e-10  # relative duality gap at which a problem is solved
ROUNDING = 1e-13  # relative complementarity below which a further step is rounding only
MAX_ITER = 200
# First complementarity over the objective: for a rough guess, a nearby answer, and one that all but solves the problem.
FAR, NEAR, NEARER = 2.0, 1.0, 0.01
SHORT, CENTRE = 0.1, 0.5  # a step below SHORT is a bad one; the next aims at CENTRE times the complementarity
CORRECTORS, LONG = 3, 0.9  # centrality correctors at most per iteration, tried while the step is not long
LEVEL = 1e-8  # |sum alpha y| over sum alpha at which a bound counts
# Iterations in a row without progress in complementarity after which to stop: near the optimum (a relative gap below
# CLOSE) rounding rules, farther away progress can pause for long, and the problem begins again once.
CLOSE, PATIENCE, STRUGGLE = 1e-6, 6, 30
DAMPING = 0.995  # share of the longest step to the boundary that is taken
# Rows of R: alpha, eta, s, xi · margin, right-hand sides of both complementarity equations · two directions, each with
# the steps of alpha, s and xi
A, E, S, X, MARGIN, LEFT, RIGHT, MOVE, TRIAL, ROWS = 0, 1, 2, 3, 4, 5, 6, 7, 10, 13
SPREAD = 0.1  # products within this factor of the one aimed at are well centred
HINGE, PLACE, ASSEMBLE, PREDICT, DIRECT, RECENTRE, AGAIN, KEEP = range(8)  # kinds of passes, see `rows_pass`
VECTORS, ROW, SAVE = range(3)  # in `at`: vectors that a pass needs, row of R, whether to keep the multipliers before it
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
def _place(Zt, y, c, R, v, product):
    """Rows whose two complementarity products equal ``product``, at SVM v: perfectly centred.

    With d = f - 1 = s - xi, alpha s = eta xi = m and alpha + eta = C, s solves C s^2 - (C d + 2 m) s + m d = 0.
    """
    f = np.empty(TILE)
    R[MOVE : MOVE + 3] = 0.0
    for lo in range(0, Zt.shape[1], TILE):
        hi = min(lo + TILE, Zt.shape[1])
        _margins(Zt, lo, hi, v, y[lo:hi], f)
        for t in range(hi - lo):
            i = lo + t
            d = c[i] * (f[t] - 1.0)
            # the larger of s and xi, free of cancellation, and the multiplier that goes with it
            large = (abs(d) + 2.0 * product + np.sqrt(d * d + 4.0 * product * product)) / (2.0 * c[i])
            strong = product / large
            small = product / (c[i] - strong)
            if d >= 0.0:
                R[S, i], R[X, i], R[A, i], R[E, i] = large, small, strong, c[i] - strong
            else:
                R[S, i], R[X, i], R[A, i], R[E, i] = small, large, c[i] - strong, strong


@kernel
def _hinge(Zt, y, c, v):
    """sum_n C_n max(0, 1 - y_n v.z_n)."""
    f = np.empty(TILE)
    total = 0.0
    for lo in range(0, Zt.shape[1], TILE):
        hi = min(lo + TILE, Zt.shape[1])
        penalty = c[lo:hi]
        _margins(Zt, lo, hi, v, y[lo:hi], f)
        for t in range(hi - lo):
            total += penalty[t] * max(0.0, 1.0 - f[t])
    return total


@kernel
def _assemble(Zt, y_all, c_all, R, v, move, step, H, rhs, dual, sums):
    """Take the last step along the direction at row ``move`` of R, then add what the next Newton system needs.

    H (P, P): sum w z z'. rhs (P,): sum y w (1 - f) z. dual (P,): sum alpha y z.
    sums (3,): complementarity, sum C hinge, sum alpha.
    """
    w, g, wz = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for lo in range(0, Zt.shape[1], TILE):
        hi = min(lo + TILE, Zt.shape[1])
        y, c, f = y_all[lo:hi], c_all[lo:hi], R[MARGIN, lo:hi]
        a, e, s, x = R[A, lo:hi], R[E, lo:hi], R[S, lo:hi], R[X, lo:hi]
        da, ds, dx = R[move, lo:hi], R[move + 1, lo:hi], R[move + 2, lo:hi]
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
def _predict(Zt, y_all, R, dv, centre, curve):
    """Along the affine direction dv: 1 / the longest step, and the sum of second-order terms, kept in LEFT and RIGHT.

    centre (P,): sum y w (1/alpha - 1/eta) z, to be multiplied by the complementarity aimed at.
    curve (P,): sum y w (-dalpha ds / alpha + deta dxi / eta) z. Both are added to the next right-hand side.
    """
    df, g, h = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    worst, second = 0.0, 0.0
    for lo in range(0, Zt.shape[1], TILE):
        hi = min(lo + TILE, Zt.shape[1])
        y, f, left, right = y_all[lo:hi], R[MARGIN, lo:hi], R[LEFT, lo:hi], R[RIGHT, lo:hi]
        a, e, s, x = R[A, lo:hi], R[E, lo:hi], R[S, lo:hi], R[X, lo:hi]
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
            left[t], right[t] = p, q
            g[t] = y[t] * w * (ia - ie)
            h[t] = y[t] * w * (p * ia + q * ie)
        _add_moments(Zt, lo, hi, g, centre)
        _add_moments(Zt, lo, hi, h, curve)
    return worst, second


@kernel
def _aim(R, aim, trust):
    """From second-order terms to right-hand sides for products of ``aim``; ``trust`` is the terms' share, 1 or 0."""
    a, e, s, x, left, right = R[A], R[E], R[S], R[X], R[LEFT], R[RIGHT]
    for i in range(a.shape[0]):
        left[i] = aim - a[i] * s[i] + trust * left[i]
        right[i] = aim - e[i] * x[i] - trust * right[i]


@kernel
def _direct(Zt, y_all, R, dv, move):
    """The rows' part of the direction dv for LEFT and RIGHT, stored from row ``move``; returns 1 / the longest step."""
    df = np.empty(TILE)
    worst = 0.0
    for lo in range(0, Zt.shape[1], TILE):
        hi = min(lo + TILE, Zt.shape[1])
        f, left, right = R[MARGIN, lo:hi], R[LEFT, lo:hi], R[RIGHT, lo:hi]
        a, e, s, x = R[A, lo:hi], R[E, lo:hi], R[S, lo:hi], R[X, lo:hi]
        da, ds, dx = R[move, lo:hi], R[move + 1, lo:hi], R[move + 2, lo:hi]
        _margins(Zt, lo, hi, dv, y_all[lo:hi], df)
        for t in range(hi - lo):
            p, q = 1.0 / (a[t] * s[t]), 1.0 / (e[t] * x[t])  # 1/alpha, 1/s, 1/eta and 1/xi from two divisions
            ia, ie = s[t] * p, x[t] * q
            d = left[t] * ia - right[t] * ie - (f[t] - 1.0 + x[t] - s[t]) - df[t]
            d /= s[t] * ia + x[t] * ie
            da[t] = d
            ds[t] = (left[t] - s[t] * d) * ia
            dx[t] = (right[t] + x[t] * d) * ie
            worst = max(worst, max(max(-d * ia, d * ie), max(-ds[t] * a[t] * p, -dx[t] * e[t] * q)))
    return worst


@kernel
def _recentre(Zt, y_all, R, move, step, aim, rhs):
    """Gondzio's corrector: change LEFT and RIGHT so that products far from ``aim`` after a longer step come nearer.

    rhs (P,): what the change adds to the Newton system.
    """
    g = np.empty(TILE)
    low, high = aim * SPREAD, aim / SPREAD
    for lo in range(0, Zt.shape[1], TILE):
        hi = min(lo + TILE, Zt.shape[1])
        y, left, right = y_all[lo:hi], R[LEFT, lo:hi], R[RIGHT, lo:hi]
        a, e, s, x = R[A, lo:hi], R[E, lo:hi], R[S, lo:hi], R[X, lo:hi]
        da, ds, dx = R[move, lo:hi], R[move + 1, lo:hi], R[move + 2, lo:hi]
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


def _rows_pass(what, Zt, y, c, R, alpha, vectors, move, numbers, sums):
    """One pass over the rows of one place; sums (any length) are added to, what is not a sum is returned.

    what: HINGE of the SVMs in vectors (·, P): sums (·,). PLACE at vectors[0] with products numbers[0]. ASSEMBLE at
    vectors[0] after a step of numbers[0] along the direction at row move: sums P x P + 2 P + 3. PREDICT along
    vectors[0]: sums 2 P + 1. DIRECT along vectors[0] for what numbers (aim, trust) aim at, into row move. RECENTRE the
    direction at row move for numbers (step, aim): sums P. AGAIN: DIRECT for what RECENTRE has left. KEEP alpha.
    """
    P = Zt.shape[0]
    if what == HINGE:
        for i in range(vectors.shape[0]):
            sums[i] += _hinge(Zt, y, c, vectors[i])
    elif what == PLACE:
        _place(Zt, y, c, R, vectors[0], numbers[0])
    elif what == ASSEMBLE:
        H = sums[: P * P].reshape(P, P)
        rhs, dual, three = sums[P * P : P * P + P], sums[P * P + P : P * P + 2 * P], sums[P * P + 2 * P :]
        _assemble(Zt, y, c, R, vectors[0], move, numbers[0], H, rhs, dual, three)
    elif what == PREDICT:
        worst, second = _predict(Zt, y, R, vectors[0], sums[:P], sums[P : 2 * P])
        sums[2 * P] += second
        return worst
    elif what == DIRECT:
        _aim(R, numbers[0], numbers[1])
        return _direct(Zt, y, R, vectors[0], move)
    elif what == RECENTRE:
        _recentre(Zt, y, R, move, numbers[0], numbers[1], sums)
    elif what == AGAIN:
        return _direct(Zt, y, R, vectors[0], move)
    elif what == KEEP:
        alpha[:] = R[A]
    return 0.0


_pass, rows_pass = kernel(_rows_pass), entry(_rows_pass)


def _newton(N, L, whole, more, inside, fitted, near, answer, reached, asked, numbers, at, sums, worst):
    """Solve one problem of N rows; yields the passes over the rows that it needs, see `rows_pass`.

    Before each yield `asked` (4, P), `numbers` (2,) and `at` (3,) tell what the pass needs; `sums` (P x P + 2 P + 3,)
    and `worst` (1,) must then hold what it has found. Where at[SAVE] is set, the pass KEEP is to be done first, and
    at[SAVE] set back.

    whole: sum c. more: sum c of further rows that are inside the margin whatever happens, inside (P,): sum c y z of
    these. It begins at the guess of lowest objective: ``fitted`` (P,), a least-squares SVM, at three sizes, or
    ``near`` (P,), a nearby problem's answer, where it is not zero; with `more` at ``near``. In the end answer (P,) is
    the best SVM seen, reached (1,) the relative duality gap, and the kept alpha are the best multipliers.
    """
    P = near.shape[0]
    H, rhs, v, best, share = np.empty((P, P)), np.empty(P), np.zeros(P), np.inf, FAR
    affine, direction = np.zeros(P), np.zeros(P)
    at[:] = 1, MOVE, 0
    if more > 0.0:
        asked[0] = near
    else:
        at[VECTORS] = 4 if np.any(near[:L] != 0.0) else 3
        asked[0], asked[1], asked[2], asked[3] = fitted, 2.0 * fitted, 4.0 * fitted, near
    yield HINGE
    for i in range(at[VECTORS]):
        value = 0.5 * np.sum(asked[i, :L] ** 2) + sums[i] + more - np.sum(asked[i] * inside)
        if value < best:
            best, v[:], share = value, asked[i], NEARER if more > 0.0 else NEAR if i == 3 else FAR
    at[VECTORS], asked[0], numbers[0] = 1, v, share * best / N
    yield PLACE
    best, proved, previous, stalled, restarted = np.inf, -np.inf, np.inf, 0, False
    answer[:] = v
    step, move, trial = 0.0, MOVE, TRIAL
    for _ in range(MAX_ITER):
        asked[0], at[ROW], numbers[0] = v, move, step
        yield ASSEMBLE
        for i in range(P):
            H[i] = sums[i * P : (i + 1) * P]
        dual, gap = sums[P * P + P : P * P + 2 * P] + inside, sums[P * P + 2 * P]
        lost, total = sums[P * P + 2 * P + 1] + more - np.sum(v * inside), sums[P * P + 2 * P + 2] + more
        primal, bound = 0.5 * np.sum(v[:L] ** 2) + lost, total - 0.5 * np.sum(dual[:L] ** 2)
        if primal < best:
            best, answer[:] = primal, v
        # Rounding can spoil late multipliers for huge C: keep those of the best bound, once sum alpha y is near zero.
        level = abs(dual[L]) <= LEVEL * total
        if proved == -np.inf or (level and bound > proved):
            at[SAVE] = 1
            proved = bound if level else proved
        balanced = abs(dual[L]) <= TOLERANCE * (whole + more)
        # With as many rows on the margin as unknowns rounding spoils the bound first, not the iterate.
        if (balanced and best - bound <= TOLERANCE * best) or gap <= ROUNDING * best:
            break
        stalled = stalled + 1 if gap > 0.9 * previous else 0
        cautious = 0.0 < step < SHORT or gap > previous
        previous = gap
        close = balanced and gap <= CLOSE * best
        if stalled >= (PATIENCE if close else STRUGGLE):
            if restarted or close:
                break
            # a guess that misled: begin again from the zero SVM, once
            v[:], restarted, stalled, previous, step, move, trial = 0.0, True, 0, np.inf, 0.0, MOVE, TRIAL
            asked[0], numbers[0] = v, whole / N
            yield PLACE
            continue
        for i in range(P):  # 1 for the weights, 0 for the bias; the padding becomes the identity
            if i != L:
                H[i, i] += 1.0
        if not _factor(H):
            break
        rhs[:] = sums[P * P : P * P + P] + dual
        rhs[:L] -= v[:L]
        _substitute(H, rhs, affine)
        asked[0] = affine
        yield PREDICT
        centre, curve, second, reach = sums[:P], sums[P : 2 * P], sums[2 * P], 1.0 / max(1.0, worst[0])
        # Mehrotra's rule: aim at (mu_affine / mu)^3 mu
        after = max(gap * (1.0 - reach) + reach * reach * second, 0.0)
        aim, trust = (after / gap) ** 3 * gap / (2 * N), 1.0
        if cautious:  # Mehrotra's steps can cycle; after a bad one take a plain step towards the central path
            aim, trust = max(aim, CENTRE * gap / (2 * N)), 0.0
        rhs += aim * centre + trust * curve
        _substitute(H, rhs, direction)
        asked[0], at[ROW], numbers[0], numbers[1] = direction, move, aim, trust
        yield DIRECT
        step = DAMPING / max(worst[0], DAMPING)
        for _ in range(CORRECTORS):
            if step > LONG:
                break
            at[ROW], numbers[0], numbers[1] = move, min(1.0, 2.0 * step + 0.1), aim
            yield RECENTRE
            rhs += sums[:P]
            _substitute(H, rhs, affine)
            asked[0], at[ROW] = affine, trial
            yield AGAIN
            longer = DAMPING / max(worst[0], DAMPING)
            if longer < 1.1 * step:
                break
            step, move, trial = longer, trial, move
            direction, affine = affine, direction
        v += step * direction
    if at[SAVE]:
        yield KEEP
    if best > 0.0:
        reached[0] = (best - proved) / best


_steps, newton = kernel(_newton), entry(_newton)


@entry
def factor_gram(gram):
    """gram (P, P), its lower triangle, becomes its Cholesky factor with a little ridge; returns whether it has one."""
    P, ridge = gram.shape[0], 0.0
    for i in range(P):
        ridge += 1e-6 * gram[i, i] / P
    for i in range(P):
        gram[i, i] += ridge
    return _factor(gram)


@entry
def solve_factored(gram, moments, out):
    """out (P,) becomes the solution for moments (P,), from the `factor_gram` of a Gram matrix."""
    _substitute(gram, moments, out)


@entry
def interior_point(Zt, L, y, c, gram, near, answer, alpha):
    """One problem with all rows here: answer (P,) becomes the best SVM seen, alpha (N,) the best multipliers.

    gram (P, P): `factor_gram` of that of Zt. near (P,): see `newton`.
    """
    P, N = Zt.shape
    R, moments, fitted = np.zeros((ROWS, N)), np.zeros(P), np.zeros(P)
    _add_moments(Zt, 0, N, y, moments)
    _substitute(gram, moments, fitted)
    asked, numbers, at = np.zeros((4, P)), np.zeros(2), np.zeros(3, np.int64)
    sums, worst, reached = np.zeros(P * P + 2 * P + 3), np.zeros(1), np.zeros(1)
    state = answer, reached, asked, numbers, at, sums, worst
    for what in _steps(N, L, c.sum(), 0.0, np.zeros(P), fitted, near, *state):
        if at[SAVE]:
            alpha[:], at[SAVE] = R[A], 0
        sums[:] = 0.0
        worst[0] = _pass(what, Zt, y, c, R, alpha, asked[: at[VECTORS]], at[ROW], numbers, sums)


@entry
def rows_gram(Zt, gram):
    """gram (P, P) += sum z z'; only the block-lower triangle is filled."""
    _add_gram(Zt, 0, Zt.shape[1], np.ones(Zt.shape[1]), np.empty(Zt.shape[1]), gram)
