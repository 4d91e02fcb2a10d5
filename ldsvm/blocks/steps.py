"""The steps of a MAC iteration on shards: the model goes down, sums come up; Z, F and multipliers stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldsvm.blocks.executors import Team, Traffic, repaired
from ldsvm.blocks.regressions import ShardRegression
from ldsvm.mac.g_step import better, warn_of_gap
from ldsvm.mac.problem import value
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.state import Info, Model
from ldsvm.mac.steps import Steps
from ldsvm.maps.features import BasisMap
from ldsvm.solvers import linear_svm
from ldsvm.solvers.block_svm import Pass, Sums, Take, extended, solve
from ldsvm.solvers.svm_problem import duality_gap, relative_gap
from ldsvm.typing import Array

WORK = 256 * 2**20  # bytes of a shard's memory for the problems of the g-step that are solved together
# of which one problem takes 18 for a row, and some 220 more for a row that is worked on, mostly a few per cent
PER_ROW = 32


def together(rows: int, K: int) -> int:
    """Return how many of K problems of the g-step are solved together where a shard has so many rows.

    Examples
    --------
    >>> together(500_000, 10), together(2_000_000, 10), together(10**9, 10)
    (10, 4, 1)
    """
    return int(np.clip(WORK // (PER_ROW * max(rows, 1)), 1, K))


@dataclass(frozen=True)
class _Sums:
    """What `Shard.measure` gives, of all rows, and the validation rows that are wrong, of how many."""

    found: Array
    valid: Array


class ShardSteps(Steps):
    """points (K, L): where the rows of each class begin. penalties (K,): of all rows of each. largest: rows of the
    largest shard.
    """

    def __init__(
        self, team: Team, regression: ShardRegression, points: Array, scheme: Scheme, penalties: Array, largest: int,
        rows: int,
    ) -> None:  # fmt: skip
        self.team, self.regression, self.points, self.rows = team, regression, points, rows
        self.scheme, self.penalties = scheme, penalties
        K, L = scheme.n_svms, points.shape[1]
        self.V, self.b = np.zeros((K, L)), np.zeros(K)
        self.mapping: BasisMap
        self.model: Model
        at_once = together(largest, K)
        self.groups = [list(range(k, min(k + at_once, K))) for k in range(0, K, at_once)]
        self._sums: _Sums

    def begin(self, mu: float) -> Info:
        return repaired(lambda: self._begin(mu))

    def iterate(self, mu: float) -> Info:
        last = self.model
        return repaired(lambda: self._iterate(mu), lambda: self.restore(last))

    def measure(self, mu: float) -> tuple[Info, float]:
        K = len(self.b)
        distance, size, wrong, *hinges = self._sums.found
        lam = self.regression.lam
        wrong_valid, valid = self._sums.valid
        return {
            "nested": value(lam, self.mapping, self.V, sum(hinges[:K])),
            "penalised": value(lam, self.mapping, self.V, sum(hinges[K:]), mu, distance),
            "distance": float(np.sqrt(distance)),
            "train_error": float(wrong) / self.rows,
            "valid_error": float(wrong_valid / valid) if valid else None,
        }, float(np.sqrt(size))

    def restore(self, model: Model) -> None:
        assert isinstance(model.mapping, BasisMap)
        self.model, self.mapping, self.V, self.b = model, model.mapping, model.V, model.b
        self.regression.go(model.mapping)

    def _begin(self, mu: float) -> Info:
        self.V, self.b = np.zeros_like(self.V), np.zeros_like(self.b)
        self.team.call("start", self.points)
        return self._timed(
            {"f": lambda: self._f_step(mu, None), "g": self._first_g_step}, {"kkt": None, "seconds_z": 0.0}
        )  # fmt: skip

    def _iterate(self, mu: float) -> Info:
        near = self.mapping
        steps = {"z": lambda: self._z_step(mu), "g": self._g_step, "f": lambda: self._f_step(mu, near)}
        return self._timed(steps, {})

    def _timed(self, steps: dict[str, Callable[[], Info]], info: Info) -> Info:
        traffic = self.team.traffic = Traffic(len(self.team))
        for name, step in steps.items():
            clock = time.perf_counter()
            info |= step() | {f"seconds_{name}": time.perf_counter() - clock}
        self._look()
        self.model = Model(self.mapping, self.V, self.b)
        seconds, down, up = traffic.total.T
        return info | {
            "calls": traffic.calls.total(), "bytes_down": int(down.sum()), "bytes_up": int(up.sum()),
            "seconds_slowest": float(seconds.max()), "seconds_mean": float(seconds.mean()),
            "seconds_fastest": float(seconds.min()), "lost": self.team.lost,
        }  # fmt: skip

    def _look(self) -> None:
        found = self.team.sum("measure", self.V, self.b)
        self._sums = _Sums(found, self.team.sum("validate", self.mapping.W, self.V, self.b))

    def _z_step(self, mu: float) -> Info:
        return {"kkt": max(self.team.call("z_step", self.V, self.b, mu))}

    def _f_step(self, mu: float, near: BasisMap | None) -> Info:
        self.mapping = self.regression.fit(mu, near, self.V, self.b)
        return {}

    def _first_g_step(self) -> Info:
        """Where every row is at its class's point, the problem is that of one row a class, with all their penalties."""
        Y, part = self.scheme.signs(np.arange(self.scheme.n_classes))
        C = part * self.penalties[:, None]
        self.V, self.b, alpha = linear_svm.solve(self.points, Y, C)
        gap = float(duality_gap(self.points, self.V, self.b, Y, C, alpha).max())
        warn_of_gap(gap)
        return {"gap": gap}

    def _g_step(self) -> Info:
        """Train the SVMs, some problems at a time; of the old and the new one the better is kept."""
        L = self.V.shape[1]
        new_V, new_b, gaps = self.V.copy(), self.b.copy(), []
        before, after = np.empty(len(self.b)), np.empty(len(self.b))
        for group in self.groups:
            old = {k: extended(self.V[k], self.b[k]) for k in group}
            self.team.call("svm_open", group)
            new = solve(_Everywhere(self.team), self.rows, L, old)
            for k, (lost, level, moment) in self.team.sum("svm_close", old, new).items():
                new_V[k], new_b[k] = new[k][:L], new[k][L]
                before[k], after[k] = (0.5 * v[:L] @ v[:L] + h for v, h in zip((old[k], new[k]), lost, strict=True))
                gaps.append(float(relative_gap(after[k : k + 1], level, moment)[0]))
        self.V, self.b = better((self.V, self.b), (new_V, new_b), before, after)
        warn_of_gap(max(gaps))
        return {"gap": max(gaps)}


@dataclass(frozen=True)
class _Everywhere:
    """The rows of all shards, see `block_svm.Places`."""

    team: Team

    def near(self, svms: dict[int, Array]) -> dict[int, Array]:
        found: dict[int, Array] = self.team.sum("svm_near", svms)
        return found

    def take(self, wanted: dict[int, Take]) -> dict[int, Array]:
        found: dict[int, Array] = self.team.sum("svm_take", wanted)
        return found

    def go(self, wanted: dict[int, Pass]) -> dict[int, Sums]:
        found: dict[int, Sums] = self.team.sum("svm_pass", wanted)
        return found

    def look(self, ends: dict[int, tuple[Array, Array]]) -> dict[int, Array]:
        found: dict[int, Array] = self.team.sum("svm_look", ends)
        return found
