"""A fitted model on blocks of rows: what it says of the same rows in one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pandas import DataFrame

from ldsvm import LDSVMClassifier, RowBlocks
from ldsvm.blocks import BlockError
from tests.blocks.conftest import cut

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.array(["a", "b", "c"])[np.arange(90) % 3]
X[:, 0] += 2 * (np.arange(90) % 3)
METHODS = ("predict", "transform", "decision_function")


def small(**changes: Any) -> LDSVMClassifier:
    return LDSVMClassifier(**({"n_basis": 10, "random_state": 0, "tol": 0.1, "n_jobs": 1} | changes))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("classes", [2, 3])
def test_blocks_get_the_answers_of_their_rows(kind: Any, classes: int) -> None:
    data, y = (10 * X).astype(kind), Y if classes == 3 else np.where(Y == "c", "a", Y)
    fitted = small(gamma=0.01).fit(data, y)
    rows = cut((data, y), 20, 20, 70)  # the second block is empty
    for name in METHODS:
        found, wanted = getattr(fitted, name)(rows), getattr(fitted, name)(data)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        if name == "predict":
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert fitted.score(rows) == fitted.score(data, y)
    np.testing.assert_allclose(fitted.transform(rows), small(gamma=0.01).fit(rows).transform(rows), atol=0.5)


def test_names_and_steps_are_those_of_training() -> None:
    table = DataFrame(X, columns=["p", "q", "r"])
    rows = RowBlocks.arrays([(table[:50], Y[:50]), (table[50:], Y[50:])])
    fitted = small().fit(rows)
    assert fitted.score(rows) == fitted.score(table, Y)  # no warning for names
    other = RowBlocks.arrays([(table[["q", "p", "r"]], Y)])
    scaled, scaler = rows.scaled()
    with_steps = small().fit(scaled)
    assert with_steps.score(scaled) == with_steps.score(scaler.transform(X).astype(np.float32), Y)
    for name in (*METHODS, "score"):
        with pytest.raises(
            BlockError, match="the rows have different columns from the training rows, or in another order"
        ):
            getattr(fitted, name)(other)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (X[:, :2], "block 1: has 2 inputs, the training rows have 3"),
        (np.where(np.arange(3) == 1, np.nan, X), "block 1: Input X contains NaN in column 1;"),
        (np.full((90, 3), "a", dtype=object), "block 1: could not convert string to float"),
    ],
    ids=["width", "NaN", "text"],
)
def test_a_block_that_cannot_be_used_is_named(changed: Any, words: str) -> None:
    fitted = small().fit(X, Y)
    for name in (*METHODS, "score"):
        with pytest.raises(BlockError, match=words) as caught:
            getattr(fitted, name)(RowBlocks.arrays([(X, Y), (changed, Y)]))
        assert "\n" not in str(caught.value)


def test_labels_are_given_once() -> None:
    fitted, rows = small().fit(X, Y), cut((X, Y))
    for labels in ({"y": Y}, {"sample_weight": np.ones(90)}):
        with pytest.raises(ValueError, match="y and sample_weight must be left out when X is RowBlocks"):
            fitted.score(rows, **labels)
    with pytest.raises(TypeError, match="score needs y, the labels of X"):
        fitted.score(X)
    with pytest.raises(ValueError, match="y has a missing label in row 1; every row needs one"):
        fitted.score(X[:2], ["a", None])
