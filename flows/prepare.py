"""Only the data: load, check, split and scale, into the cache."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from flows._cli import experiment, run_name
from flows._runtime import prepare_data


@flow(name="prepare", flow_run_name=run_name)
def prepare(config: str, overrides: Sequence[str] = ()) -> None:
    """Prepare the data of an experiment file. overrides: "key=value" strings that change the file."""
    prepare_data(experiment(config, overrides))
