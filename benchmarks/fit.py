"""The paper's fit, k-means to early stop, and prediction, against scikit-learn's Gaussian SVC on the same samples.

Both are held to the same number of threads: once to one, once to all cores (SVC uses one in any case). Compilation is
excluded by a small fit before.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from benchmarks.harness import Bar, Result, clock, mnist, progress
from ldsvm import LDSVMClassifier

GAMMA = 1 / 32


def run(quick: bool) -> Result:
    from sklearn.svm import SVC

    data = mnist(0, quick)
    N, M, repeats = (300, 30, 1) if quick else (10_000, 2500, 3)
    X, y = (a[:N] for a in data.train)
    X_test, y_test = data.test
    LDSVMClassifier(10, n_basis=50, early_stopping=True, random_state=0).fit(X[:1000], y[:1000])
    result = Result(
        settings={"N": N, "n_basis": M, "gamma": GAMMA, "C": 0.1, "SVC C": 10, "seed": 0, "repeats": repeats}
    )
    for n in (1, cpu_count()):
        progress(f"fit: {n} thread(s)")
        ours = LDSVMClassifier(
            10, n_basis=M, gamma=GAMMA, alpha=1e-3, C=0.1, n_iter_no_change=3, n_jobs=n, random_state=0
        )
        svc = SVC(C=10, gamma=GAMMA)
        rivals: list[tuple[str, Any, dict[str, Any]]] = [("ours", ours, {"eval_set": data.valid}), ("SVC", svc, {})]
        timed: dict[str, dict[str, Any]] = {}
        for name, model, keywords in rivals:
            with threadpool_limits(n):
                train = clock(partial(model.fit, X, y, **keywords), repeats, warm=False)
                predict = clock(partial(model.predict, X_test), repeats, warm=name == "ours")
                timed[name] = {
                    "threads": n, "model": name, "train s": train, "predict us/sample": 1e6 * predict / len(y_test),
                    "basis functions": M if name == "ours" else int(svc.n_support_.sum()),
                    "test %": 100 * (1 - model.score(X_test, y_test)),
                }  # fmt: skip
        result.rows += list(timed.values())
        for key, least in (("train s", 1), ("predict us/sample", 30)):
            ratio = timed["SVC"][key] / timed["ours"][key]
            result.bars.append(Bar(f"{key.split()[0]}_ratio_{n}_threads", ratio, ">=", least))
    return result


def quoted(result: Result) -> list[tuple[str, str]]:
    svc, ours = (result.row(model=name) for name in ("SVC", "ours"))
    size = f"{svc['basis functions']:,} support vectors, {svc['test %']:.2f} % test error"
    threads = sorted({row["threads"] for row in result.rows})

    def ratios(what: str) -> str:
        found = [(n, result.bar(f"{what}_ratio_{n}_threads")) for n in threads]
        return ", ".join(f"{ratio:.2g} times faster on {n} thread{'s' * (n > 1)}" for n, ratio in found)

    return [
        (f"prediction by 2,500 basis functions against scikit-learn's Gaussian SVM ({size})", ratios("predict")),
        (
            f"training against that Gaussian SVM, k-means to early stop (test error {ours['test %']:.2f} %)",
            ratios("train"),
        ),
    ]
