"""Only the data: load, check, split and scale, into the cache."""

from __future__ import annotations

from prefect import flow

from flows import ROOT
from flows.stages import prepare_data
from ldsvm.experiment.load import load_config


@flow(name="prepare")
def prepare(config: str, overrides: list[str]) -> None:
    """Prepare the data of an experiment file. overrides: "key=value" lines that win over the file."""
    prepare_data(load_config(config, overrides, root=ROOT))
