"""What MAC minimises: the data and penalties of one fit, the nested and the penalised objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldsvm.mac.scheme import Labels, Scheme
from ldsvm.maps.base import Evaluation, Map, Regression
from ldsvm.solvers.svm_problem import hinges
from ldsvm.typing import Array


def value(lam: float, mapping: Map, V: Array, lost: float, mu: float = 0.0, square: float = 0.0) -> float:
    """Return lam R(F) + 1/2 |V|^2 + all hinges + mu/2 sum_n w_n |z_n - F(x_n)|^2 (e:svm-nested, e:svm-qp).

    lost: the weighted hinges of all rows and SVMs. square: the weighted squared distance of Z from F.
    """
    return lam * mapping.penalty + 0.5 * float(np.einsum("kl,kl->", V, V)) + float(lost) + 0.5 * mu * float(square)


@dataclass(frozen=True)
class Validation:
    """Held-out rows: an evaluation of maps on them, class indices y (n,) and weights (n,) or None."""

    evaluation: Evaluation
    y: Labels
    weight: Array | None = None


@dataclass(frozen=True)
class Problem:
    """One fit. ``Y`` (N, K) signs, ``C`` (N, K) penalties C * class_weight * sample_weight (0: takes no part).

    ``weight`` (N,) are the sample weights: they multiply a row's hinge (through C) and its quadratic penalty alike, so
    that an integer weight equals repeating the row.
    """

    regression: Regression
    y: Labels
    scheme: Scheme
    Y: Array
    C: Array
    weight: Array
    lam: float
    n_threads: int = 1
    validation: Validation | None = None

    def nested(self, mapping: Map, V: Array, b: Array, F: Array) -> float:
        """lam R(F) + sum_k [1/2 |V_k|^2 + sum_n C_nk hinge at F(x_n)] (e:svm-nested)."""
        return value(self.lam, mapping, V, hinges(F, V, b, self.Y, self.C).sum())

    def penalised(self, mapping: Map, V: Array, b: Array, F: Array, Z: Array, mu: float) -> float:
        """The same with the hinge at z_n, plus mu/2 sum_n w_n |z_n - F(x_n)|^2 (e:svm-qp)."""
        lost = hinges(Z, V, b, self.Y, self.C).sum()
        return value(self.lam, mapping, V, lost, mu, self.distance(Z, F) ** 2)

    def distance(self, Z: Array, F: Array) -> float:
        """|Z - F(X)|, the weighted Frobenius norm."""
        return float(np.sqrt(self.weight @ np.einsum("nl,nl->n", Z - F, Z - F)))

    def error(self, V: Array, b: Array, F: Array) -> float:
        """Weighted share of training rows that g(F(x)) gets wrong."""
        return self._share(self.y, self.weight, V, b, F)

    def validation_error(self, mapping: Map, V: Array, b: Array) -> float | None:
        """Weighted share of validation rows that g(F(x)) gets wrong, or None without validation rows."""
        if self.validation is None:
            return None
        F = self.validation.evaluation.values(mapping)
        return self._share(self.validation.y, self.validation.weight, V, b, F)

    def _share(self, y: Labels, weight: Array | None, V: Array, b: Array, F: Array) -> float:
        wrong = self.scheme.classes(self.scheme.scores(F @ V.T + b)) != y
        return float(np.average(wrong, weights=weight))
