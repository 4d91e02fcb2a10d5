"""How fast a fitted estimator predicts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def _threads(fitted: Any, number: int) -> Iterator[None]:
    """Limit predictions to this number of threads, in libraries and in estimators that start their own."""
    from threadpoolctl import threadpool_limits

    given = {key: value for key, value in fitted.get_params().items() if key.split("__")[-1] == "n_jobs"}
    fitted.set_params(**dict.fromkeys(given, number))
    try:
        with threadpool_limits(number):
            yield
    finally:
        fitted.set_params(**given)


def predict_us(fitted: Any, X: Any, repeats: int, threads: int) -> float:
    """Return the microseconds per row of predicting X (n, D) in one call: the median of several calls."""
    times = []
    with _threads(fitted, threads):
        for _ in range(repeats):
            start = time.perf_counter()
            fitted.predict(X)
            times.append(time.perf_counter() - start)
    return float(np.median(times)) / X.shape[0] * 1e6
