"""Store what a study computed, in a folder named by a digest of all it depends on, complete or absent."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from ldsvm.atomic import alone
from ldsvm.datasets import stored_arrays
from ldsvm.datasets.stored_arrays import plain
from ldsvm.experiment import sources
from ldsvm.report.studies.base import Found
from ldsvm.report.studies.config import StudyConfig

SHOWING = (
    "_page",
    "_tables",
    "config",
    "keep",
    "publish",
)  # modules that only show what others compute: they do not count in the digest
FACTS, ARRAYS = "facts.json", "arrays.npz"


def place(config: StudyConfig) -> Path:
    """Return the folder of what a study computes with these settings and this code."""
    own = [file for file in (sources.HOME / "report" / "studies").glob("*.py") if not file.stem.endswith(SHOWING)]
    facts = [sources.code(), sources.digest_of(own), config.study, config.settings.model_dump(mode="json")]
    key = json.dumps([*facts, config.seed, config.n_jobs], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return config.paths.runs / "results" / "studies" / f"{config.study}-{digest}"


def write(found: Found, folder: Path) -> None:
    """Write it whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.parent):
        stored_arrays.write(folder, lambda place: _fill(place, found))


def read(folder: Path) -> Found | None:
    """Read what `write` wrote; None when it is absent or its checksums are wrong."""
    if not stored_arrays.intact(folder):
        return None
    with np.load(folder / ARRAYS, allow_pickle=False) as found:
        return Found(json.loads((folder / FACTS).read_text(encoding="utf-8")), dict(found))


def _fill(place: Path, found: Found) -> None:
    (place / FACTS).write_text(json.dumps(found.facts, indent=1, default=plain), encoding="utf-8")
    np.savez_compressed(place / ARRAYS, allow_pickle=False, **found.arrays)
