"""What an error is as a failure: its kind by its type alone, its sentence for people."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from ldsvm import LDSVMClassifier
from ldsvm.blocks.connection import ClusterFailed
from ldsvm.blocks.source import BlockError
from ldsvm.experiment.config.executors import ExecutorConfig
from ldsvm.experiment.search.failure import Failure, Kind, failure_of
from ldsvm.experiment.search.search import SearchFailed
from ldsvm.experiment.search.worker import Stopped
from ldsvm.methods.memory import NotRun
from ldsvm.methods.memory_limit import MemoryLimit, OverLimit, noted

LATE = Failure(Kind.TIME_LIMIT, "over its time")


@pytest.mark.parametrize("words", ["x", "stopped: time limit of 5 s", "ValueError: x", "not run: x", ""])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotRun, Kind.NOT_RUN),
        (OverLimit, Kind.MEMORY_LIMIT),
        (FloatingPointError, Kind.FAULT),
        (np.linalg.LinAlgError, Kind.FAULT),
        (OverflowError, Kind.FAULT),
        (TypeError, Kind.FAULT),
        (ValueError, Kind.FAULT),
        (ZeroDivisionError, Kind.FAULT),
        (BlockError, Kind.ACCIDENT),  # a ValueError, of a file that may be there tomorrow
        (ClusterFailed, Kind.ACCIDENT),
        (MemoryError, Kind.ACCIDENT),
        (ModuleNotFoundError, Kind.ACCIDENT),
        (OSError, Kind.ACCIDENT),
        (RuntimeError, Kind.ACCIDENT),
    ],
)
def test_the_type_decides_the_kind_and_the_words_do_not(error: type[Exception], kind: Kind, words: str) -> None:
    found = failure_of(error(words))
    own = error.__module__.startswith("ldsvm.")
    assert found == Failure(kind, f"{'' if own else f'{error.__name__}: '}{words or 'no message'}")
    assert str(found) == found.sentence


@pytest.mark.parametrize(
    ("call", "error", "kind"),
    [
        (lambda: LDSVMClassifier(C=-1.0).fit(np.eye(4), [0, 1, 0, 1]), ValueError, Kind.FAULT),
        (lambda: np.linalg.inv(np.zeros((2, 2))), ValueError, Kind.FAULT),
        (lambda: np.ones(1 << 50), MemoryError, Kind.ACCIDENT),  # NumPy's own kind of it
        (lambda: import_module("no_such_module"), ImportError, Kind.ACCIDENT),
        (lambda: Path("/no/such/file").read_bytes(), OSError, Kind.ACCIDENT),
        (lambda: b"\xff".decode(), UnicodeDecodeError, Kind.ACCIDENT),  # derived from ValueError
    ],
)
def test_what_libraries_raise(call: Callable[[], object], error: type[Exception], kind: Kind) -> None:
    with pytest.raises(error) as caught:
        call()
    found = failure_of(caught.value)
    assert found.kind is kind
    assert found.sentence.startswith(f"{type(caught.value).__name__}: ")


@pytest.mark.parametrize("error", [Stopped(LATE), SearchFailed(LATE)])
def test_an_error_made_from_a_failure_says_it_again_also_in_another_process(error: Exception) -> None:
    assert str(error) == "over its time"
    assert failure_of(error) is LATE
    assert failure_of(pickle.loads(pickle.dumps(error))) == LATE


def test_memory_that_is_refused_under_a_limit_is_that_limit() -> None:
    with noted(MemoryLimit(5)):
        assert failure_of(MemoryError("x")) == Failure(Kind.MEMORY_LIMIT, "stopped: memory limit of 5 MiB")
        assert failure_of(ValueError("x")).kind is Kind.FAULT


def test_inputs_that_blocks_cannot_take_are_not_run() -> None:
    from scipy.sparse import csr_matrix

    with pytest.raises(NotRun, match="sparse features cannot be divided into blocks of rows") as caught:
        ExecutorConfig(kind="serial").blocks(csr_matrix(np.eye(2)), np.arange(2))
    assert failure_of(caught.value).kind is Kind.NOT_RUN
