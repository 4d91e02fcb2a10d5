"""A challenger in shadow scores the same rows as the champion, for comparison. It does not change the output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from flows import timeline
from flows._cli import say
from flows.alarms import raise_alarm
from ldsvm.experiment.config.schema import Config
from ldsvm.production import rollout
from ldsvm.production.promotion import production_rules
from ldsvm.production.registry import CHAMPION, Registry, RegistryFailed, Version
from ldsvm.production.shadow import Agreement, Shadow
from ldsvm.tracking.client import Run
from ldsvm.tracking.server import redacted


@contextmanager
def in_shadow(config: Config, registry: Registry, champion: Version, run: Run) -> Iterator[Shadow | None]:
    """Yield an object that lets the challenger in shadow score the same rows, or None without a challenger.

    Afterwards prints and records how far it agrees with the champion. An error here never makes the scoring fail.
    """
    found, wanted = None, production_rules(config)
    if wanted.score is not None and wanted.score.alias == CHAMPION:
        try:
            found = rollout.load(registry, champion, lambda sentence: say(f"  {redacted(sentence)}"))
        except Exception as error:  # a store that is gone: the champion is loaded, and answers
            say(f"  no shadow comparison with {champion}: {redacted(str(error))}")
    if found is None:
        yield None
        return
    version, shadow = found
    yield shadow
    try:
        _record(config, registry, champion, version, shadow, run)
    except Exception as error:
        say(f"  the comparison with {version} in shadow was not recorded: {redacted(str(error))}")


def _record(config: Config, registry: Registry, champion: Version, version: Version, shadow: Shadow, run: Run) -> None:
    rules = production_rules(config).rollout
    every = rollout.remember(registry, version, shadow)
    run.log({"shadow": str(version)}, {"shadow_s": shadow.seconds})
    if shadow.failure is not None:
        run.tag("ldsvm.shadow_failed", redacted(shadow.failure)[:500])
        return
    here = Agreement.of(shadow.counts)
    run.log({}, here.numbers)
    run.text("shadow.json", json.dumps({"shadow": str(version), "champion": str(champion), **asdict(here)}, indent=1))
    say(f"  {version}, in shadow, agrees with {champion} on {here.text}")
    if every.rows != here.rows:
        say(f"  in all scorings so far: {every.text}")
    if reason := rollout.gone(registry, version) or rollout.objection(registry, rules, version, every):
        say(f"  it may not be promoted yet: {reason}")
    elif rules.promote == "automatic":
        try:
            say(f"  {promote_shadow(config, registry)}")
        except RegistryFailed as error:
            say(f"  {error}")
    else:
        say("  it may be promoted: run python -m flows promote with the same file")


def promote_shadow(config: Config, registry: Registry) -> str:
    """Promote the challenger in shadow to champion, send an alarm about it, and return the outcome in one sentence."""
    said = rollout.promote(registry, production_rules(config).rollout)
    now = registry.require(CHAMPION)
    raise_alarm(config, "promoted", said, version=str(now.number))
    timeline.remember(config, registry, timeline.promoted(now, said))
    return said
