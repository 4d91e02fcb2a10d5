"""What every benchmark shares: timing, bars, the table, the JSON record, and MNIST."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

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

    def table(self) -> str:
        heads = list(self.rows[0])
        cells = [heads] + [[_show(row[head]) for head in heads] for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in cells)


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def clock(function: Callable[[], Any], repeats: int, warm: bool = True) -> float:
    """Median seconds of several calls, after one that is not counted (compilation, caches) unless ``warm`` is False."""
    if warm:
        function()
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def write_json(path: Path, name: str, result: Result, quick: bool) -> None:
    """Machine, versions, threads, settings (seeds and sizes), rows and bars."""
    record = {
        "benchmark": name,
        "quick": quick,
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "threads": {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")},
        "settings": result.settings,
        "rows": result.rows,
        "bars": [asdict(bar) | {"holds": bar.holds} for bar in result.bars],
    }
    path.write_text(json.dumps(record, indent=2, default=float) + "\n")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


@dataclass(frozen=True)
class Mnist:
    """MNIST on the paper's protocol: 10,000 training, 10,000 validation, the official test set; pixels in [0, 1]."""

    train: tuple[Any, Any]
    valid: tuple[Any, Any]
    test: tuple[Any, Any]


def mnist(seed: int = 0) -> Mnist:
    from ldsvm.datasets import load, shuffled

    data = load("mnist", cache_dir=ROOT / "data" / "prepared")
    assert data.X_test is not None and data.y_test is not None
    split = shuffled(len(data.y), train=10_000, validation=10_000, official=len(data.y_test), seed=seed)
    return Mnist(
        (data.X[split.train], data.y[split.train]),
        (data.X[split.validation], data.y[split.validation]),
        (data.X_test[split.test], data.y_test[split.test]),
    )


def everything() -> tuple[Any, Any, Any, Any]:
    """All of MNIST: X, y of 60,000 training images and of the 10,000 of the official test set; pixels in [0, 1]."""
    from ldsvm.datasets import load

    data = load("mnist", cache_dir=ROOT / "data" / "prepared")
    assert data.X_test is not None and data.y_test is not None
    return data.X, data.y, data.X_test, data.y_test


def pca_start(X: Any, L: int) -> Any:
    """Principal coordinates in float64: the g-step's early iterate."""
    from sklearn.decomposition import PCA

    return PCA(L, random_state=0).fit_transform(X).astype(np.float64)
