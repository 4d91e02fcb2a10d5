"""Only our method: search, judge, track, report."""

from __future__ import annotations

from prefect import flow

from flows import ROOT
from flows.stages import compare, prepare_data
from ldsvm.baselines import lookup
from ldsvm.experiment.load import load_config


@flow(name="search")
def search(config: str, overrides: list[str]) -> str:
    """Run the methods of an experiment file that are ours; the report also shows the others' earlier results."""
    settings = load_config(config, overrides, root=ROOT)
    facts = prepare_data(settings)
    ours = [name for name, method in settings.methods.items() if lookup(method.estimator).iterative]
    return compare(settings, facts, ours)
