"""Only the methods that ours is compared with: search, judge, track, report."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows._cli import experiment, run_name
from flows._runtime import compare, prepare_data


@flow(name="baselines", flow_run_name=run_name)
def baselines(config: str, overrides: Sequence[str] = ()) -> str:
    """Run the methods of an experiment file that are not ours; the report also shows our earlier results."""
    settings = experiment(config, overrides)
    return compare(settings, prepare_data(settings), settings.others)
