"""Only the methods to compare with: search, judge, track, report."""

from __future__ import annotations

from prefect import flow

from flows import ROOT
from flows.stages import compare, prepare_data
from ldsvm.baselines import lookup
from ldsvm.experiment.load import load_config


@flow(name="baselines")
def baselines(config: str, overrides: list[str]) -> str:
    """Run the methods of an experiment file that are not ours; the report also shows our earlier results."""
    settings = load_config(config, overrides, root=ROOT)
    facts = prepare_data(settings)
    others = [name for name, method in settings.methods.items() if not lookup(method.estimator).iterative]
    return compare(settings, facts, others)
