"""Whether new rows look like those a model was trained on: inputs, labels, and where they lie in the latent space.

This needs only a `Profile`, counts of the training rows in bins, and not the rows themselves. For each input, for the
labels, and for the distance of a row to its nearest class centroid in F(x), two numbers compare the counts:

* the population stability index, sum (p - q) log(p / q) over the bins, with shares p in training and q now: how much
  the distribution has moved;
* Pearson's chi-squared test of homogeneity on the same bins, and exact tests on the rows outside the range of the
  training: whether chance alone could move it as much. Many inputs are tested at once, so Benjamini and Hochberg's
  procedure (1995) bounds the share of false discoveries among them.

An input has drifted if both say so: with many rows the smallest change is significant, and with few rows a large change
can be chance. For columns of a mixed table, values and the share of missing values are compared separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production.input_counts import Counts, Inputs, counts_in, edges_of

SPARSE = 5  # rows expected in a bin below which Pearson's statistic is not distributed as chi-squared (Cochran 1954)
NAMED = 10  # drifted inputs that a sentence names


@dataclass(frozen=True)
class Profile(Inputs):
    """Counts of what a model was trained on, as plain values.

    classes: training rows by label, as a str. centroids: of the K classes in the latent space, K rows of L numbers.
    latent_edges, latent_counts: as for the inputs, of the distances to the nearest centroid. answers: rows by predicted
    class, of the rows whose distances are counted; empty in models of earlier releases.
    """

    classes: dict[str, int]
    centroids: list[list[float]]
    latent_edges: list[float]
    latent_counts: list[int]
    answers: dict[str, int] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class Seen:
    """Counts of other rows in the bins of a profile, as plain values. Those of several chunks of rows add up.

    inputs, gaps: see `Inputs.count`. classes: rows by label, or by predicted class, as a str. latent: of distances.
    """

    rows: int
    inputs: list[list[float]]
    gaps: list[int]
    classes: dict[str, int]
    latent: list[float]

    def __add__(self, other: Seen) -> Seen:
        """Return the counts of both."""
        inputs = [_sums(*both) for both in zip(self.inputs, other.inputs, strict=True)]
        gaps = [before + after for before, after in zip(self.gaps, other.gaps, strict=True)]
        names = dict.fromkeys([*self.classes, *other.classes])
        classes = {name: self.classes.get(name, 0) + other.classes.get(name, 0) for name in names}
        return Seen(self.rows + other.rows, inputs, gaps, classes, _sums(self.latent, other.latent))


def _sums(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(one, other, strict=True)]


@dataclass(frozen=True)
class Shift:
    """How one quantity moved. psi: population stability index. p: of the test, after the correction for many."""

    name: str
    psi: float
    p: float
    drifted: bool


@dataclass(frozen=True)
class Gaps(Shift):
    """How the missing values of an input moved. before, now: the share of rows without a value."""

    before: float
    now: float


@dataclass(frozen=True)
class Drift:
    """How everything moved. labels: those of the rows, or the predicted classes.

    unknown: labels that were not there in training. gaps: how the share of missing values moved, for the columns of a
    mixed table that have some.
    """

    inputs: tuple[Shift, ...]
    labels: Shift
    latent: Shift
    unknown: tuple[str, ...]
    gaps: tuple[Gaps, ...] = ()

    @property
    def share(self) -> float:
        """Part of the inputs that have drifted, by their values or their gaps."""
        drifted = {shift.name for shift in (*self.inputs, *self.gaps) if shift.drifted}
        return float(np.mean([shift.name in drifted for shift in self.inputs]))

    @property
    def sentences(self) -> list[str]:
        """What has drifted, the worst first."""
        worst = sorted((shift for shift in self.inputs if shift.drifted), key=lambda shift: -shift.psi)
        found = []
        if worst:
            names = ", ".join(f"{shift.name} ({shift.psi:.2f})" for shift in worst[:NAMED])
            have = "has" if len(worst) == 1 else "have"
            more = "" if len(worst) <= NAMED else f" and {len(worst) - NAMED} others"
            found.append(f"{len(worst)} of {len(self.inputs)} inputs {have} drifted (stability index): {names}{more}.")
        if gaps := [f"{g.name} ({100 * g.before:.2g} % to {100 * g.now:.2g} %)" for g in self.gaps if g.drifted]:
            more = "" if len(gaps) <= NAMED else f" and {len(gaps) - NAMED} others"
            found.append(f"The share of missing values has changed in {', '.join(gaps[:NAMED])}{more}.")
        what_moved = (self.labels, f"The {self.labels.name} have"), (self.latent, "Distances in the latent space have")
        for shift, what in what_moved:
            if shift.drifted:
                found.append(f"{what} drifted (stability index {shift.psi:.2f}).")
        if self.unknown:
            found.append(f"New labels: {', '.join(self.unknown)}.")
        return found or ["Nothing has drifted."]

    def beyond(self, rules: DriftConfig) -> str | None:
        """Return a sentence if more of the inputs have drifted than `alarm_share` allows."""
        if self.share <= rules.alarm_share:
            return None
        limit = f"production.drift.alarm_share allows {100 * rules.alarm_share:g} %"
        return f"{100 * self.share:.0f} % of the inputs have drifted; {limit}."


def profile(
    inputs: Inputs, y: NDArray[Any], F: NDArray[Any], unseen: NDArray[Any], answers: NDArray[Any] | None = None
) -> Profile:
    """Return the counts of a training.

    inputs: of `count_bins` or `count_table`. y (N,), F (N, L): labels and latent coordinates of the training rows.
    unseen: latent coordinates (M, L) of other rows of the same kind, answers (M,): the classes that the model gives
    them. The map was fitted to the training rows, which therefore lie closer to their centroids than later rows will;
    so distances and answers are counted on the unseen rows.
    """
    labels, index = np.unique(y.astype(str), return_inverse=True)
    centroids = np.stack([F[index == k].mean(axis=0, dtype=np.float64) for k in range(len(labels))])
    distances = _nearest(unseen, centroids)
    latent = edges_of(distances)
    return Profile(
        inputs.names,
        inputs.edges,
        inputs.counts,
        classes=dict(zip(labels.tolist(), np.bincount(index).tolist(), strict=True)),
        centroids=centroids.tolist(),
        latent_edges=latent.tolist(),
        latent_counts=counts_in(distances, latent).tolist(),
        values=inputs.values,
        gaps=inputs.gaps,
        answers={} if answers is None else _by_class(answers),
    )


def count(then: Profile, X: Any, y: NDArray[Any], F: NDArray[Any]) -> Seen:
    """Count new rows X (n, D), their labels or predicted classes y (n,), and F (n, L), the same model's coordinates.

    X: a table as `count_table` takes it where the profile is of one, else a matrix.
    """
    inputs, gaps = then.count(X)
    latent = counts_in(_nearest(F, np.array(then.centroids)), np.array(then.latent_edges))
    return Seen(len(y), [column.tolist() for column in inputs], gaps, _by_class(y), latent.tolist())


def compare(then: Profile, seen: Seen, rules: DriftConfig, answers: bool = False) -> Drift:
    """Compare counts of new rows with those of the training. answers: the classes of `seen` are predicted ones."""
    inputs, gaps = _compare_inputs(then, seen, rules)
    latent = np.array(then.latent_counts, float), np.array(seen.latent, float)
    known = then.answers or then.classes if answers else then.classes
    unknown = tuple(name for name in seen.classes if name not in then.classes)
    pair = [np.array([counts.get(name, 0) for name in then.classes], float) for counts in (known, seen.classes)]
    rest = (
        _shift("predicted classes" if answers else "labels", (pair[0], pair[1]), p_of_homogeneity(*pair), rules),
        _shift("latent", latent, p_of_no_change(*latent), rules),
    )
    return Drift(inputs, *rest, unknown, gaps)


def _by_class(y: NDArray[Any]) -> dict[str, int]:
    found, counts = np.unique(y.astype(str), return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _compare_inputs(then: Profile, seen: Seen, rules: DriftConfig) -> tuple[tuple[Shift, ...], tuple[Gaps, ...]]:
    """Return how the values of each input moved, and the gaps of those that have some, then or now."""
    now, gaps_now = [np.array(counts, float) for counts in seen.inputs], seen.gaps
    pairs = [(np.array(old, float), new) for old, new in zip(then.counts, now, strict=True)]
    tests = [p_of_no_change if own is None else p_of_same_values for own in then.values or [None] * len(pairs)]
    gaps = [
        (name, (np.array([old.sum(), before]), np.array([new.sum(), after])))
        for name, (old, new), before, after in zip(then.names, pairs, then.gaps, gaps_now, strict=False)
        if before or after
    ]
    adjusted = _adjusted(
        [test(*pair) for test, pair in zip(tests, pairs, strict=True)]
        + [_fisher(old[1], old.sum(), new[1], new.sum()) for _, (old, new) in gaps]
    )
    of_values, of_gaps = adjusted[: len(pairs)], adjusted[len(pairs) :]
    values = [_shift(name, pair, p, rules) for name, pair, p in zip(then.names, pairs, of_values, strict=True)]
    moved = [
        Gaps(**asdict(_shift(name, pair, p, rules)), before=_last(pair[0]), now=_last(pair[1]))
        for (name, pair), p in zip(gaps, of_gaps, strict=True)
    ]
    return tuple(values), tuple(moved)


def _last(counts: Counts) -> float:
    return float(counts[-1] / counts.sum())


def stability(old: Counts, new: Counts) -> float:
    """Return the population stability index of two arrays of counts (B,); half a row is added to each bin.

    Examples
    --------
    >>> stability(np.array([50.0, 50.0]), np.array([500.0, 500.0]))
    0.0
    >>> round(stability(np.array([500.0, 500.0]), np.array([250.0, 750.0])), 2)
    0.27
    """
    p, q = ((counts + 0.5) / (counts + 0.5).sum() for counts in (old, new))
    return float(((p - q) * np.log(p / q)).sum())


def p_of_no_change(old: Counts, new: Counts) -> float:
    """Return the p value of a test that two arrays of counts (B,) in ordered bins are draws from one distribution.

    The first and the last bin lie outside the range of the training, so they are empty there, but for missing values in
    the last. Each of them has an exact test of its own: when nothing has moved, k new rows beyond one end are
    as probable as that the k largest of all N + n rows are new ones, C(n, k) / C(N + n, k), which is Fisher's test. The
    result is the smallest of the three p values, times three (Bonferroni).
    """
    if len(old) < 3:
        return 1.0
    ends = [_fisher(old[end], old.sum(), new[end], new.sum()) for end in (0, -1)]
    return min(1.0, 3 * min(*ends, p_of_homogeneity(old[1:-1], new[1:-1])))


def p_of_same_values(old: Counts, new: Counts) -> float:
    """Return the p value of a test that two arrays of counts by value (B,) are draws from one distribution.

    The last count is of rare and unknown values; it has an exact test of its own, since new values are few at
    first. The result is the smaller of the two p values, times two.
    """
    return min(1.0, 2 * min(_fisher(old[-1], old.sum(), new[-1], new.sum()), p_of_homogeneity(old, new)))


def p_of_homogeneity(old: Counts, new: Counts) -> float:
    """Return the p value of Pearson's test that two arrays of counts (B,) are draws from one distribution.

    Neighbours are put together until the smaller array has SPARSE rows to expect in each bin.
    """
    from scipy.special import chdtrc

    table = np.stack([old, new])
    total, whole = table.sum(axis=1), table.sum()
    if not total.all():
        return 1.0
    least, starts, weight = SPARSE * whole / total.min(), [0], 0.0
    for place, count in enumerate(table.sum(axis=0)):
        if weight >= least:
            starts, weight = [*starts, place], 0.0
        weight += count
    if weight < least:
        starts.pop()
    if len(starts) < 2:
        return 1.0
    merged = np.add.reduceat(table, starts, axis=1)
    expected = np.outer(total, merged.sum(axis=0)) / whole
    return float(chdtrc(len(starts) - 1, ((merged - expected) ** 2 / expected).sum()))


def _fisher(before: float, rows: float, now: float, new: float) -> float:
    """Return the two-sided p value of Fisher's exact test: twice the smaller one-sided one."""
    from scipy.stats import hypergeom

    if not before and not now:
        return 1.0
    table = rows + new, before + now, new
    return min(1.0, 2 * float(min(hypergeom.cdf(now, *table), hypergeom.sf(now - 1, *table))))


def _shift(name: str, pair: tuple[Counts, Counts], p: float, rules: DriftConfig) -> Shift:
    psi = stability(*pair)
    return Shift(name, psi, p, drifted=psi > rules.psi and p <= rules.false_discovery_rate)


def _adjusted(p: Sequence[float]) -> list[float]:
    from scipy.stats import false_discovery_control

    return [float(value) for value in false_discovery_control(p)] if p else []


def _nearest(F: NDArray[Any], centroids: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of each row of F (N, L) to the nearest centroid (K, L)."""
    from sklearn.metrics import pairwise_distances_argmin_min

    found: NDArray[np.float64] = pairwise_distances_argmin_min(F.astype(np.float64), centroids)[1]
    return found
