"""What preparing data needs: seconds, and the highest memory above the imports as a multiple of the result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import ROOT, Bar, Result, progress

# Each in a process of its own, since the highest memory of a process never falls.
START = """
import json, resource, sys, time
import numpy, pyarrow.parquet, scipy.sparse, skops.io, sklearn.feature_extraction.text, yaml
from pathlib import Path
import ldsvm.datasets.newsgroups, ldsvm.experiment.prepared
from ldsvm.experiment.config.load import load_config
def highest():  # bytes; Linux counts in KiB, macOS in bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
def size(X):
    if hasattr(X, "indptr"):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes + (sum(map(sys.getsizeof, X)) if X.dtype == object else 0)
load_config("conf/digits.yaml", root=Path("."))
before, begun = highest(), time.perf_counter()
"""
LOAD = """
data = ldsvm.datasets.load({name!r}, cache_dir={cache!r})
result = size(data.X) + (0 if data.X_test is None else size(data.X_test))
"""
PREPARE = """
config = load_config({file!r}, {overrides!r} + ["paths.cache=" + {cache!r}], root=Path({root!r}))
(found,) = ldsvm.experiment.prepared.prepare(config)
result = sum(size(found.arrays(part, "original")[0]) for part in ("train", "validation", "test"))
if found.summary["kind"] == "text":  # the texts, and their matrix: both must be there at once
    data = ldsvm.datasets.load(config.dataset.name, cache_dir=config.paths.cache)
    result += size(data.X) + size(data.X_test)
"""
# The memory is read before the result is measured, which must not count.
END = """
print(json.dumps([time.perf_counter() - begun, result / 2**20, (peak - before) / 2**20]))
"""
EXPERIMENTS: dict[str, tuple[str, list[str]]] = {
    "mnist": ("conf/experiments/mnist10.yaml", ["split.train=50000"]),
    "newsgroups": (
        "conf/experiments/pcmac.yaml",
        ["dataset.classes=null", "features=[{tfidf: {min_df: 6}}]", "split.repeats=1"],
    ),
}
STEPS = ("raw files to Parquet", "Parquet to memory", "split and features")
QUICK: dict[str, tuple[str, list[str]]] = {"digits": ("conf/digits.yaml", [])}


def run(quick: bool = False) -> Result:
    experiments = QUICK if quick else EXPERIMENTS
    result = Result(settings={"experiments": experiments})
    for name, (file, overrides) in experiments.items():
        with TemporaryDirectory() as cache:
            for what in STEPS[-1:] if quick else STEPS:
                progress(f"{name}: {what}")
                values = {"name": name, "cache": cache, "file": file, "overrides": overrides, "root": str(ROOT)}
                code = PREPARE if what == "split and features" else LOAD
                seconds, size, peak = _measure(code, values)
                result.rows.append(
                    {"data": name, "step": what, "seconds": seconds, "result MiB": size, "peak MiB": peak}
                    | {"peak / result": peak / size}
                )
    worst = max(row["peak / result"] for row in result.rows)
    result.bars.append(Bar("peak memory / result, at worst", worst, "<=", 3.0))
    return result


def _measure(code: str, values: dict[str, Any]) -> list[float]:
    body = code.format(**values)
    lines = body.strip().splitlines()
    # Everything up to the first line that measures is the work.
    at = next(i for i, line in enumerate(lines) if line.startswith("result"))
    script = "\n".join([START, *lines[:at], "peak = highest()", *lines[at:], END])
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(ROOT), capture_output=True, text=True, check=False)
    if done.returncode:
        from ldsvm.datasets import DataError

        raise DataError(done.stderr.strip().splitlines()[-1].removeprefix("ldsvm.datasets.dataset.DataError: "))
    found: list[float] = json.loads(done.stdout)
    return found


def quoted(result: Result) -> list[tuple[str, str]]:
    ratio = result.bar("peak memory / result, at worst")
    return [
        ("preparing MNIST and 20 newsgroups: peak memory divided by the size of the result", f"at most {ratio:.1f}"),
    ]
