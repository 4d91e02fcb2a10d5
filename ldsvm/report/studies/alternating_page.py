"""The page of the study of MAC against alternating optimisation without auxiliary coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldsvm.report.html import Picture
from ldsvm.report.plotting.alternating import Run, progress
from ldsvm.report.studies.alternating import Params
from ldsvm.report.studies.base import Claim, Found, Page, Table
from ldsvm.typing import Array

PAPER_RATIO = 150
ROUNDING, STILL = 1e-9, 1e-3
OTHER = "alternation without Z"
STARTS = {
    "random": "random start for each row",
    "pca": "start from principal coordinates",
    "simplex": "start with one point for each class",
}


@dataclass(frozen=True)
class Path:
    """One method from one start, arrays (n + 1,) over its iterations, 0 is the start.

    steps (n + 1, S) are the seconds of each step, seconds their running sum.
    """

    nested: Array
    train_error: Array
    valid_error: Array
    steps: Array

    @classmethod
    def of(cls, found: Found, start: str, method: str) -> Path:
        names = ("nested", "train_error", "valid_error", "seconds")
        return cls(*(found.arrays[f"{start}_{method}_{name}"] for name in names))

    @property
    def seconds(self) -> Array:
        """Seconds passed after each iteration."""
        total: Array = np.cumsum(self.steps.sum(axis=1))
        return total

    def done_by(self, seconds: float) -> int:
        """Iterations that were done when so many seconds had passed."""
        return int(np.searchsorted(self.seconds, seconds, side="right")) - 1


@dataclass(frozen=True)
class Pair:
    """Both methods from one start."""

    start: str
    ours: Path
    other: Path

    @property
    def rounds(self) -> range:
        """Iterations of the other method, from 1."""
        return range(1, len(self.other.nested))

    def then(self, k: int) -> int:
        """Iterations of MAC that were done when the other method had done k."""
        return self.ours.done_by(float(self.other.seconds[k]))

    def below(self, *, same_time: bool) -> list[bool]:
        """Whether MAC's objective is the lower one at each iteration of the other method."""
        last = len(self.ours.nested) - 1
        places = [self.then(k) if same_time else min(k, last) for k in self.rounds]
        return [bool(self.ours.nested[j] < self.other.nested[k]) for j, k in zip(places, self.rounds, strict=True)]


def show(params: Params, found: Found) -> Page:
    """Make the page from what was computed."""
    facts = found.facts
    pairs = [Pair(name, Path.of(found, name, "mac"), Path.of(found, name, "two_step")) for name in params.starts]
    times = _step_times(pairs)
    ratio = times[1][-1] / times[0][-1]
    return Page(
        lede=_lede(pairs[0], times, ratio, facts),
        claims=[_ratio(times, ratio), _progress(pairs, same_time=True), _progress(pairs, same_time=False)],
        tables=[
            _times(times, ratio),
            _same_time(pairs),
            _ends(pairs, facts),
            _penalties(params, facts),
            _quality(found, params),
            _choice(params, facts),
        ],
        pictures=[_picture(pair, facts["lowest"]) for pair in pairs],
        protocol=_protocol(params, facts, found),
    )


def _step_times(pairs: list[Pair]) -> tuple[list[float], list[float]]:
    """Median milliseconds of Z, g, F and the whole iteration of MAC, and of g, F and the whole of the other."""
    found = []
    for paths in ([pair.ours for pair in pairs], [pair.other for pair in pairs]):
        steps = 1e3 * np.vstack([path.steps[1:] for path in paths])
        found.append([*np.median(steps, axis=0).tolist(), float(np.median(steps.sum(axis=1)))])
    return found[0], found[1]


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _value(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _lede(pair: Pair, times: tuple[list[float], list[float]], ratio: float, facts: dict[str, Any]) -> str:
    last = pair.rounds[-1]
    ours, other = pair.ours.nested[pair.then(1)], pair.other.nested[1]
    return (
        f"An iteration of MAC takes {_ms(times[0][-1])} ms. An iteration of the {OTHER} takes {_ms(times[1][-1])} ms, "
        f"{ratio:,.0f} times as long (the paper: {PAPER_RATIO}). With the {STARTS[pair.start]}, by the end of the "
        f"first iteration without Z the nested objective is {_value(ours)} for MAC and {_value(other)} without Z. At "
        f"the end it is {_value(pair.ours.nested[-1])} for MAC ({_value(facts['runs'][pair.start]['mac_retrained'])} "
        f"after g is trained on F(X)) and {_value(pair.other.nested[last])} without Z; the global minimum is "
        f"{_value(facts['lowest'])}."
    )


def _ratio(times: tuple[list[float], list[float]], ratio: float) -> Claim:
    measured = f"Medians of {_ms(times[0][-1])} ms and {_ms(times[1][-1])} ms: {ratio:,.0f} times as long."
    text = f"An iteration without Z takes at least {PAPER_RATIO} times as long as one of MAC (the paper's figure)."
    return Claim(text, ratio >= PAPER_RATIO, measured)


def _progress(pairs: list[Pair], *, same_time: bool) -> Claim:
    below = [pair.below(same_time=same_time) for pair in pairs]
    when = "when each iteration without Z ends" if same_time else "after the same number of iterations"
    parts = [f"{STARTS[pair.start]}: at {sum(those)} of {len(those)}" for pair, those in zip(pairs, below, strict=True)]
    text = f"MAC's nested objective is below that of the {OTHER} {when} (the paper: faster in progress and in runtime)."
    return Claim(text, all(map(all, below)), f"MAC's is lower: {'; '.join(parts)} iterations.")


def _times(times: tuple[list[float], list[float]], ratio: float) -> Table:
    header = ["method", "Z-step ms", "g-step ms", "F-step ms", "iteration ms", "ratio", "paper", "difference"]
    ours, other = ([_ms(value) for value in row] for row in times)
    rows = [["MAC", *ours, "1", "1", "0"]]
    rows += [[OTHER, "–", *other, f"{ratio:,.0f}", str(PAPER_RATIO), f"{ratio - PAPER_RATIO:+,.0f}"]]
    return Table("Time of an iteration", header, rows, note="Medians over all starts; one thread each.")


def _same_time(pairs: list[Pair]) -> Table:
    header = ["start", "iterations without Z", "seconds", "nested objective", "iterations of MAC in this time",
              "nested objective of MAC", "after the same number of iterations"]  # fmt: skip
    rows = []
    for pair in pairs:
        for k in sorted({1, 2, pair.rounds[-1]} & {*pair.rounds}):
            j, last = pair.then(k), len(pair.ours.nested) - 1
            cells = [_value(pair.other.nested[k]), str(j), _value(pair.ours.nested[j])]
            rows.append([pair.start, str(k), f"{pair.other.seconds[k]:.3g}", *cells,
                         _value(pair.ours.nested[min(k, last)])])  # fmt: skip
    note = "MAC may have ended long before: it stops when Z equals F(X) up to the tolerance."
    return Table("What MAC reaches in the time of an iteration without Z", header, rows, text=("start",), note=note)


def _ends(pairs: list[Pair], facts: dict[str, Any]) -> Table:
    header = ["start", "method", "iterations", "seconds", "nested objective", "above the minimum %",
              "with g trained on F(X)", "training error %", "validation error %", "best validation error %",
              "its test error %", "stopped because"]  # fmt: skip
    rows = []
    for pair in pairs:
        run = facts["runs"][pair.start]
        for name, key, path in (("MAC", "mac", pair.ours), (OTHER, "two_step", pair.other)):
            errors = [path.train_error[-1], path.valid_error[-1], path.valid_error.min(), run[f"{key}_test"]]
            rows.append([
                pair.start, name, str(len(path.nested) - 1), f"{path.seconds[-1]:.3g}", _value(path.nested[-1]),
                f"{100 * (path.nested[-1] / facts['lowest'] - 1):.1f}",
                _value(run["mac_retrained"]) if key == "mac" else "–", *(f"{100 * error:.2f}" for error in errors),
                run[f"{key}_end"],
            ])  # fmt: skip
    note = (
        "The global minimum is known, since with one linear SVM the nested objective becomes convex in W v and b: it "
        f"lies between {facts['lower_bound']:.6g} and {facts['lowest']:.6g}. MAC trains g on Z, so the remaining "
        "difference Z - F(X) adds to its hinge loss on F(X)."
    )
    return Table("Final values", header, rows, text=("start", "method", "stopped because"), note=note)


def _penalties(params: Params, facts: dict[str, Any]) -> Table:
    """Whether the outcome depends on the penalty that was chosen."""
    rows = [[f"{C:g}", *(_value(value) for value in values)] for C, *values in facts["penalties"]]
    header = ["C", "MAC at its end", f"{OTHER}, two iterations", "global minimum"]
    return Table(f"Nested objective for every C, {STARTS[params.starts[0]]}", header, rows)


def _choice(params: Params, facts: dict[str, Any]) -> Table:
    errors = {(sigma, C): error for sigma, C, error in facts["tried"]}
    rows = [[f"{sigma:g}", *(f"{100 * errors[sigma, C]:.2f}" for C in params.C)] for sigma in params.sigmas]
    return Table("Choice of width and penalty: MAC's lowest validation error, %", [
        "sigma", *(f"C = {C:g}" for C in params.C)], rows)  # fmt: skip


def _quality(found: Found, params: Params) -> Table:
    """How exactly the other method's steps were solved, by our own bounds and not by a solver's status."""
    rows = []
    for name in params.starts:
        gaps = [found.arrays[f"{name}_two_step_{key}"][1:].max() for key in ("gap_g", "gap_f")]
        nested = found.arrays[f"{name}_two_step_nested"]
        rose = bool((np.diff(nested) > ROUNDING * nested[:-1]).any())
        still = int(np.argmax(nested <= nested[-1] * (1 + STILL)))
        rows.append([name, *(f"{gap:.1e}" for gap in gaps), "yes" if rose else "no", str(still)])
    header = [
        "start",
        "g-step, relative gap",
        "F-step, relative gap",
        "objective ever rose",
        "no change after iteration",
    ]
    note = (
        f"No change: from this iteration on the objective changes by less than {100 * STILL:g} %. Each step alone is "
        "then at its minimum, at a kink of the hinge loss; only changing both together would lower the objective."
    )
    return Table(f"Optimality of the {OTHER}, worst of all iterations", header, rows, text=("start",), note=note)


def _picture(pair: Pair, lowest: float) -> Picture:
    runs = [Run("MAC", pair.ours.nested, pair.ours.seconds), Run(OTHER, pair.other.nested, pair.other.seconds)]
    k = pair.rounds[-1]
    alt = (
        f"Two panels with the nested objective of both methods, {STARTS[pair.start]}. MAC goes from "
        f"{_value(pair.ours.nested[1])} after one iteration to {_value(pair.ours.nested[-1])} after "
        f"{len(pair.ours.nested) - 1} in {pair.ours.seconds[-1]:.2g} seconds; the other from "
        f"{_value(pair.other.nested[1])} to {_value(pair.other.nested[k])} after {k} in "
        f"{pair.other.seconds[k]:.2g} seconds."
    )
    caption = (
        f"Nested objective, {STARTS[pair.start]}, against iterations (left) and time (right). Both methods begin at "
        f"{_value(pair.other.nested[0])}; dashed lines continue the last value after a method has ended."
    )
    drawing = progress(runs, lowest, f"With and without auxiliary coordinates: {STARTS[pair.start]}")
    return Picture(f"alternating-{pair.start}", drawing, alt, caption, wide=True)


def _protocol(params: Params, facts: dict[str, Any], found: Found) -> str:
    kind = "an interior-point solver" if facts["interior"] else (
        "a first-order solver, since no interior-point solver of qpsolvers is installed here (pip install clarabel)"
    )  # fmt: skip
    return (
        f"{facts['source']} Odd against even digits; {params.train} training and {params.validation:,} validation "
        f"rows, equally many of each digit; every training row is a centre, L = {params.n_components}, lam = "
        f"{params.lam:g}. Of "
        f"{len(facts['tried'])} pairs of sigma and C, sigma = {facts['sigma']:g} and C = {facts['C']:g} have MAC's "
        f"lowest validation error, {100 * facts['valid_error']:.2f} %. Both methods begin with the same W, v and b: W "
        f"fitted to the starting coordinates, v and b trained on them. MAC: mu starts at {params.mu:g} and grows by "
        f"{params.mu_factor:g}, until |Z - F(X)| is below {params.tol:g} |F(X)|. The {OTHER} trains the linear SVM "
        f"exactly on F(X), then solves the QP in {facts['n_weights']:,} weights and {params.train} slacks by "
        f"{facts['solver']} through qpsolvers, {kind}. Times count the steps, not the measurements between them: wall "
        "time for MAC, processor time for the other, so that a busy machine can only lower the ratio. They begin after "
        f"features, Gram matrix and start ({1e3 * facts['prepare_s']:.0f} ms). "
        "Test errors are those of the models with the lowest validation error. The paper used a general QP solver too; "
        "its QP is a kernel SVM with a fixed bias, for which special solvers would be faster."
    )
