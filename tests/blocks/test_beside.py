"""Blocks of rows beside the rest: labels in memory, words before the first iteration, threads of BLAS."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ldsvm import LDSVMClassifier, RowBlocks
from ldsvm.blocks import BlockError, Serial, Threads


@pytest.fixture
def stored(digits: Any, tmp_path: Path) -> tuple[Path, Any]:
    X, y = digits
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    return tmp_path / "X.npy", y


def test_labels_in_memory_travel_with_their_block_and_give_the_same_fit(stored: tuple[Path, Any]) -> None:
    file, y = stored
    model = LDSVMClassifier(n_basis=20, max_iter=3, tol=0.5, random_state=0)
    in_file, in_memory = (RowBlocks.mapped(file, labels, 150) for labels in (file.with_name("y.npy"), y))
    assert [len(block.read()[1]) for block in in_memory.blocks] == [150, 150, 100]
    assert max(len(pickle.dumps(block)) for block in in_memory.blocks) < 150 * y.itemsize + 1000
    a, b = (model.fit(rows, callback=lambda info: info["iteration"] == 2).latent_coef_ for rows in (in_file, in_memory))
    assert np.array_equal(a, b)


def test_as_many_labels_as_rows(stored: tuple[Path, Any]) -> None:
    file, y = stored
    with pytest.raises(BlockError, match=r"X\.npy has shape \(400, 64\) and y has shape \(399,\)"):
        RowBlocks.mapped(file, y[1:])


@pytest.mark.parametrize("kind", [Serial, Threads])
def test_what_is_done_before_the_first_iteration_is_told(stored: tuple[Path, Any], kind: Any) -> None:
    told: list[str] = []
    rows = RowBlocks.mapped(*stored, 150)
    model = LDSVMClassifier(n_basis=20, random_state=0)
    model.fit(rows, executor=kind(report=told.append), callback=lambda info: told.append("iteration") or True)
    assert told[0] == "reading the rows, blocks: 3"
    assert told[1].startswith("k-means, step 1 of at most ") and told[-1] == "iteration"


def test_blas_keeps_to_one_thread_beside_those_of_the_steps(stored: tuple[Path, Any]) -> None:
    def held(_: Any) -> bool:
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return True

    seen: list[int] = []
    with threadpool_limits(2):
        LDSVMClassifier(n_basis=20, n_jobs=2, random_state=0).fit(RowBlocks.mapped(*stored, 150), callback=held)
    assert set(seen) == {1}
