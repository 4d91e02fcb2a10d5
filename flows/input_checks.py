"""What a run reads, looked at before any server starts, so that a mistake in a file is told at once."""

from __future__ import annotations

from pathlib import Path

from flows import ROOT
from flows.environment import produced
from flows.progress import working
from ldsvm.datasets.files import FileSpec
from ldsvm.datasets.files.find import find
from ldsvm.experiment import prepared
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.config.yaml_merge import found
from ldsvm.report.studies.config import StudyConfig


def check_inputs(config: Config | StudyConfig, name: str) -> None:
    """Raise DataError, one sentence, when the flow `name` cannot read its input.

    A user's files are read as the flow will read them, which then finds them in the cache.
    """
    if not isinstance(config, Config) or name == "rollback":
        return
    if name == "score":
        asked = produced(config, name).score
        assert asked is not None
        given = str(Path(asked.input).expanduser())
        find(FileSpec(found(given, ROOT) or given, format=asked.format or config.dataset.format))
    elif config.dataset.files is not None:
        with working(f"read {config.dataset.name}"):
            source = prepared.load_source(config)
            if config.vary is None and name != "retrain":  # these divide the rows in a way of their own
                prepared.draw_split(config, source, config.seed)
