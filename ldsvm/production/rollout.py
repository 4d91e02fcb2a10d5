"""From the gate to champion by way of the shadow: who is in shadow, how far it agrees, when it may be promoted.

A challenger in shadow has challenged one champion. While another one is in use, such as after a rollback, it neither
scores nor can be promoted; the next challenger that passes the gate takes its place. The comparison of each scoring is
a file of the challenger's run, named by the content of the rows, so that scoring them again changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from ldsvm.experiment.compare.outcome import percent
from ldsvm.experiment.config.production import RolloutConfig
from ldsvm.production.registry import CHAMPION, NONE, PREVIOUS, SHADOW, Registry, RegistryFailed, Version
from ldsvm.production.shadow import Agreement, Counts, Shadow
from ldsvm.tracking.server import redacted

FOLDER = "shadow"  # of the challenger's run, with what each scoring has compared
FAILED = "shadow_failed"  # tag of a version, after "ldsvm.": why it could not answer


def stale(registry: Registry, shadow: Version, champion: Version) -> str | None:
    """Return why a version is no longer in shadow, None if it has challenged this champion."""
    if shadow == champion:  # by hand
        return f"{shadow} is both champion and shadow, so there is nothing to compare or to promote"
    challenged = registry.versions().get(shadow.number)
    if challenged == str(champion.number):
        return None
    known = f"version {challenged}" if challenged not in (None, "", NONE) else "no champion"
    return (
        f"{shadow} has challenged {known}, but {champion} is the champion, so it is no longer in shadow; "
        "the next challenger that passes the gate takes its place"
    )


def gone(registry: Registry, version: Version) -> str | None:
    """Return why a version that was in shadow when a scoring began is there no more, None where it is."""
    if registry.get(SHADOW) != version:
        return "it was promoted, replaced or removed meanwhile"
    return stale(registry, version, registry.require(CHAMPION))


def load(registry: Registry, champion: Version, tell: Callable[[str], None]) -> tuple[Version, Shadow] | None:
    """Return the version in shadow of this champion, ready to answer; None where there is none, or where it is stale
    or cannot be loaded, which `tell` is called with.
    """
    version = registry.get(SHADOW)
    if version is None:
        return None
    try:
        if reason := stale(registry, version, champion):
            tell(reason)
            return None
        return version, Shadow(str(version), registry.model(version), tell)
    except RegistryFailed as error:
        tell(f"no shadow comparison with {champion}: {error}")
        return None


def remember(registry: Registry, version: Version, found: Shadow) -> Agreement:
    """Keep what a scoring has compared with the version in shadow; return what all scorings have compared."""
    if found.failure is not None:
        registry.say(version, **{FAILED: redacted(found.failure)[:500]})
    else:
        name = hashlib.sha256(" ".join(sorted(found.counts)).encode()).hexdigest()[:16]
        registry.client.log_text(version.run_id, json.dumps(found.counts), f"{FOLDER}/{name}.json")
    every = compared(registry, version)
    if every.rows:
        registry.say(version, agreement=every.text)
    return every


def compared(registry: Registry, version: Version) -> Agreement:
    """Return what all scorings together have compared; a file that was scored more than once counts once."""
    counts: Counts = {}
    if registry.client.list_artifacts(version.run_id, FOLDER):
        with TemporaryDirectory() as place:
            folder = Path(registry.client.download_artifacts(version.run_id, FOLDER, place))
            for file in sorted(folder.glob("*.json")):
                counts |= _read(file)
    return Agreement.of(counts)


def _read(file: Path) -> Counts:
    try:
        return dict(json.loads(file.read_text("utf-8")))
    except ValueError:  # of a run that was killed while it wrote; the same rows write it again
        return {}


def objection(registry: Registry, rules: RolloutConfig, version: Version, found: Agreement) -> str | None:
    """Return why a version in shadow may not be promoted yet, None where it may."""
    if failure := registry.tags(version).get(f"ldsvm.{FAILED}"):
        return f"it has failed: {failure}"
    if found.rows < rules.shadow_rows:
        return f"{found.rows:,} rows were compared; production.rollout.shadow_rows requires {rules.shadow_rows:,}"
    if found.rows and found.share < rules.least_agreement:
        return (
            f"it agrees with the champion on {percent(found.share)} of {found.rows:,} rows; "
            f"production.rollout.least_agreement requires {percent(rules.least_agreement)}"
        )
    return None


def promote(registry: Registry, rules: RolloutConfig) -> str:
    """Make the version in shadow the champion, record it in a run of its own, and return the outcome in one sentence.

    Raises RegistryFailed, in one sentence, where there is none, where it is stale or cannot be loaded, or where it may
    not be promoted yet and `rules.force` does not say so.
    """
    champion, version = registry.require(CHAMPION), registry.get(SHADOW)
    if version is None:
        raise RegistryFailed(
            f"No version of {registry.name} is in shadow; to put one there, set production.rollout.shadow_rows above "
            "0 and retrain."
        )
    if reason := stale(registry, version, champion):
        raise RegistryFailed(f"{reason}.")
    found = compared(registry, version)
    if not rules.force and (reason := objection(registry, rules, version, found)):
        raise RegistryFailed(f"{version} is not promoted: {reason}; production.rollout.force=true promotes it anyway.")
    _check_loads(registry, version)
    if not registry.promote(version, champion, alias=SHADOW):
        raise RegistryFailed(
            f"{version} is not promoted: champion or shadow changed meanwhile; run python -m flows promote again."
        )
    registry.say(version, verdict="promoted")
    with registry.tracker.run(f"promote · {version}", kind="promote") as run:
        run.log({"champion": str(version), "previous": str(champion)}, found.numbers if found.rows else {})
    said = f"{version} is the champion now, {champion} is previous"
    return f"{said}; in shadow it agreed with the champion on {found.text}" if found.rows else said


def rollback(registry: Registry) -> tuple[Version, Version | None]:
    """Make the version before the champion the champion; return it, and the old one unless it was removed.

    Raises RegistryFailed, in one sentence, where there is none, or where it cannot be loaded.
    """
    _check_loads(registry, registry.require(PREVIOUS))
    return registry.rollback()


def _check_loads(registry: Registry, version: Version) -> None:
    try:
        registry.model(version)
    except RegistryFailed as error:
        raise RegistryFailed(f"{version} is not promoted: its model cannot be loaded.") from error
