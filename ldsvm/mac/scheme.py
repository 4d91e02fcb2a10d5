"""How K classes become linear SVMs: binary, one-vs-all, one-vs-one (section "Formulation for the multiclass")."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ldsvm.typing import Array

Labels = NDArray[np.integer]


@dataclass(frozen=True)
class Scheme:
    """``kind`` is "ovr" or "ovo"; two classes are one SVM either way, positive for the second class."""

    n_classes: int
    kind: str = "ovr"

    @property
    def n_svms(self) -> int:
        K = self.n_classes
        if K == 2:
            return 1
        return K if self.kind == "ovr" else K * (K - 1) // 2

    def signs(self, y: Labels) -> tuple[Array, Array]:
        """(Y, part) for class indices y (N,): signs in {-1, +1} and 1 where a row takes part; both (N, n_svms)."""
        if self.n_classes == 2:
            Y = np.where(y == 1, 1.0, -1.0)[:, None]
        elif self.kind == "ovr":
            Y = np.where(y[:, None] == np.arange(self.n_classes), 1.0, -1.0)
        else:
            pairs = np.array(list(combinations(range(self.n_classes), 2)))
            # scikit-learn's convention: SVM (i, j) is positive for class i < j
            first, second = y[:, None] == pairs[:, 0], y[:, None] == pairs[:, 1]
            return np.where(first, 1.0, -1.0), (first | second).astype(np.float64)
        return Y, np.ones_like(Y)

    def scores(self, decisions: Array) -> Array:
        """SVM values (N, n_svms) to scores: (N,) for two classes, else (N, K), largest wins."""
        if self.n_classes == 2:
            return decisions[:, 0]
        if self.kind == "ovr":
            return decisions
        from sklearn.utils.multiclass import _ovr_decision_function

        # votes, with ties broken by the sum of confidences (scikit-learn's rule)
        votes: Array = _ovr_decision_function(decisions < 0, -decisions, self.n_classes)
        return votes

    def classes(self, scores: Array) -> Labels:
        """Class indices (N,) from scores."""
        if scores.ndim == 1:
            return (scores > 0).astype(np.intp)
        return np.argmax(scores, axis=1)
