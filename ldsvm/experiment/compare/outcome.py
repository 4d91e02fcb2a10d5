"""What one method achieved on one problem over all splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.search.failure import Kind
from ldsvm.metrics import DEFAULT

# Limits that were set, and what a table says of a method that came to one.
LIMITS = {Kind.NOT_RUN: "not run", Kind.TIME_LIMIT: "stopped", Kind.MEMORY_LIMIT: "stopped"}


@dataclass(frozen=True)
class Outcome:
    """The results of one method on one problem, one for each split in order.

    folder: of the first split's result, which figures show and whose model is kept. Errors are fractions and means
    over the splits that succeeded; times and sizes are medians.
    """

    folder: Path
    results: tuple[Result, ...]

    @property
    def first(self) -> Result:
        """The result of the first split."""
        return self.results[0]

    @property
    def method(self) -> str:
        """The method's name in the experiment file."""
        return self.first.method

    @property
    def failure(self) -> str | None:
        """One sentence on the first split that failed, None when all went well."""
        failed = [r for r in self.results if r.failure]
        if not failed:
            return None
        where = f" (split {failed[0].split}, {len(failed)} of {len(self.results)} failed)"
        return f"{failed[0].failure}{where if len(self.results) > 1 else ''}"

    @property
    def _limit(self) -> str | None:
        """The limit, in words, at which the first failed split stopped; None if it failed otherwise."""
        return next((LIMITS.get(r.failure.kind) for r in self.results if r.failure), None)

    @property
    def verdict(self) -> str:
        """One word or two where there is no result."""
        return self._limit or "failed"

    @property
    def scores(self) -> list[Score]:
        """What the judge found, split by split."""
        return [r.score for r in self.results if r.score is not None]

    @property
    def judged(self) -> bool:
        """Whether every split has a score: a mean over those that succeeded would be too good."""
        return len(self.scores) == len(self.results)

    @property
    def error(self) -> float:
        """Mean test error."""
        return fmean(score.error for score in self.scores)

    @property
    def spread(self) -> float | None:
        """Sample standard deviation of the test error over the splits, None for a single one."""
        return stdev(score.error for score in self.scores) if len(self.scores) > 1 else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval of a single split's error, or the mean error minus and plus its standard deviation."""
        if self.spread is None:
            return self.scores[0].error_low, self.scores[0].error_high
        return max(self.error - self.spread, 0.0), self.error + self.spread

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics but the error, means over the splits that all have them.

        Ends of intervals, of one split, have _low and _high behind the name; standard deviations, of several, _std.
        """
        found: dict[str, float] = {}
        for name in (name for score in self.scores[:1] for name in score.metrics if name != DEFAULT):
            measured = [score.metrics[name] for score in self.scores]
            values = [one.value for one in measured if one.value is not None]
            if len(values) == len(measured):
                found[name] = fmean(values)
                found |= {f"{name}_std": stdev(values)} if len(values) > 1 else {}
            if len(values) == 1 and measured[0].low is not None and measured[0].high is not None:
                found |= {f"{name}_low": measured[0].low, f"{name}_high": measured[0].high}
        return found

    @property
    def confusion(self) -> tuple[list[Any], list[list[int]]]:
        """The K labels, and K rows of K counts of test rows over all splits: row = true class, column = predicted."""
        classes = sorted({label for score in self.scores for label in score.classes})
        counts = [[0] * len(classes) for _ in classes]
        for score in self.scores:
            places = [classes.index(label) for label in score.classes]
            for place, row in zip(places, score.confusion, strict=True):
                for other, n in zip(places, row, strict=True):
                    counts[place][other] += n
        return classes, counts

    @property
    def majority_error(self) -> float:
        """Mean test error of answering the largest class always: what an error has to be compared with."""
        return fmean(score.majority_error for score in self.scores)

    @property
    def valid_error(self) -> float:
        """Mean validation error of the judged models."""
        return fmean(r.valid_error for r in self.results if r.valid_error is not None)

    @property
    def train_s(self) -> float:
        """Median seconds of the fit of a judged model."""
        return median(r.train_s for r in self.results if r.train_s is not None)

    @property
    def train_alone_s(self) -> float | None:
        """Median seconds of the same fit on one thread; None where its time ran out."""
        found = [r.train_alone_s for r in self.results if r.train_alone_s is not None]
        return median(found) if len(found) == len(self.results) else None

    @property
    def search_s(self) -> float:
        """Median seconds of the search on one split."""
        return median(r.search_s for r in self.results if r.search_s is not None)

    @property
    def predict_us(self) -> float:
        """Median microseconds per predicted sample on one thread."""
        return median(score.predict_us for score in self.scores)

    @property
    def predict_all_us(self) -> float:
        """Median microseconds per predicted sample on all threads of the experiment."""
        return median(score.predict_all_us for score in self.scores)

    @property
    def peak_mib(self) -> float | None:
        """Median of the memory that the fit took, None if it was not measured."""
        found = [r.peak_mib for r in self.results if r.peak_mib is not None]
        return median(found) if found else None

    @property
    def parameter_bytes(self) -> float:
        """Median size of what a prediction needs."""
        return median(score.parameter_bytes for score in self.scores)

    @property
    def n_basis(self) -> float | None:
        """Median number of basis functions, None where there are none."""
        sizes = [score.n_basis for score in self.scores if score.n_basis is not None]
        return median(sizes) if sizes else None

    @property
    def n_basis_sum(self) -> float | None:
        """Median of their sum over the SVMs that share them."""
        sizes = [score.n_basis_sum for score in self.scores if score.n_basis_sum is not None]
        return median(sizes) if sizes else None

    @property
    def iterations(self) -> float | None:
        """Median number of iterations of the training after its start, None where there are none."""
        steps = [len(r.history) - 1 for r in self.results if r.history]
        return median(steps) if steps else None

    @property
    def foreseen(self) -> bool:
        """Whether it failed by a limit that was set, of time or of memory, and not by a fault."""
        return self._limit is not None

    @property
    def params(self) -> dict[str, Any]:
        """The chosen parameters; where splits chose differently, all the values, each once, as a text."""
        found: dict[str, list[Any]] = {}
        for result in self.results:
            for key, value in result.params.items():
                if value not in found.setdefault(key, []):
                    found[key].append(value)
        return {key: values[0] if len(values) == 1 else _either(values) for key, values in found.items()}


def _either(values: list[Any]) -> str:
    try:
        ordered = sorted(values)
    except TypeError:  # such as None beside numbers
        ordered = values
    return " or ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in ordered)


def label(outcome: Outcome) -> str:
    """Return the method's name with its kind of map and its sizes, such as "ours rbf M=200 L=9"."""
    first = outcome.first
    size = [f"M={outcome.n_basis:g}"] if outcome.n_basis else []
    width = [f"L={first.n_latent}"] if first.n_latent else []
    return " ".join([outcome.method, *([first.map] if first.map else []), *size, *width])


def percent(fraction: float) -> str:
    """Return a fraction as people read it: 0.0243 is "2.4 %"."""
    return f"{100 * fraction:.1f} %"


def standing(found: Sequence[Outcome]) -> str:
    """Return every method's test error in one line, such as "ours 2.4 %, NN 1.3 %"."""
    return ", ".join(f"{o.method} {percent(o.error) if o.judged else o.verdict}" for o in found)
