"""What a study computed, in a folder that is named by all it depends on, and is complete or absent."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

import ldsvm
from ldsvm.atomic import alone
from ldsvm.datasets import stored_arrays
from ldsvm.experiment.compare import identity
from ldsvm.experiment.compare.results import plain
from ldsvm.report.studies.base import Found
from ldsvm.report.studies.config import StudyConfig

SHOWING = ("_page", "_tables", "config", "keep", "publish")  # files that only show what others compute
FACTS, ARRAYS = "facts.json", "arrays.npz"


def place(config: StudyConfig) -> Path:
    """Return the folder of what a study computes with these settings and this code."""
    sources = sorted((Path(ldsvm.__file__).parent / "studies").glob("*.py"))
    text = b"".join(source.read_bytes() for source in sources if not source.stem.endswith(SHOWING))
    facts = [identity.code(), hashlib.sha256(text).hexdigest(), config.study, config.settings.model_dump(mode="json")]
    key = json.dumps([*facts, config.seed, config.n_jobs], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return config.paths.runs / "results" / "studies" / f"{config.study}-{digest}"


def write(found: Found, folder: Path) -> None:
    """Write it whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.parent):
        stored_arrays.write(folder, lambda place: _fill(place, found))


def read(folder: Path) -> Found | None:
    """Read what `write` wrote, None when it is not there, or no longer what was written."""
    if not stored_arrays.intact(folder):
        return None
    with np.load(folder / ARRAYS, allow_pickle=False) as found:
        return Found(json.loads((folder / FACTS).read_text(encoding="utf-8")), dict(found))


def _fill(place: Path, found: Found) -> None:
    (place / FACTS).write_text(json.dumps(found.facts, indent=1, default=plain), encoding="utf-8")
    np.savez_compressed(place / ARRAYS, allow_pickle=False, **found.arrays)
