"""Compilation of row kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

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
