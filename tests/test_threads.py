"""How many threads there are to use, and that BLAS has its own back in the end."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ldsvm import threads


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
        with threads.held(2):  # where a product is worth it
            assert blas() == {2}
        assert blas() == {1}


def test_blas_has_its_threads_back_after_an_error() -> None:
    before = blas()
    with pytest.raises(KeyError), threads.alone(), threads.alone():
        raise KeyError
    assert blas() == before
