"""What an experiment file may say. Frozen models; `ldsvm.experiment.load` reads files into them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ldsvm.baselines import lookup

Scalar = bool | int | float | str | None
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _+().-]*$", max_length=60)]
Size = Annotated[float, Field(gt=0)] | Annotated[int, Field(gt=0)]


class Frozen(BaseModel):
    """Base of every section: no later change, no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Paths(Frozen):
    """Where results go. Relative paths start at the project root."""

    runs: Path
    cache: Path


class DatasetConfig(Frozen):
    """Which data, and what is done to the inputs: "none", or "pca N" fitted on the training part only."""

    name: str
    preprocess: str = "none"

    @field_validator("preprocess")
    @classmethod
    def _known(cls, value: str) -> str:
        if value != "none" and not re.fullmatch(r"pca [1-9]\d*", value):
            raise ValueError('allowed: "none", or "pca N" with N a whole number above 0')
        return value

    @property
    def n_pca(self) -> int | None:
        """Number of principal components, None when the inputs stay as they are."""
        return None if self.preprocess == "none" else int(self.preprocess.split()[1])


class ProblemConfig(Frozen):
    """One classification problem on the data: the labels as they are, or the parity of digits."""

    name: Name
    labels: Literal["original", "parity"]


class SplitConfig(Frozen):
    """Which samples train, which choose, which judge. "mnist10" keeps the official test set, so it has no `test`."""

    kind: Literal["stratified", "mnist10"]
    train: Size
    validation: Size
    test: Size | None = None

    @model_validator(mode="after")
    def _test_matches_kind(self) -> SplitConfig:
        if (self.kind == "stratified") != (self.test is not None):
            rule = "needs" if self.kind == "stratified" else "uses the official test set and takes no"
            raise ValueError(f'allowed: kind "{self.kind}" {rule} "test"')
        return self


class JudgeConfig(Frozen):
    """How the one judge measures: the median over `repeats` timed predictions of the test set."""

    repeats: int = Field(ge=1, le=1000)


class MethodConfig(Frozen):
    """One method: the estimator's registry name, its fixed parameters, and the values to try."""

    estimator: str
    params: dict[str, Scalar] = {}
    search: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}

    @field_validator("estimator")
    @classmethod
    def _registered(cls, value: str) -> str:
        try:
            lookup(value)
        except KeyError as error:
            raise ValueError(error.args[0]) from None
        return value

    def make(self, point: dict[str, Any], *, seed: int, n_jobs: int) -> Any:
        """Return the unfitted estimator at one point; it gets `random_state` and `n_jobs` where it has them."""
        estimator = lookup(self.estimator).make()
        known = estimator.get_params()
        shared = {k: v for k, v in {"random_state": seed, "n_jobs": n_jobs}.items() if k in known}
        return estimator.set_params(**{**shared, **self.params, **point})


class Config(Frozen):
    """A whole experiment file, merged over `conf/base.yaml`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
    title: str
    seed: int = Field(ge=0, lt=2**32)
    n_jobs: int = Field(ge=1)
    paths: Paths
    dataset: DatasetConfig
    problems: list[ProblemConfig] = Field(min_length=1)
    split: SplitConfig
    judge: JudgeConfig
    methods: dict[Name, MethodConfig] = Field(min_length=1)

    @property
    def results(self) -> Path:
        """Folder of this experiment's results; another configuration has another folder, so they never mix."""
        digest = hashlib.sha256(self.model_dump_json(exclude={"paths"}).encode()).hexdigest()[:8]
        return self.paths.runs / "results" / f"{self.name}-{digest}"
