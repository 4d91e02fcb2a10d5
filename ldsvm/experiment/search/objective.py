"""What a search minimises, on validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import relabel
from ldsvm.metrics import DEFAULT, Costs, Undefined, answers_of, metric


def loss(objective: str, costs: Costs | None, model: Any, X: Any, y: NDArray[Any], reading: str) -> float | None:
    """Return the loss of a fitted model, see `Metric.loss`; None where the objective is the error, which is known.

    X (n, D), y (n,): validation rows. costs: of mistakes, where they decide which class is given. reading: of labels
    and answers, see `ldsvm.datasets.relabel`.
    """
    if objective == DEFAULT:
        return None
    from ldsvm.methods.decision import decided  # these load scikit-learn
    from ldsvm.methods.label_map import Coarser

    read = np.array_equal(relabel(model.classes_, reading), model.classes_)
    wanted, labels = metric(objective), relabel(y, reading)
    answers = decided(model if read else Coarser(model, reading), costs, X, labels)
    try:
        return wanted.loss(wanted.value(answers_of(answers, X, labels, costs)))
    except Undefined as error:
        raise Undefined(f"search.objective {objective} has no value on the validation rows: {error}") from error
