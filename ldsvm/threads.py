"""How many threads to use, and keeping BLAS within that number."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController


def n_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``: None takes the cores of this process (or OMP_NUM_THREADS if fewer), -1 all, n itself."""
    if n_jobs is not None:
        return int(effective_n_jobs(n_jobs))
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    cores = int(cpu_count())
    return min(cores, int(allowed)) if allowed.isdigit() and int(allowed) > 0 else cores


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries: milliseconds, so once


def limit(n_jobs: int | None) -> AbstractContextManager[Any]:
    """Keep BLAS and OpenMP within ``n_jobs`` threads; None leaves them as the process has them."""
    if n_jobs is None:
        return nullcontext()
    context: AbstractContextManager[Any] = _controller().limit(limits=n_threads(n_jobs))
    return context
