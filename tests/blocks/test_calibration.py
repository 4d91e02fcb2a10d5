"""Probabilities of fits on blocks are those of fits in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ldsvm.blocks import Serial, Threads
from tests.blocks.conftest import cut, model

Data = tuple[np.ndarray, np.ndarray]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("changes", [{}, {"map": "linear"}, {"multi_class": "ovo"}], ids=["rbf", "linear", "ovo"])
@pytest.mark.parametrize("validated", [False, True])
def test_they_are_those_of_rows_in_memory(changes: dict[str, Any], validated: bool, train: Data, valid: Data) -> None:
    params: dict[str, Any] = {"centers": "random", "max_iter": 3, **changes}
    memory = model(**params).fit(*train, eval_set=valid if validated else None)
    for executor in (Serial(), Threads(2)):
        there = cut(valid, 50) if validated else None
        blocks = model(**params).fit(cut(train, 200, 450), eval_set=there, executor=executor)
        found, wanted = (one.calibrator_.columns[0] for one in (blocks, memory))
        np.testing.assert_allclose(found, wanted, rtol=1e-2)
        rows = cut(valid, 50)
        np.testing.assert_array_equal(np.argmax(blocks.predict_proba(rows), axis=1), blocks.predict(rows))


def test_learned_centres_need_validation_rows(train: Data, valid: Data) -> None:
    params: dict[str, Any] = {"map": "adaptive_rbf", "center_steps": 20, "max_iter": 1}
    assert not hasattr(model(**params).fit(cut(train, 200)), "predict_proba")
    assert model(**params).fit(cut(train, 200), eval_set=valid).predict_proba(valid[0]).shape == (len(valid[1]), 10)
