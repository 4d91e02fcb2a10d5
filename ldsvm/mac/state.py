"""What the steps hand on, what people read, the choices of a run, and all that a run needs to go on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from ldsvm.maps.base import Map
from ldsvm.typing import Array

Info = dict[str, Any]

SOFT = 2.0  # times the first mu, where a run without validation rows ends
MU_LIMIT = 1e6  # the last mu of a run with validation rows


@dataclass(frozen=True)
class State:
    """Everything the next step needs: coordinates Z (N, L) and multipliers alpha (N, K) of the Z-step, the map and
    its values F (N, L) on the training rows, SVMs V (K, L) and b (K,), and the penalty mu.
    """

    Z: Array
    mapping: Map
    F: Array
    V: Array
    b: Array
    mu: float
    alpha: Array | None = None


class Model(NamedTuple):
    """All that a prediction needs: the map and the SVMs V (K, L), b (K,)."""

    mapping: Map
    V: Array
    b: Array


@dataclass(frozen=True)
class Start:
    """Where to begin: coordinates Z (N, L); for a warm start also the earlier model."""

    Z: Array
    model: Model | None = None


@dataclass(frozen=True)
class Progress:
    """A run between two iterations: what it needs to go on. Z is not part of it: the next Z-step finds it.

    history: of the iterations done. best, now: the model to be kept so far, and the last. mu: of the next iteration.
    before: the last penalised objective at this mu, None for none. watched: what `Stopping` remembers.
    """

    history: list[Info]
    best: Model
    now: Model
    mu: float
    before: float | None
    watched: dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Choices of the loop; see `LDSVMClassifier` for their meaning and defaults. mu_max: None is its "auto"."""

    mu: float
    mu_factor: float
    mu_max: float | None
    max_iter: int
    tol: float
    patience: int
    time_limit: float | None
    z_solver: str
    g_solver: str
    begun: float = field(default_factory=time.perf_counter)  # from when on time_limit counts

    def last_mu(self, validated: bool) -> float:
        """Return mu_max as a number. validated: whether validation rows choose the iteration that is kept."""
        if self.mu_max is not None:
            return self.mu_max
        return max(MU_LIMIT, self.mu) if validated else SOFT * self.mu


class Reason(Enum):
    """Why a run ended; the value is the sentence shown to people."""

    EARLY_STOPPING = "the validation error stopped improving"
    CONVERGED = "Z equals F(X) up to the tolerance"
    SETTLED = "the steps at the last mu no longer lower the objective"
    MU_MAX = "mu reached mu_max"
    MAX_ITER = "max_iter was reached"
    TIME_LIMIT = "the time limit was reached"
    CALLBACK = "the callback stopped it"


@dataclass(frozen=True)
class Solution:
    """The best model found: F, V, b; ``n_iter`` iterations done, ``best_iter`` the one kept; one Info per iteration."""

    mapping: Map
    V: Array
    b: Array
    history: list[Info]
    reason: Reason
    n_iter: int
    best_iter: int
