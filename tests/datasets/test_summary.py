"""A summary is a count: the same as one over the whole array, or one done by hand."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ldsvm.datasets import Rows
from ldsvm.datasets import flaws as counted
from ldsvm.datasets.summary import facts, sentences, summarise

NAN = float("nan")


def texts(*values: str | None) -> np.ndarray[Any, Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


@pytest.mark.parametrize("kind", ["dense", "sparse", "untidy"])
def test_numbers_equal_those_of_the_whole_array(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "BLOCK", 50)
    random = np.random.default_rng(1)
    X = random.choice([0.0, -0.0, 1.5, NAN], p=[0.5, 0.1, 0.3, 0.1], size=(70, 9)).astype(np.float32)
    X[:, 4] = 1
    y = random.integers(0, 3, 70)
    made: Any = X if kind == "dense" else csr_matrix(X)
    if kind == "untidy":  # every value is stored, zeros too, each row from its last column to its first
        made = csr_matrix((X[:, ::-1].ravel(), np.tile(np.arange(9)[::-1], 70), np.arange(71) * 9), shape=X.shape)
    found = summarise(Rows(made, y), None)
    assert json.loads(json.dumps(found)) == found
    assert (found["kind"], found["rows"], found["features"]) == ("dense" if kind == "dense" else "sparse", 70, 9)
    assert found["sparsity"] == np.mean(X == 0)
    assert found["classes"] == {str(k): int(np.sum(y == k)) for k in range(3)}
    each = np.isnan(X).sum(axis=0)
    assert found["missing"] == {
        "total": int(np.isnan(X).sum()),
        "columns": {str(j): int(each[j]) for j in range(9) if each[j]},
    }
    assert "4" not in found["missing"]["columns"]
    assert found["texts"] is found["test_rows"] is found["test_classes"] is None


def test_the_worst_twenty_columns_are_named() -> None:
    X = np.where(np.arange(30)[:, None] <= np.arange(25), np.float32(NAN), np.float32(1))
    found = summarise(Rows(X, np.arange(30) % 2, tuple(f"c{j}" for j in range(25))), None)
    assert list(found["missing"]["columns"].items()) == [(f"c{j}", j + 1) for j in range(24, 4, -1)]
    assert found["missing"]["total"] == 25 * 26 // 2
    assert facts(found)["missing values"].startswith("325 missing values: c24 (25), c23 (24), ")
    assert facts(found)["missing values"].endswith(", c5 (6) and others (15)")


def test_bytes_are_those_of_both_sets() -> None:
    pixels = Rows(np.zeros((3, 4), np.uint8), np.arange(3))
    assert summarise(pixels, pixels)["bytes"] == 24
    X = csr_matrix(np.eye(3, dtype=np.float32))
    # By hand: three values and three columns of 4 bytes each, and four offsets of 4 bytes.
    assert summarise(Rows(X, np.arange(3)), None)["bytes"] == 12 + 12 + 16
    assert summarise(Rows(texts("aä", "€"), np.arange(2)), None)["bytes"] == 3 + 3


def test_texts() -> None:
    found = summarise(Rows(texts("four", "", "seven77", " \n", None), texts("a", "b", "a", None, "a")), None)
    assert found["texts"] == {"min": 0, "median": 2.0, "max": 7, "empty": 3}
    assert (found["features"], found["sparsity"]) == (None, None)
    assert found["missing"] == {"total": 1, "columns": {"text": 1}}
    assert found["classes"] == {"a": 3, "b": 1, "None": 1}
    assert sentences(found) == [
        "5 rows, 3 classes (a: 3, b: 1, None: 1), text, 13 bytes.",
        "1 missing value: text (1).",
        "Texts of 0 to 7 characters, median 2, 3 of them empty.",
    ]


def test_classes_come_in_the_order_of_numbers_and_of_words() -> None:
    one = np.ones((4, 1), np.float32)
    assert list(summarise(Rows(one, np.array([10, 9, 2, 10])), None)["classes"].items()) == [
        ("2", 1),
        ("9", 1),
        ("10", 2),
    ]
    found = summarise(Rows(one, texts("pc", "mac", "pc", "mac")), Rows(one[:1], texts("mac")))
    assert list(found["classes"]) == ["mac", "pc"] and found["test_classes"] == {"mac": 1}


@pytest.mark.parametrize("X", [np.empty((0, 3), np.float32), csr_matrix((0, 3), dtype=np.float32), texts()])
def test_no_rows(X: Any) -> None:
    none = Rows(X, np.array([], dtype=np.int64))
    found = summarise(none, none)
    assert (found["rows"], found["test_rows"], found["sparsity"], found["classes"]) == (0, 0, None, {})
    assert sentences(found)[0].startswith("0 rows + 0 official test rows, 0 classes ()")


def test_sentences_for_people() -> None:
    train = Rows(np.tile(np.array([[0, 1.5, 0, 2]], np.float32), (1168, 1)), np.repeat([1, 0], [578, 590]))
    found = summarise(train, Rows(train.X[:777], train.y[:777]))
    assert facts(found) == {
        "rows": "1,168 rows + 777 official test rows",
        "classes": "2 classes (0: 590, 1: 578)",
        "raw inputs": "4 columns (dense), 50.0 % of the values zero, 30.4 KiB",
    }
    assert sentences(found) == [
        "1,168 rows + 777 official test rows, 2 classes (0: 590, 1: 578), "
        "4 columns (dense), 50.0 % of the values zero, 30.4 KiB."
    ]
    many = summarise(Rows(np.ones((66, 1), np.float32), np.repeat(np.arange(11), np.arange(11) + 1)), None)
    assert facts(many)["classes"] == "11 classes (1 to 11 rows each)"


def test_memory_stays_far_below_the_data() -> None:
    rows = Rows(np.zeros((30_000, 1_000), dtype=np.float32), np.zeros(30_000, dtype=np.int64))
    tracemalloc.start()
    assert summarise(rows, None)["bytes"] == 120_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20  # a mask of the whole takes 29 MiB
