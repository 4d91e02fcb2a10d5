"""How the time of a fit with learned centres grows with the training rows, and the memory it takes at its peak."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Result, clock, everything, progress
from ldsvm import LDSVMClassifier
from ldsvm.methods.memory_limit import watch

COMPONENTS, GAMMA, PASSES, ITERATIONS = 50, 0.06, 30, 2


def run(quick: bool) -> Result:
    from sklearn.decomposition import PCA

    sizes, M, large = ([600, 1_200], 20, 40) if quick else ([5_000, 10_000, 20_000, 40_000, 60_000], 500, 1_000)
    X, y, _, _ = everything(quick)
    order = np.random.default_rng(0).permutation(len(y))
    small = PCA(COMPONENTS, svd_solver="covariance_eigh").fit_transform(X).astype(np.float32)[order]
    y = y[order]
    _fit(small[:500], y[:500], 10)  # compiled code is loaded
    settings = {"components": COMPONENTS, "gamma": GAMMA, "passes": PASSES, "iterations": ITERATIONS, "seed": 0}
    result = Result(settings=settings)
    for N in sizes:
        progress(f"scale: {N:,} rows, {M} basis functions")
        seconds = clock(partial(_fit, small[:N], y[:N], M), 1, warm=False)
        result.rows.append({"rows": N, "basis functions": M, "train s": seconds, "peak MiB": float("nan")})
    slope = np.polyfit(np.log(sizes), np.log([row["train s"] for row in result.rows]), 1)[0]
    progress(f"scale: memory of {sizes[-1]:,} rows, {large} basis functions")
    peak = watch()
    seconds = clock(partial(_fit, small[: sizes[-1]], y[: sizes[-1]], large), 1, warm=False)
    memory = peak()
    result.rows.append({"rows": sizes[-1], "basis functions": large, "train s": seconds, "peak MiB": memory})
    result.bars.append(Bar("exponent_of_time_over_rows_at_most", float(slope), "<=", 1.1))
    result.bars.append(Bar("exponent_of_time_over_rows_at_least", float(slope), ">=", 0.9))
    result.bars.append(Bar("peak_MiB_above_the_data", float("nan") if memory is None else memory, "<=", 1536))
    return result


def _fit(X: Any, y: Any, M: int) -> None:
    steps = PASSES * len(y) // 100
    given: dict[str, Any] = {
        "map": "adaptive_rbf",
        "gamma": GAMMA,
        "alpha": 1e-2,
        "C": 1.0,
        "mu_max": 1e6,
        "random_state": 0,
    }
    model = LDSVMClassifier(n_basis=M, center_steps=steps, **given)
    model.fit(X, y, callback=lambda info: info["iteration"] >= ITERATIONS)


def quoted(result: Result) -> list[tuple[str, str]]:
    slope, last = result.bar("exponent_of_time_over_rows_at_most"), result.rows[-1]
    return [
        (
            "learned centres: training time over 5,000 to 60,000 rows N; time and memory at 60,000 with 1,000 basis "
            f"functions, {PASSES} passes",
            f"N^{slope:.2f}; {last['train s']:.0f} s; {last['peak MiB']:.0f} MiB beyond the data",
        )
    ]
