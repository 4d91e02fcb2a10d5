"""What every benchmark shares: timing, bars, the table, the JSON record, and MNIST or, with `quick`, the digits."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ldsvm.tracking.provenance import commit

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "osqp", "qpsolvers")


@dataclass(frozen=True)
class Bar:
    """A promise: ``value`` must be ``sense`` (">=" or "<=") ``bar``."""

    name: str
    value: float
    sense: str
    bar: float

    @property
    def holds(self) -> bool:
        return self.value >= self.bar if self.sense == ">=" else self.value <= self.bar

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} {self.sense} {self.bar:g} {'holds' if self.holds else 'falls short'}"


@dataclass
class Result:
    """Rows of a table (all with the same keys), bars, and the settings that produced them."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def row(self, **values: Any) -> dict[str, Any]:
        """Return the first row that has these values."""
        return next(row for row in self.rows if values.items() <= row.items())

    def bar(self, name: str) -> float:
        """Return the value of the bar of this name."""
        return next(bar.value for bar in self.bars if bar.name == name)

    def mean(self, key: str, **values: Any) -> float:
        """Return the mean of a column over the rows that have these values."""
        return statistics.fmean(row[key] for row in self.rows if values.items() <= row.items())

    def table(self) -> str:
        heads = list(self.rows[0])
        cells = [heads] + [[_show(row[head]) for head in heads] for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in cells)


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def clock(
    function: Callable[[], Any], repeats: int, warm: bool = True, by: Callable[[], float] = time.perf_counter
) -> float:  # fmt: skip
    """Median seconds of several calls, after one that is not counted (compilation, caches) unless ``warm`` is False.

    by: the clock, such as `time.process_time` for the processor's seconds.
    """
    if warm:
        function()
    seconds = []
    for _ in range(repeats):
        begun = by()
        function()
        seconds.append(by() - begun)
    return statistics.median(seconds)


def components_of_mnist(seed: int, quick: bool, n_components: int) -> tuple[Any, ...]:
    """Return principal components and labels of training and test images, X, y, X, y."""
    from sklearn.decomposition import PCA

    data = mnist(seed, quick)
    reduce = PCA(n_components, svd_solver="covariance_eigh").fit(data.train[0])
    train, test = (reduce.transform(part[0]).astype(np.float32) for part in (data.train, data.test))
    return train, data.train[1], test, data.test[1]


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def write_json(path: Path, name: str, result: Result, quick: bool) -> None:
    """Commit, day, machine, versions, threads, settings (seeds and sizes), rows and bars."""
    record = {
        "benchmark": name,
        "quick": quick,
        "commit": commit(ROOT),
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "threads": {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")},
        "settings": result.settings,
        "rows": result.rows,
        "bars": [asdict(bar) | {"holds": bar.holds} for bar in result.bars],
    }
    path.write_text(json.dumps(record, indent=2, default=float) + "\n", encoding="utf-8")


def read_json(path: Path) -> tuple[Result, dict[str, Any]]:
    """Return what `write_json` wrote, as a result, and the whole record."""
    record = json.loads(path.read_text(encoding="utf-8"))
    bars = [Bar(**{key: value for key, value in bar.items() if key != "holds"}) for bar in record["bars"]]
    return Result(record["rows"], bars, record["settings"]), record


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


@dataclass(frozen=True)
class Mnist:
    """Images as on the paper's protocol: training, validation, the official test set; pixels in [0, 1]."""

    train: tuple[Any, Any]
    valid: tuple[Any, Any]
    test: tuple[Any, Any]


def mnist(seed: int, quick: bool) -> Mnist:
    """10,000 images to train, 10,000 to validate and the test set; 600, 600 and 597 small ones with `quick`."""
    from ldsvm.datasets import shuffled

    X, y, X_test, y_test = everything(quick)
    size = len(y) // 2 if quick else 10_000
    split = shuffled(len(y), train=size, validation=size, official=len(y_test), seed=seed)
    return Mnist(
        (X[split.train], y[split.train]),
        (X[split.validation], y[split.validation]),
        (X_test[split.test], y_test[split.test]),
    )


def everything(quick: bool, name: str = "mnist") -> tuple[Any, Any, Any, Any]:
    """All of MNIST, or of a set like it: X, y of 60,000 training images and of 10,000 test images; pixels in [0, 1].

    With `quick` 1,200 and 597 of scikit-learn's digits, which are there in any case: each pixel three times in both
    directions and a black margin of two make their 8 x 8 pixels 28 x 28, too.
    """
    from ldsvm.datasets import load

    if quick:
        data = load("digits", cache_dir=ROOT / "data" / "prepared")
        images = np.kron(data.X.reshape(-1, 8, 8), np.ones((1, 3, 3), np.float32))
        X = np.pad(images, ((0, 0), (2, 2), (2, 2))).reshape(len(images), -1)
        return X[:1200], data.y[:1200], X[1200:], data.y[1200:]
    data = load(name, cache_dir=ROOT / "data" / "prepared")
    assert data.X_test is not None and data.y_test is not None
    return data.X, data.y, data.X_test, data.y_test


def newsgroups(seed: int) -> dict[str, tuple[Any, Any]]:
    """Return X, y of the parts train, validation and test of two newsgroups, PC or Mac, by the paper's kind of split.

    TF-IDF in 50 dimensions, since Gaussian functions need few of them.
    """
    from ldsvm.experiment.config.load import load_config
    from ldsvm.experiment.prepared import prepare

    with TemporaryDirectory() as folder:
        own = ["split.repeats=1", "features=[tfidf, {svd: {n_components: 50}}]", f"paths.cache={folder}"]
        config = load_config(ROOT / "conf/experiments/pcmac.yaml", [*own, f"seed={seed}"], root=ROOT)
        (prepared,) = prepare(config)
        parts = {part: prepared.arrays(part, "original") for part in ("train", "validation", "test")}
        return {part: (np.array(X), np.array(y)) for part, (X, y) in parts.items()}


def pca_start(X: Any, L: int) -> Any:
    """Principal coordinates in float64: the g-step's early iterate."""
    from sklearn.decomposition import PCA

    return PCA(L, random_state=0).fit_transform(X).astype(np.float64)
