"""Small real tables: every method with its defaults and after a search, five splits, the test rows judged once.

Each has one thread, and its seconds are those of the processor, so that other work beside it counts little. It takes
hours, so with --json each figure is kept at once, in FILE.part: a run that is started again goes on there.
"""

from __future__ import annotations

import json
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import packages_distributions, version
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Result, clock, progress
from benchmarks.tabular_data import Table, tables
from benchmarks.tabular_methods import RIVALS, Rival, with_width
from ldsvm import threads
from ldsvm.atomic import append_line, replacing
from ldsvm.experiment.sources import HOME, digest_of

SPLITS, TRIALS, INNER = 5, 9, 2  # of a table; candidates of a search, its splits of the training rows
SECONDS = 30.0  # of the processor, after which a search of one split of a table begins no further candidate
VALID = 0.25  # of the training rows, in a search
MEDIUM, LARGE = 3_000, 5_000  # training rows from which on few support vectors, and less training time, are promised
TUNED = " tuned"


@dataclass(frozen=True)
class Split:
    """Training and test rows, and the gamma that "scale" stands for."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    seed: int

    @property
    def scale(self) -> float:
        return float(1.0 / (self.X.shape[1] * self.X.var()))


def run(
    quick: bool, full: bool = False, names: Sequence[str] = tuple(RIVALS), journal: Path | None = None
) -> Result:  # fmt: skip
    """Compare the methods of these names; "ours" and "SVC" must be among them. journal: file of the figures so far."""
    splits, trials = (1, 2) if quick else (SPLITS, TRIALS)
    absent = [name for name in names if RIVALS[name].absent]
    settings = {"splits": splits, "trials": trials, "seconds": SECONDS, "absent": absent}
    kept = Kept(journal, {"splits": splits, "trials": trials, "seconds": SECONDS, "full": full})
    present = [name for name in names if name not in absent]
    _warm(present)
    found = [row for table in tables(quick, full) for row in _compared(table, present, splits, trials, kept)]
    return Result(summary(found), bars(found), {**settings, "measured": found})


def _warm(names: Sequence[str]) -> None:
    """Fit each once, so that no figure has the seconds of imports and of compiling."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    with threads.limit(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            RIVALS[name].make(0).fit(X, y).predict(X)


_distributions = cache(packages_distributions)


def code_of(name: str) -> str:
    """Return a digest of what a method's figures depend on: its search, and our code or the version of a rival's."""
    rival = RIVALS[name]
    if rival.ours:
        files = [file for folder in ("mac", "maps", "solvers") for file in (HOME / folder).glob("*.py")]
        code = digest_of([*files, *HOME.glob("*.py"), HOME / "datasets/relevance.py"])
    else:
        code = version(_distributions()[rival.package or "sklearn"][0])
    return sha256(f"{code} {rival.space}".encode()).hexdigest()[:16]


class Kept:
    """Figures in a file of JSON lines, the first of which says what run they are of; those of another are dropped.

    Figures of other code of a method are measured again, and those of the rivals stay when ours changes.
    """

    def __init__(self, path: Path | None, run: dict[str, Any]) -> None:
        self.path, self.rows = path, dict[tuple[Any, ...], dict[str, Any]]()
        if path is None:
            return
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        if lines and json.loads(lines[0]) == run:
            for line in lines[1:]:
                with suppress(ValueError):  # the last one, where a run was killed as it wrote
                    row = json.loads(line)
                    self.rows[self._key(row)] = row
            progress(f"{path}: {len(self.rows)} figures are there already")
        with replacing(path) as file:
            file.write_text("".join(json.dumps(line) + "\n" for line in [run, *self.rows.values()]), "utf-8")

    @staticmethod
    def _key(about: dict[str, Any]) -> tuple[Any, ...]:
        return about["table"], about["seed"], about["method"], about["code"]

    def measured(self, about: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the figures that are there, or measure and keep them."""
        if (key := self._key(about)) not in self.rows:
            self.rows[key] = {**about, **measure()}
            if self.path is not None:
                append_line(self.path, json.dumps(self.rows[key]).encode())
        return self.rows[key]


def _compared(
    table: Table, names: Sequence[str], splits: int, trials: int, kept: Kept
) -> Iterator[dict[str, Any]]:  # fmt: skip
    codes = {name: code_of(name) for name in names}
    for seed in range(splits):
        split = Split(*table.split(seed), seed)
        progress(f"{table.name}, split {seed + 1} of {splits}: {len(split.y):,} x {split.X.shape[1]} to train")
        for name in names:
            rival = RIVALS[name]
            about = {"table": table.name, "seed": seed, "rows": len(split.y), "code": codes[name]}
            yield kept.measured({**about, "method": name}, partial(judged, rival, name, {}, split))
            if rival.space:
                yield kept.measured({**about, "method": name + TUNED}, partial(tuned, rival, name, split, trials))


def tuned(rival: Rival, name: str, split: Split, trials: int) -> dict[str, Any]:
    """Search on the training rows, then fit and look at the test rows once."""
    params, seconds = searched(rival, name, split, trials)
    return {**judged(rival, name, params, split), "search s": seconds}


def judged(rival: Rival, name: str, params: dict[str, Any], split: Split) -> dict[str, Any]:
    """Fit to all training rows and look at the test rows once."""
    model = rival.make(split.seed).set_params(**with_width(name, params, split.scale))
    with threads.limit(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = clock(lambda: model.fit(split.X, split.y), 1, warm=False, by=time.process_time)
        error = float(np.mean(model.predict(split.X_test) != split.y_test))
        row = clock(lambda: model.predict(split.X_test), 3, warm=False, by=time.process_time) / len(split.y_test)
    return {
        "error %": 100 * error, "fit s": seconds, "us a row": 1e6 * row, "basis": rival.size(model),
        "bytes": len(pickle.dumps(model)), "params": {key: str(value) for key, value in params.items()},
    }  # fmt: skip


def searched(rival: Rival, name: str, split: Split, trials: int) -> tuple[dict[str, Any], float]:
    """Return the best of the defaults and of points drawn from the space, by splits of the training rows; seconds."""
    from sklearn.model_selection import ParameterSampler, StratifiedShuffleSplit, cross_val_score

    begun = time.process_time()
    drawn = ParameterSampler(rival.space, trials - 1, random_state=split.seed)
    inner = StratifiedShuffleSplit(INNER, test_size=VALID, random_state=split.seed)
    best: tuple[float, dict[str, Any]] = (-1.0, {})
    with threads.limit(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for params in [{}, *drawn]:
            model = rival.make(split.seed).set_params(**with_width(name, params, split.scale))
            score = float(cross_val_score(model, split.X, split.y, cv=inner).mean())
            best = max(best, (score, params), key=lambda pair: pair[0])
            if time.process_time() - begun > SECONDS:
                break
    return best[1], time.process_time() - begun


def means(rows: Sequence[dict[str, Any]], key: str) -> dict[str, dict[str, float]]:
    """Return the mean over the splits of each method, table by table."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.get(key) is not None:
            found.setdefault(row["method"], {}).setdefault(row["table"], []).append(row[key])
    return {method: {table: fmean(values) for table, values in each.items()} for method, each in found.items()}


def ranks(errors: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean rank of each method by its errors on the tables, 1 for the lowest; ties share theirs."""
    from scipy.stats import rankdata

    names = sorted(errors)
    each = [rankdata([errors[name][table] for name in names]) for table in errors[names[0]]]
    return {name: float(rank) for name, rank in zip(names, np.mean(each, axis=0), strict=True)}


def critical_difference(methods: int, tables: int) -> float:
    """Return the difference of mean ranks that Nemenyi's test calls real at 5 % (Demsar, 2006).

    >>> round(critical_difference(5, 30), 3)
    1.114
    """
    from scipy.stats import studentized_range

    return float(
        studentized_range.ppf(0.95, methods, np.inf) / np.sqrt(2) * np.sqrt(methods * (methods + 1) / 6 / tables)
    )


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each method, best mean rank first."""
    errors = means(rows, "error %")
    rank, rival = ranks(errors), errors.get("SVC" + TUNED, {})
    columns = {key: means(rows, key) for key in ("fit s", "search s", "us a row", "basis", "bytes")}
    lines = []
    for name in sorted(rank, key=lambda name: rank[name]):
        line = {"method": name, "rank": rank[name], "error %": fmean(errors[name].values())}
        line["wins"] = sum(error < rival[table] for table, error in errors[name].items() if table in rival)
        line["losses"] = sum(error > rival[table] for table, error in errors[name].items() if table in rival)
        for key, found in columns.items():
            line[key] = median(found[name].values()) if name in found else "–"
        lines.append(line)
    return lines


def bars(rows: Sequence[dict[str, Any]]) -> list[Bar]:
    """Return what is promised beside the Gaussian SVM, by default and tuned."""
    errors, size, seconds, us = (means(rows, key) for key in ("error %", "basis", "fit s", "us a row"))
    rank, trained = ranks(errors), means(rows, "rows")["ours"]
    mean = {name: fmean(each.values()) for name, each in errors.items()}
    ours, svc = "ours" + TUNED, "SVC" + TUNED

    def ratios(of: dict[str, dict[str, float]], one: str, other: str, least: float = 0, most: float = np.inf) -> Any:
        return [of[one][table] / of[other][table] for table in of[one] if least <= trained[table] <= most]

    found = [
        ("tuned: mean error minus tuned SVC's", [mean[ours] - mean[svc]], 0.0),
        ("tuned: mean rank minus tuned SVC's", [rank[ours] - rank[svc]], 0.0),
        ("tuned: basis functions / support vectors", ratios(size, ours, svc), 0.5),
        ("tuned: the same, 3,000 training rows or more", ratios(size, ours, svc, MEDIUM), 0.1),
        ("default: mean error minus default SVC's", [mean["ours"] - mean["SVC"]], 0.0),
        ("default: mean error minus tuned SVC's", [mean["ours"] - mean[svc]], 0.5),
        ("default: seconds / SVC's, up to 3,000 rows", ratios(seconds, "ours", "SVC", most=MEDIUM), 3.0),
        ("default: seconds / SVC's, 5,000 rows or more", ratios(seconds, "ours", "SVC", LARGE), 1.0),
        ("prediction: our time / SVC's", ratios(us, "ours", "SVC"), 0.2),
    ]
    return [Bar(name, median(values), "<=", most) for name, values, most in found if values]


def picture(result: Result, path: Path) -> None:
    """Draw ranks and costs."""
    from benchmarks.tabular_figures import draw

    draw(result, path)


def quoted(result: Result) -> list[tuple[str, str]]:
    table = {row["method"]: row for row in result.rows}
    ours, svc = (table[name + TUNED] for name in ("ours", "SVC"))
    sizes = {name: row["basis"] for name, row in table.items() if row["basis"] != "–"}
    start = f"{len({row['table'] for row in result.settings['measured']})} small real tables, "
    return [
        (
            start + "after a search: mean test error",
            f"{ours['error %']:.1f} % (Gaussian SVM {svc['error %']:.1f}, mean rank {ours['rank']:.1f} and "
            f"{svc['rank']:.1f} of {len(table)})",
        ),
        (
            start + "with defaults: mean test error",
            f"{table['ours']['error %']:.1f} % (Gaussian SVM {table['SVC']['error %']:.1f})",
        ),
        (
            start + "basis functions, in the median",
            f"{sizes['ours' + TUNED]:.0f} (support vectors {sizes['SVC' + TUNED]:.0f})",
        ),
    ]
