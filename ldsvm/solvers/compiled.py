"""Compilation of row kernels, and threads over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, TypeVar

import numba

T = TypeVar("T")

# Reassociation lets sums use SIMD lanes; NaN and infinity keep their meaning (no "nnan", "ninf").
FAST_SUMS = {"reassoc", "contract", "arcp"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` for threads (no GIL), caching machine code where a folder can be written."""
    options: dict[str, Any] = {"nogil": True, "fastmath": FAST_SUMS, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package folder nor the user's cache folder can be written
        return numba.njit(**options)(function)


def blocks(n_rows: int, n_threads: int, least: int = 512) -> list[slice]:
    """Split ``n_rows`` rows into at most ``n_threads`` contiguous blocks of at least ``least`` rows.

    Examples
    --------
    >>> blocks(1500, 2)
    [slice(0, 750, None), slice(750, 1500, None)]
    >>> blocks(600, 4)
    [slice(0, 600, None)]
    """
    count = max(1, min(n_threads, n_rows // least))
    edges = [n_rows * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


class Blocks(AbstractContextManager["Blocks"]):
    """Blocks of rows or problems and the threads that work on them; use as a context manager.

    ``map`` calls a function once per block and returns the results in the order of the blocks, so that sums over
    blocks give the same bits every time.
    """

    def __init__(self, count: int, n_threads: int, least: int = 512) -> None:
        self.parts = blocks(count, n_threads, least)
        self._pool = ThreadPoolExecutor(len(self.parts)) if len(self.parts) > 1 else None

    def map(self, function: Callable[[slice], T]) -> list[T]:
        if self._pool is None:
            return [function(self.parts[0])]
        return list(self._pool.map(function, self.parts))

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
