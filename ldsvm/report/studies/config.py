"""What the file of a study may say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from ldsvm.experiment.config.load import ConfigError, sentence
from ldsvm.experiment.config.schema import Frozen, Paths
from ldsvm.experiment.config.yaml_merge import tree_of
from ldsvm.report.studies.base import NAMES, Params, study


class StudyConfig(Frozen):
    """A whole study file, merged over the part of `conf/base.yaml` that it shares.

    study: one of `ldsvm.report.studies.base.NAMES`. params: those of that study which differ from its defaults.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=40)]
    title: str
    study: str
    params: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(ge=0, lt=2**32)
    n_jobs: int = Field(ge=1)
    paths: Paths
    refresh: bool = False

    @property
    def settings(self) -> Params:
        """All parameters of the study."""
        return study(self.study).Params.model_validate(self.params)

    @property
    def results(self) -> Path:
        """Folder of the page; another configuration has another folder."""
        decides = self.model_dump_json(exclude={"paths", "refresh"})
        return self.paths.runs / "results" / f"{self.name}-{hashlib.sha256(decides.encode()).hexdigest()[:8]}"


def is_study(path: str | Path, *, root: Path) -> bool:
    """Return whether a file is that of a study; raise ConfigError when it cannot be read."""
    return "study" in tree_of(path, root=root, shared=())


def load_study(path: str | Path, overrides: Sequence[str] = (), *, root: Path) -> StudyConfig:
    """Return the checked study. path, overrides, root: as for `ldsvm.experiment.config.load.load_config`."""
    tree = tree_of(path, overrides, root=root, shared=StudyConfig.model_fields)
    if tree["study"] not in NAMES:
        raise ConfigError(f'{path}: key "study" has value {tree["study"]!r}; allowed: {", ".join(NAMES)}.')
    try:
        config = StudyConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error, tree, StudyConfig)}") from None
    model = study(config.study).Params
    try:
        model.model_validate(config.params)
    except ValidationError as error:
        raise ConfigError(f"{path}: params: {sentence(error, config.params, model)}") from None
    try:
        paths = {key: (root / value.expanduser()).resolve() for key, value in config.paths}
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{path}: a path is not valid ({error}).") from None
    return config.model_copy(update={"paths": config.paths.model_copy(update=paths)})
