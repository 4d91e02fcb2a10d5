"""Only our method: search, judge, track, report."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows._cli import experiment, run_name
from flows._runtime import compare, prepare_data


@flow(name="search", flow_run_name=run_name)
def search(config: str, overrides: Sequence[str] = ()) -> str:
    """Run the methods of an experiment file that are ours; the report also shows the others' earlier results."""
    settings = experiment(config, overrides)
    ours = [name for name in settings.methods if name not in settings.others]
    return compare(settings, prepare_data(settings), ours)
