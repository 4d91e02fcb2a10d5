"""Only the methods to compare with: search, judge, track, report."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows.compare import compare
from flows.environment import experiment
from flows.stages import prepare_data
from ldsvm.baselines import lookup


@flow(name="baselines")
def baselines(config: str, overrides: Sequence[str] = ()) -> str:
    """Run the methods of an experiment file that are not ours; the report also shows our earlier results."""
    settings = experiment(config, overrides)
    facts = prepare_data(settings)
    others = [name for name, method in settings.methods.items() if not lookup(method.estimator).iterative]
    return compare(settings, facts, others)
