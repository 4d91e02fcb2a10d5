"""Prediction: learned centres behind principal components against the Gaussian SVC on the same 10,000 MNIST images.

Of several sizes the smallest whose validation error is no larger than SVC's is taken. Both predict the whole test set,
on one thread and on all, and then one image at a time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from benchmarks.harness import Bar, Result, clock, mnist, progress
from ldsvm import LDSVMClassifier

GAMMA, COMPONENTS, SIZES = 1 / 32, 50, [125, 177, 250, 354, 500]
ONE = 300  # images that are predicted one by one


def run(quick: bool) -> Result:
    from sklearn.svm import SVC

    data = mnist(0, quick)
    N, steps, repeats, ones = (300, 50, 1, 20) if quick else (10_000, 10_000, 5, ONE)
    X, y = (part[:N] for part in data.train)
    progress("predict: SVC")
    svc = SVC(C=10, gamma=GAMMA).fit(X, y)
    wanted = 1 - svc.score(*data.valid)
    for size in [20] if quick else SIZES:
        progress(f"predict: {size} basis functions")
        ours, error = _ours(X, y, data.valid, size, steps)
        if error <= wanted:
            break
    settings = {"N": N, "gamma": 0.06, "SVC gamma": GAMMA, "SVC C": 10, "components": COMPONENTS, "seed": 0}
    result = Result(settings=settings)
    numbers = {"ours": ours[-1].n_basis_, "SVC": len(svc.support_)}
    X_test, y_test = data.test
    for threads in (1, cpu_count()):
        ours[-1].set_params(n_jobs=threads)
        times = {}
        for name, model in (("ours", ours), ("SVC", svc)):
            with threadpool_limits(threads):
                whole = clock(partial(model.predict, X_test), repeats if name == "ours" else 1)
                single = clock(partial(_one_by_one, model, X_test[:ones]), 1)
            times[name] = 1e6 * whole / len(y_test)
            result.rows.append({
                "threads": threads, "model": name, "basis functions": numbers[name], "us a sample": times[name],
                "us for one": 1e6 * single / ones, "test %": 100 * (1 - model.score(X_test, y_test)),
            })  # fmt: skip
        result.bars.append(Bar(f"predict_ratio_{threads}_threads", times["SVC"] / times["ours"], ">=", 200))
    result.bars.append(Bar("test_error_over_SVC", result.rows[0]["test %"] - result.rows[1]["test %"], "<=", 0))
    return result


def _ours(X: Any, y: Any, valid: Any, size: int, steps: int) -> tuple[Any, float]:
    from sklearn.decomposition import PCA
    from sklearn.pipeline import Pipeline

    reduce = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(X)
    model = LDSVMClassifier(
        map="adaptive_rbf", n_basis=size, gamma=0.06, alpha=1e-2, C=1.0, center_steps=steps, random_state=0
    )
    small = [reduce.transform(part).astype(np.float32) for part in (X, valid[0])]
    model.fit(small[0], y, eval_set=(small[1], valid[1]))
    return Pipeline([("reduce", reduce), ("classify", model)]), model.history_[model.best_iter_]["valid_error"]


def _one_by_one(model: Any, X: Any) -> None:
    for i in range(len(X)):
        model.predict(X[i : i + 1])


def quoted(result: Result) -> list[tuple[str, str]]:
    ours, svc = (result.row(model=name) for name in ("ours", "SVC"))
    ratio = min(svc["us a sample"] / ours["us a sample"], *(b.value for b in result.bars if "ratio" in b.name))
    return [
        (
            f"prediction by {ours['basis functions']} learned basis functions ({ours['test %']:.2f} % test error) "
            f"against the Gaussian SVM ({svc['test %']:.2f} %), all test images at once",
            f"at least {ratio:.0f} times faster; {ours['us for one'] / 1000:.2f} ms for one image by itself",
        )
    ]
