"""What the study of speed-ups measured, by threads and processes, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from ldsvm.report.studies.base import Table
from ldsvm.report.tables import seconds

PAPER_SPEEDUP, PAPER_PROCESSORS = 8.0, 12
PAPER_SHARE = PAPER_SPEEDUP / PAPER_PROCESSORS  # of a linear speed-up
PARTS = {
    "z": "Z-steps", "g": "g-steps", "f": "F-steps", "prepare": "preparation", "rest": "objectives", "whole": "whole fit"
}  # fmt: skip
Run = dict[str, Any]


class Fits:
    """The timed fits by number of threads, those of each number repeat by repeat."""

    def __init__(self, runs: Sequence[Run]) -> None:
        fits = [run for run in runs if run["kind"] == "fit"]
        self.threads = sorted({run["n"] for run in fits})
        self.runs = {n: [run for run in fits if run["n"] == n] for n in self.threads}

    def seconds(self, n: int, part: str) -> float:
        """Median seconds of a part of the fit on n threads."""
        return median(run["seconds"][part] for run in self.runs[n])

    def ratios(self, n: int, part: str) -> list[float]:
        """The speed-up of a part on n threads in each repeat, of two fits that ran shortly after each other."""
        pairs = zip(self.runs[1], self.runs[n], strict=True)
        return [one["seconds"][part] / max(many["seconds"][part], 1e-9) for one, many in pairs]

    def speedup(self, n: int, part: str) -> float:
        """Its median."""
        return median(self.ratios(n, part))

    def serial_share(self, part: str, most: int | None = None) -> float | None:
        """See `serial_share`; of the numbers of threads up to `most`, by default all."""
        return serial_share([(n, self.speedup(n, part)) for n in self.threads if most is None or n <= most])


class Searches:
    """The timed searches by kind ("here", "ray", "cluster") and how many trials run at a time."""

    def __init__(self, runs: Sequence[Run]) -> None:
        searches = [run for run in runs if run["kind"] != "fit"]
        keys = sorted({(run["kind"], run["n"]) for run in searches}, key=lambda k: (k[0] != "here", k[0] != "ray", k))
        self.runs = {key: [run for run in searches if (run["kind"], run["n"]) == key] for key in keys}

    def ratios(self, kind: str, n: int) -> list[float]:
        """The speed-up over one process on Ray in each repeat."""
        pairs = zip(self.runs["ray", 1], self.runs[kind, n], strict=True)
        return [one["search"] / many["search"] for one, many in pairs]


def serial_share(speedups: Sequence[tuple[int, float]]) -> float | None:
    """Return the share of the work that threads do not divide, by Amdahl's law and least squares.

    1 / S(n) = s + (1 - s) / n, so 1 - 1 / S(n) = (1 - s) (1 - 1 / n). From 0 to 1; None where one thread is all.

    Examples
    --------
    >>> round(serial_share([(1, 1.0), (2, 1 / 0.6), (4, 1 / 0.4)]), 6)
    0.2
    """
    points = [(1 - 1 / n, 1 - 1 / S) for n, S in speedups if n > 1]
    if not points:
        return None
    parallel = sum(x * y for x, y in points) / sum(x * x for x, _ in points)
    return min(max(1 - parallel, 0.0), 1.0)


def count(number: int, one: str, many: str) -> str:
    """Return a number with the thing it counts."""
    return f"{number} {one if number == 1 else many}"


def spread(values: Sequence[float]) -> str:
    """Return the smallest and the largest value."""
    return f"{min(values):.2f} to {max(values):.2f}"


def fit_seconds(fits: Fits, processors: int) -> Table:
    """Return the table of seconds, a row for each number of threads."""
    rows = []
    for n in fits.threads:
        beyond = f" (more than the {processors} processors)" if n > processors else ""
        busy = median(run["busy"] for run in fits.runs[n])
        rows.append([f"{n}{beyond}", *(seconds(fits.seconds(n, part)) for part in PARTS), f"{busy:.2f}"])
    return Table(
        f"Seconds of a fit with {count(fits.runs[1][0]['iteration'], 'iteration', 'iterations')}",
        ["threads", *PARTS.values(), "processors busy"],
        rows,
        note="Medians. Preparation: k-means centres, features, Gram matrix, once for each fit. Objectives: the nested "
        "and the penalised one and the training error, computed after each iteration.",
    )


def fit_speedups(fits: Fits) -> Table:
    """Return the table of speed-ups, a row for each part of the fit."""
    more = [n for n in fits.threads if n > 1]
    rows = []
    for part, name in PARTS.items():
        share = fits.serial_share(part)
        cells = [f"{fits.speedup(n, part):.2f} ({spread(fits.ratios(n, part))})" for n in more]
        of_fit = fits.seconds(1, part) / fits.seconds(1, "whole")
        rows.append([name, f"{of_fit:.0%}", *cells, "–" if share is None else f"{share:.0%}"])
    return Table(
        "Speed-up over one thread",
        ["part", "share of the fit on one thread", *(f"{n} threads" for n in more), "serial share (Amdahl)"],
        rows,
        ("part",),
        "Median over repeats of the ratio of two fits that ran shortly after each other, with the smallest and the "
        "largest. Serial share: what Amdahl's law leaves to one thread, 0 for a linear speed-up.",
    )


def beside_paper(fits: Fits, most: int) -> Table:
    """Return the paper's speed-up beside ours on the most threads that have processors."""
    paper = (PAPER_PROCESSORS / PAPER_SPEEDUP - 1) / (PAPER_PROCESSORS - 1)
    S, ours = fits.speedup(most, "whole"), fits.serial_share("whole", most)
    rows = [
        ["processors", f"{PAPER_PROCESSORS}", f"{most}", f"{most - PAPER_PROCESSORS:+d}"],
        ["speed-up", f"{PAPER_SPEEDUP:.2f}", f"{S:.2f}", f"{S - PAPER_SPEEDUP:+.2f}"],
        [
            "share of the ideal",
            f"{PAPER_SHARE:.0%}",
            f"{S / most:.0%}",
            f"{100 * (S / most - PAPER_SHARE):+.0f} points",
        ],
    ]
    if ours is not None:
        far = 1 / (ours + (1 - ours) / PAPER_PROCESSORS)
        rows.append(["serial share (Amdahl)", f"{paper:.1%}", f"{ours:.1%}", f"{100 * (ours - paper):+.1f} points"])
        rows.append([f"speed-up on {PAPER_PROCESSORS} by that share", "–", f"{far:.1f}", "–"])
    return Table(
        "Beside the paper",
        ["what", "paper", "here, whole fit", "difference"],
        rows,
        ("what",),
        "The paper ran the Z- and the g-step in parallel, in Matlab; 8 times is the best of its curve. The last row is "
        "a projection by Amdahl's law and no measurement.",
    )


def searches_table(searches: Searches) -> Table:
    """Return the table of searches, a row for each way to run one."""
    rows = []
    for (kind, n), runs in searches.runs.items():
        S = searches.ratios(kind, n)
        clocks = [seconds(median(run[key] for run in runs)) for key in ("start", "search")]
        used = "–" if kind == "here" else f"{min(run['nodes'] for run in runs)}"
        rows.append([_where(kind, n), *clocks, f"{median(S):.2f} ({spread(S)})", used])
    return Table(
        "One search",
        ["where", "start s", "search s", "speed-up", "nodes used"],
        rows,
        ("where",),
        "Start: Ray, its processes, libraries and compiled code, before the search's clock; the nodes of the cluster "
        "are started before that. Speed-up: over one process on Ray.",
    )


def _where(kind: str, n: int) -> str:
    if kind == "here":
        return "one process, without Ray"
    return f"Ray, {count(n, 'process', 'processes')}" if kind == "ray" else f"Ray cluster, {count(n, 'node', 'nodes')}"


def trials_table(searches: Searches) -> Table:
    """Return what the search found."""
    trials = next(iter(searches.runs.values()))[0]["trials"]
    rows = [[f"{t['gamma']:g}", "–" if t["valid_error"] is None else f"{100 * t['valid_error']:.2f}"] for t in trials]
    return Table("The trials of the search", ["gamma", "validation error %"], rows)
