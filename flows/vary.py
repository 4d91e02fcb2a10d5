"""Run an experiment for each value of one of its settings, and draw the curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows._cli import working
from flows._runtime import finish, prepare_data, run_contests, workers
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config.schema import Config
from ldsvm.report.curves import publish_curves
from ldsvm.report.publish import Published, Runs


def vary(config: Config, variants: Sequence[Config]) -> str:
    """Run all methods for each variant, write the curves and return the page's path; raise failures at the end.

    Work that does not depend on the varied setting is done once: the later variants find its results.
    """
    assert config.vary is not None
    errors: list[str] = []
    runs: dict[str, Runs] = {}
    with workers(config):
        for value, variant in zip(config.vary.values, variants, strict=True):
            facts = prepare_data(variant)
            runs = run_contests(variant, facts, list(variant.methods), errors, f"{config.vary.label} {value} · ")
    published = write_curves(config, list(variants), facts)
    return finish(config, published, runs, errors, variants)


@task(name="curves", task_run_name="curves", cache_policy=NO_CACHE)
def write_curves(config: Config, variants: list[Config], facts: str) -> Published:
    """Write curves, tables and the page."""
    with working("report") as news:
        config.results.mkdir(parents=True, exist_ok=True)
        published = publish_curves(config, variants, preparation.read(Path(facts)))
        news(str(published.page))
    return published
