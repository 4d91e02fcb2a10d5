"""What a study computed, in a folder that is named by all it depends on, and is complete or absent."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from pathlib import Path

import numpy as np

import ldsvm
from ldsvm.experiment import identity
from ldsvm.experiment.results import move, plain
from ldsvm.studies.base import Found
from ldsvm.studies.config import StudyConfig

FACTS, ARRAYS = "facts.json", "arrays.npz"


def place(config: StudyConfig) -> Path:
    """Return the folder of what a study computes with these settings and this code."""
    sources = sorted((Path(ldsvm.__file__).parent / "studies").glob("*.py"))
    text = b"".join(source.read_bytes() for source in sources)
    facts = [identity.code(), hashlib.sha256(text).hexdigest(), config.study, config.settings.model_dump(mode="json")]
    key = json.dumps([*facts, config.seed, config.n_jobs], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return config.paths.runs / "results" / "studies" / f"{config.study}-{digest}"


def write(found: Found, folder: Path) -> None:
    """Write it whole or not at all."""
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    temporary.mkdir(parents=True)
    try:
        (temporary / FACTS).write_text(json.dumps(found.facts, indent=1, default=plain), encoding="utf-8")
        np.savez_compressed(temporary / ARRAYS, allow_pickle=False, **found.arrays)
        move(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read(folder: Path) -> Found | None:
    """Read what `write` wrote, None when it is not there."""
    if not (folder / FACTS).is_file():
        return None
    with np.load(folder / ARRAYS, allow_pickle=False) as arrays:
        return Found(json.loads((folder / FACTS).read_text(encoding="utf-8")), dict(arrays))
