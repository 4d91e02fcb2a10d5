"""Compilation of row kernels, and threads over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, TypeVar

import numba

T = TypeVar("T")

# Reassociation lets sums use SIMD lanes. Nothing else of "fast math": NaN and infinity keep their meaning, and products
# are not fused into sums, because which ones are depends on what is compiled together, and then so do the last bits.
FAST_SUMS = {"reassoc"}


OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FAST_SUMS, "error_model": "numpy"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` as a part of compiled callers in the same file.

    Parts are not cached by themselves: a caller linked with a cached part is optimised differently from one compiled
    together with it, and two processes would then differ in the last bits. They stay in the caller's file because the
    cache looks at that file alone to see what has changed.
    """
    return numba.njit(**OPTIONS)(function)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` to be called from Python; its machine code is cached where a folder can be written."""
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # neither the package folder nor the user's cache folder can be written
        return numba.njit(**OPTIONS)(function)


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
        self._pool = ThreadPoolExecutor(len(self.parts) - 1) if len(self.parts) > 1 else None

    def map(self, function: Callable[[slice], T]) -> list[T]:
        if self._pool is None:
            return [function(self.parts[0])]
        others = self._pool.map(function, self.parts[1:])
        return [function(self.parts[0]), *others]  # the calling thread works too: it has its core already

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
