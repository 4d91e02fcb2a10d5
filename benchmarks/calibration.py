"""Probabilities: log loss and calibration error on fresh rows beside scikit-learn's CalibratedClassifierCV.

Ours is one fit, as it comes. The peer is cross-fitted, ``CalibratedClassifierCV(ensemble=False)`` around the same
classifier, with its sigmoid and with its temperature: five fits and one. Seconds are those of this process's cores.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.harness import Bar, Result, components_of_mnist, newsgroups, progress
from ldsvm import LDSVMClassifier

TABLES = ["german", "magic", "mammography", "optdigits", "satimage", "segment", "spambase", "vehicle"]
COMPONENTS = 40  # of MNIST
BINS = 15
MOST_LOG_LOSS, MOST_TIME, MOST_ERROR, CALIBRATED = 1.01, 1.2, 0.02, 3


def run(quick: bool) -> Result:
    seeds = [0] if quick else [0, 1, 2]
    result = Result(settings={"seeds": seeds, "components": COMPONENTS, "bins": BINS})
    for name, parts in _problems(quick).items():
        for seed in seeds:
            progress(f"calibration: {name}, seed {seed}")
            result.rows.append({"data": name, "seed": seed, **_compared(parts(seed), seed, quick)})
    errors = {}
    for name in dict.fromkeys(row["data"] for row in result.rows):
        mean = {key: result.mean(key, data=name) for key in ("log loss", "sigmoid", "temperature", "ECE", "over a fit")}
        best, errors[name] = min(mean["sigmoid"], mean["temperature"]), mean["ECE"]
        result.bars += [
            Bar(f"{name}_log_loss_over_the_better_peer", mean["log loss"] / best, "<=", MOST_LOG_LOSS),
            Bar(f"{name}_time_over_a_fit", mean["over a fit"], "<=", MOST_TIME),
        ]
    for name in [name for name in ("MNIST", "PC or Mac") if name in errors]:
        result.bars.append(Bar(f"{name}_calibration_error", errors.pop(name), "<=", MOST_ERROR))
    calibrated = sum(error <= MOST_ERROR for error in errors.values())  # a few hundred test rows do not show so little
    result.bars.append(Bar("tables_of_that_calibration_error", calibrated, ">=", CALIBRATED))
    return result


def _problems(quick: bool) -> dict[str, Callable[[int], tuple[Any, ...]]]:
    """Return what gives training and test rows, X, y, X, y, for a seed, by name."""
    from benchmarks.tabular_data import tables

    found: dict[str, Callable[[int], tuple[Any, ...]]] = {
        table.name: table.split for table in tables(quick) if quick or table.name in TABLES
    }
    if not quick:
        found["PC or Mac"] = _posts
    return found | {"MNIST": lambda seed: components_of_mnist(seed, quick, COMPONENTS)}


def _posts(seed: int) -> tuple[Any, ...]:
    found = newsgroups(seed)
    X, y = (np.concatenate(pair) for pair in zip(found["train"], found["validation"], strict=True))
    return (X, y, *found["test"])


def _compared(parts: tuple[Any, ...], seed: int, quick: bool) -> dict[str, Any]:
    from sklearn.calibration import CalibratedClassifierCV

    X, y, X_test, y_test = parts

    def seconds(model: Any) -> float:
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a peer's folds, with fewer rows than basis functions
            model.fit(X, y)
        return time.process_time() - begun

    def fresh(**changes: Any) -> LDSVMClassifier:
        return LDSVMClassifier(random_state=seed, n_jobs=1, **changes)

    ours, without = fresh(), fresh(calibration=None)
    ours.fit(X[::10], y[::10])  # compiles
    repeats = range(1 if quick else 3)
    times = [(seconds(ours), seconds(without)) for _ in repeats]  # in turns: other work on the machine slows both
    P = ours.predict_proba(X_test)
    row = {
        "N": len(y), "classes": len(ours.classes_), "test %": 100 * (1 - ours.score(X_test, y_test)),
        "log loss": log_loss(y_test, P, labels=ours.classes_), "ECE": calibration_error(P, y_test, ours.classes_),
        "train s": min(time for time, _ in times), "over a fit": min(a for a, _ in times) / min(b for _, b in times),
    }  # fmt: skip
    for method in ("sigmoid", "temperature"):
        peer = CalibratedClassifierCV(fresh(calibration=None), method=method, ensemble=False)
        row[f"{method} s"] = seconds(peer)
        P = peer.predict_proba(X_test.astype(np.float64))  # sums of float32 are not one to scikit-learn
        row[method] = log_loss(y_test, P, labels=peer.classes_)
        row[f"{method} ECE"] = calibration_error(P, y_test, peer.classes_)
    return row


def calibration_error(P: Any, y: Any, classes: Any) -> float:
    """Return the mean difference of confidence and share of right answers, over bins of confidence of the winner.

    Examples
    --------
    >>> calibration_error(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1]), np.array([0, 1]))
    0.4
    """
    sure, right = P.max(axis=1), classes[P.argmax(axis=1)] == y
    number = np.minimum((sure * BINS).astype(int), BINS - 1)
    bins = [number == k for k in np.unique(number)]
    return float(np.round(sum(part.mean() * abs(right[part].mean() - sure[part].mean()) for part in bins), 12))


def quoted(result: Result) -> list[tuple[str, str]]:
    names = list(dict.fromkeys(row["data"] for row in result.rows))
    ratios = [result.bar(f"{name}_log_loss_over_the_better_peer") for name in names]
    times = fmean(result.bar(f"{name}_time_over_a_fit") for name in names)
    peer = fmean(row["temperature s"] / row["train s"] for row in result.rows)
    return [
        (
            f"`predict_proba` on {len(names)} data sets: log loss divided by the better of scikit-learn's cross-fitted "
            "sigmoid and temperature",
            f"{min(ratios):.3f} to {max(ratios):.3f}; takes {times:.2f} times as long as a fit (theirs {peer:.1f})",
        )
    ]
