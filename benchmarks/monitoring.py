"""The error of scored rows without labels: what `score` estimates beside what it is, as the rows change.

A model and half of the other rows, which judge it, are as in production. The remaining rows are changed: another mix of
the classes, noise, and inputs that are shifted. What counts is the distance of the estimate from the error, in batches
for which an estimate is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.calibration import COMPONENTS
from benchmarks.harness import Bar, Result, components_of_mnist, progress
from ldsvm import LDSVMClassifier
from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production.drift import compare, count, profile
from ldsvm.production.estimate import estimate, expected, on_holdout, prior_of
from ldsvm.production.input_counts import count_bins

TABLES = ["letter", "magic"]
TRAIN, ROWS = 5_000, 4_000  # rows that train, and rows of a batch at most
NOISE, SHIFTS, MIXES = (0.05, 0.1, 0.2, 0.5, 1.0), (0.05, 0.1, 0.2, 0.5, 1.0), 4  # in standard deviations
POINTS = 1.0  # of distance, at most
RULES = DriftConfig()


def run(quick: bool) -> Result:
    seeds = [0] if quick else [0, 1, 2]
    result = Result(settings={"seeds": seeds, "train": TRAIN, "rows": ROWS})
    for name, parts in _problems(quick):
        for seed in seeds:
            progress(f"monitoring: {name}, seed {seed}")
            result.rows += [{"data": name, "seed": seed, **row} for row in _monitored(parts(seed), seed)]
    for name in dict.fromkeys(row["data"] for row in result.rows):
        rows = [row for row in result.rows if row["data"] == name]
        sure = [row for row in rows if not row["doubtful"]]
        far = [row for row in rows if abs(row["off"]) > POINTS]
        result.bars += [
            Bar(f"{name}_largest_distance_in_points", max(abs(row["off"]) for row in sure), "<=", POINTS),
            Bar(
                f"{name}_of_far_ones_called_doubtful",
                sum(row["doubtful"] for row in far) / max(1, len(far)),
                ">=",
                0.95,
            ),
        ]
    return result


def _problems(quick: bool) -> Iterator[tuple[str, Any]]:
    """Yield a name and what gives training and other rows, X, y, X, y, for a seed."""
    from benchmarks.tabular_data import tables

    for table in tables(quick, full=True):
        if quick or table.name in TABLES:
            yield table.name, table.split
    yield "MNIST", lambda seed: components_of_mnist(seed, quick, COMPONENTS)


def _monitored(parts: tuple[Any, ...], seed: int) -> Iterator[dict[str, Any]]:
    from sklearn.model_selection import train_test_split

    X, y, X_other, y_other = (np.asarray(part) for part in parts)
    X, y, rest, y_rest = (
        X[:TRAIN],
        y[:TRAIN],
        np.concatenate([X[TRAIN:], X_other]),
        np.concatenate([y[TRAIN:], y_other]),
    )
    judges, later, y_judges, y_later = train_test_split(rest, y_rest, test_size=0.5, random_state=seed, stratify=y_rest)
    model = LDSVMClassifier(random_state=seed, n_jobs=1).fit(X, y)
    answers = model.predict(judges)
    inputs = count_bins(X, [f"x{d}" for d in range(X.shape[1])])
    then = profile(inputs, y, model.transform(X), model.transform(judges), answers)
    prior = prior_of(then, model.classes_)
    places = np.searchsorted(model.classes_, answers)
    held = on_holdout(model.predict_proba(judges), places, int((answers != y_judges).sum()))
    for change, Q, labels in _changes(later, y_later, np.random.default_rng(seed)):
        answers = model.predict(Q)
        drift = compare(then, count(then, Q, answers, model.transform(Q)), RULES, answers=True)
        sums = expected(model.predict_proba(Q), np.searchsorted(model.classes_, answers), prior)
        found, error = estimate(sums, drift, RULES, held), float((answers != labels).mean())
        yield {
            "change": change, "error %": 100 * error, "estimated %": 100 * found.error, "low %": 100 * found.low,
            "high %": 100 * found.high, "off": 100 * (found.error - error), "inside": found.low <= error <= found.high,
            "doubtful": found.doubtful,
        }  # fmt: skip


def _changes(X: Any, y: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any, Any]]:
    """Yield what was changed, and rows X, y after it."""
    codes, scale = np.unique(y, return_inverse=True)[1], X.std(axis=0)

    def drawn(weights: Any = None) -> tuple[Any, Any]:
        rows = rng.choice(len(y), min(ROWS, len(y) // 2), replace=False, p=weights)
        return X[rows], y[rows]

    yield "none", *drawn()
    for number in range(MIXES):
        share = rng.dirichlet(np.ones(codes.max() + 1))[codes] / np.bincount(codes)[codes]
        yield f"mix {number}", *drawn(share / share.sum())
    for size in NOISE:
        rows, labels = drawn()
        yield f"noise {size:g}", (rows + size * scale * rng.normal(size=rows.shape)).astype(X.dtype), labels
    for size in SHIFTS:
        rows, labels = drawn()
        yield f"shift {size:g}", (rows + size * scale * rng.choice([-1, 1], size=X.shape[1])).astype(X.dtype), labels


def quoted(result: Result) -> list[tuple[str, str]]:
    sure = [row for row in result.rows if not row["doubtful"]]
    names = dict.fromkeys(row["data"] for row in result.rows)
    worst = max(result.bar(f"{name}_largest_distance_in_points") for name in names)
    mean = sum(abs(row["off"]) for row in sure) / len(sure)
    return [
        (
            f"the error estimated without labels, {', '.join(names)}, with another mix of classes, noise or shifts",
            f"{mean:.2f} points off on average, {worst:.2f} at most; no estimate was given for "
            f"{len(result.rows) - len(sure)} of {len(result.rows)} batches, which were too unlike the training rows",
        )
    ]
