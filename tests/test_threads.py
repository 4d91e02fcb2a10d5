"""How many threads there are to use, and that BLAS has its own back in the end."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ldsvm import LDSVMClassifier, threads


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    """Gives BLAS two threads, of which make test takes one away: two halves of the tests share the cores."""
    with threadpool_limits(2, user_api="blas"):
        yield


def blas() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_limit_from_outside_is_the_default_number() -> None:
    with threadpool_limits(1):
        assert threads.n_threads(None) == 1
    assert threads.n_threads(3) == 3


def test_a_fit_in_another_thread_leaves_the_number_alone() -> None:
    before = blas()
    seen: list[set[int]] = []

    def other() -> None:
        with threads.alone():
            seen.append(blas())

    worker = threading.Thread(target=other)
    worker.start()
    worker.join()
    assert seen == [before] == [blas()]
    with threads.alone():
        assert blas() == {1}
        with threads.hold(2):  # where a product is worth it
            assert blas() == {2}
        assert blas() == {1}


def test_blas_has_its_threads_back_after_an_error() -> None:
    before = blas()
    with pytest.raises(KeyError), threads.alone(), threads.alone():
        raise KeyError
    assert blas() == before


def _fit() -> LDSVMClassifier:
    X = np.random.default_rng(0).normal(size=(600, 3))
    model = LDSVMClassifier(n_basis=10, tol=0.1, random_state=0, n_jobs=2)
    return model.fit(X, X[:, 0] * X[:, 1] > 0, callback=lambda info: info["iteration"] >= 5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems start processes anew")
def test_a_fork_of_a_process_that_has_fitted_can_fit() -> None:
    _fit()  # k-means starts threads of OpenMP, which a fork does not have
    child = multiprocessing.get_context("fork").Process(target=_fit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of forks with threads
        child.start()
    child.join(120)
    ended = child.exitcode
    child.kill()
    assert ended == 0
