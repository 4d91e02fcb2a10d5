"""Remove old versions from the registry, and files of old scorings. A version with an alias is never removed.

The run that made a version stays, with its facts, and the registered model remembers that the version has challenged a
champion: so the gate counts it, and the same rows are not judged again. It is remembered before anything is removed;
after a kill, the rest is removed the next time.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from ldsvm.atomic import alone
from ldsvm.datasets.words import listing
from ldsvm.production.registry import Registry, Version
from ldsvm.production.score_watch import SUFFIX
from ldsvm.production.scoring import PARTS
from ldsvm.production.scoring_rows import OUTPUTS, is_output
from ldsvm.tracking.removal import remove

DAY = 86_400.0  # seconds


def remove_versions(registry: Registry, keep: int | None) -> list[str]:
    """Remove old versions with their files, and return what was removed.

    The newest `keep` stay, those with an alias, and those that no retraining has registered.
    """
    if keep is None:
        return []
    with registry.alone():
        there, aliased = registry.versions(), registry.aliased()
        for number in [*there][:-keep]:
            if there[number] and number not in aliased:
                registry.remember_removed(registry.version(number), there[number], done=False)
        meant = {number: said for number, said in registry.removed().items() if "source" in said}
        gone = [number for number, said in sorted(meant.items()) if _remove(registry, number, said, number in there)]
    if not gone:
        return []
    names = listing("version", gone)
    return [f"{registry.name}: {names} removed (production.keep.versions is {keep}); their MLflow runs are kept"]


def _remove(registry: Registry, number: int, said: dict[str, Any], there: bool) -> bool:
    """Remove a version that is remembered as one to be removed; return whether it was."""
    if there and number in registry.aliased():  # somebody has given it one after a kill
        registry.forget_removed(number)
        return False
    if there:
        registry.client.delete_model_version(registry.name, str(number))
    if said["source"] not in {registry.version(other).source for other in registry.versions()}:
        remove(registry.client, said["source"])
    registry.remember_removed(Version(registry.name, number, said["run"], ""), said["against"], done=True)
    return True


def remove_scores(output: Path, model: str, days: float | None) -> list[str]:
    """Remove what old scorings by the model have left in the folder of `output`; return what was removed.

    That is outputs with their comparison beside them, and chunks of scorings that were stopped, older than `days`.
    """
    if days is None:
        return []
    oldest, removed = time.time() - days * DAY, list[str]()
    try:
        for file in sorted(output.parent.glob(f"*{SUFFIX}")):
            scored = file.with_name(file.name.removesuffix(SUFFIX))
            both = [path for path in (file, scored) if path.is_file() and not path.is_symlink()]
            if len(both) == 2 and scored != output and _older(both, oldest) and _is_of(file, scored, model):
                scored.unlink()
                file.unlink()
                removed.append(scored.name)
        for suffix in OUTPUTS:
            for folder in sorted(output.parent.glob(f".*{suffix}{PARTS}")):
                if folder.is_dir() and not folder.is_symlink() and _cleared(folder, oldest):
                    removed.append(folder.name)
    except OSError as error:
        return [f"some old scores in {output.parent} could not be removed: {error}"]
    if not removed:
        return []
    return [f"{listing('file', removed)} removed from {output.parent} (production.keep.days is {days:g})"]


def _is_of(file: Path, scored: Path, model: str) -> bool:
    try:
        said = json.loads(file.read_text("utf-8"))["model"]
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return str(said).rpartition(" version ")[0] == model and is_output(scored)


def _older(files: list[Path], oldest: float) -> bool:
    return all(path.stat().st_mtime < oldest for path in files)


def _cleared(folder: Path, oldest: float) -> bool:
    """Remove a folder of chunks if all are old and no run works there; return whether it was removed."""
    if not _older([path for path in folder.rglob("*") if path.name != ".lock"], oldest):
        return False
    try:
        with alone(folder, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
    except (TimeoutError, OSError):
        return False
    return True
