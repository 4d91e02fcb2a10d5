"""What an experiment file may say. Frozen models; `ldsvm.experiment.config.load` reads files into them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ldsvm.datasets.steps import Step, parse
from ldsvm.datasets.transformers import is_path
from ldsvm.experiment.config.costs import CostsConfig, measured
from ldsvm.experiment.config.dataset import DatasetConfig, Name
from ldsvm.experiment.config.executors import ExecutorConfig
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.spaces import Range, Scalar, StrategyConfig, Values
from ldsvm.experiment.config.split import CrossValidationConfig, SplitConfig
from ldsvm.methods import lookup, shared
from ldsvm.metrics import Costs


class Frozen(BaseModel):
    """Base of every section: no later change, no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Paths(Frozen):
    """Where results go. Relative paths start at the project root."""

    runs: Path
    cache: Path


class ProblemConfig(Frozen):
    """One classification problem on the data: the labels as they are, or the parity of digits."""

    name: Name
    labels: Literal["original", "parity"]


class JudgeConfig(Frozen):
    """What the one judge measures, and how.

    repeats: the time is the median over so many predictions of the test set. refit: whether the chosen point is fitted
    once more, to training and validation rows together, and that model judged and kept.
    """

    repeats: int = Field(ge=1, le=1000)
    refit: bool = False


class PublishedConfig(Frozen):
    """A figure of somebody else, to stand beside ours: test error in per cent; basis functions and iterations if told.

    method: the name of a method of the same file, to be compared with, or of one that cannot be run here.
    """

    method: str
    error: float = Field(ge=0, le=100)
    std: float | None = None
    n_basis: int | None = None
    iterations: int | None = Field(default=None, ge=1)
    source: str


VARIED = ("dataset", "features", "limits", "methods", "n_jobs", "seed", "split")  # sections whose settings can vary


class VaryConfig(Frozen):
    """One setting, and values for it: the experiment is repeated for each, and shows curves instead of a table.

    key: dotted, as on the command line, such as split.train. label: what the axis says. log: whether it is logarithmic.
    show: the value whose latent spaces are drawn, None for none.
    """

    key: Annotated[str, Field(pattern=r"^[^=]+$")]
    values: Annotated[list[Scalar], Field(min_length=2)]
    label: str
    log: bool = False
    show: Scalar | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> VaryConfig:
        if self.key.split(".")[0] not in VARIED or self.key in ("split.repeats", "split.folds"):
            raise ValueError(f"allowed: a key below {', '.join(VARIED)}, but for split.repeats and split.folds")
        if len(set(map(repr, self.values))) < len(self.values):
            raise ValueError("allowed: values that differ")
        if self.show is not None and (type(self.show), self.show) not in [(type(v), v) for v in self.values]:
            raise ValueError(f"allowed: in show, one of the values {', '.join(map(str, self.values))}")
        return self


class ClaimConfig(Frozen):
    """Something that is expected, by a paper or by us; the report says whether it holds.

    text: in words. of: methods whose test error is meant, in per cent; each of them must be below each of `than`, and
    not above `at_most`. than: names, or "others" for all methods that are not ours. share: of the values that the
    experiment varies, at how large a part it must hold.
    """

    text: Annotated[str, Field(min_length=1)]
    of: Annotated[list[str], Field(min_length=1)]
    than: list[str] | Literal["others"] = []
    at_most: float | None = Field(default=None, ge=0, le=100)
    share: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _says_something(self) -> ClaimConfig:
        if not self.than and self.at_most is None:
            raise ValueError("give than, at_most, or both")
        if set(self.of) & set(self.than):
            raise ValueError("no method may be both in of and in than")
        return self


class SearchConfig(Frozen):
    """How the trials of a search run, and what they are chosen by.

    workers: so many at a time; one runs in a process of its own, more on Ray. n_jobs: threads of each, None for as many
    as the experiment's. ray_address: host:port of a running Ray cluster, None starts one here when it is needed.
    without_ray: "serial" goes on one trial after the other when Ray cannot be had, with a warning; "fail" stops.
    resume: whether trials that an earlier, perhaps killed, search has finished are taken from its journal.
    objective: the metric that chooses among trials on validation rows, and the one setting here that decides results.
    """

    workers: int = Field(default=1, ge=1, le=1024)
    n_jobs: int | None = Field(default=None, ge=1)
    ray_address: str | None = None
    without_ray: Literal["serial", "fail"] = "serial"
    resume: bool = True
    objective: str = "error"


class LimitsConfig(Frozen):
    """What one fit, and one task, may take.

    fit_s: seconds of a fit; points of a search that are fitted together have as many times that, and the judge two
    times for its fit and its clock, three times where `refit` asks for a last fit. fit_mib: memory a fit may allocate,
    in MiB; None for what the machine has free, shared between the trials that run there at a time.
    task_s: seconds of all that one method does on one problem.
    """

    fit_s: float = Field(gt=0, le=1e7)
    fit_mib: float | None = Field(gt=0, le=1e9, allow_inf_nan=False)
    task_s: float = Field(gt=0, le=1e8)


class MethodConfig(Frozen):
    """One method: the estimator's registry name or a classifier's import path, its parameters, and the values to try.

    labels: "original" lets it learn the labels as they are, where the problem has a coarser reading of them; its
    answers are read as the problem wants, also for the choice among trials. None: it learns the problem's.
    search: lists of values, or ranges, by parameter; "default" is the registry's space, less what `params` fix.
    strategy: None fits every point of the grid. executor: who fits it over blocks of rows, None for all rows in memory.
    trusted: for an import path, classes that its fitted model may hold; the model is kept where they are all there is.
    """

    estimator: str
    params: dict[str, Scalar] = {}
    search: dict[str, Values] | Literal["default"] = {}
    strategy: StrategyConfig | None = None
    labels: Literal["original"] | None = None
    executor: ExecutorConfig | None = None
    trusted: tuple[Annotated[str, Field(pattern=r"^\w+(\.\w+)+$")], ...] = ()

    @field_validator("estimator")
    @classmethod
    def _registered(cls, value: str) -> str:
        try:
            lookup(value)
        except KeyError as error:
            raise ValueError(error.args[0]) from None
        return value

    @model_validator(mode="after")
    def _fits_by_blocks(self) -> MethodConfig:
        if self.executor is not None and self.estimator != "ldsvm":
            raise ValueError("allowed: an executor only for the estimator ldsvm")
        return self

    @model_validator(mode="after")
    def _ranges_are_drawn_from(self) -> MethodConfig:
        if self.search == "default" and is_path(self.estimator):
            raise ValueError("allowed: values by parameter, as an import path has no default search")
        if self.trusted and not is_path(self.estimator):
            raise ValueError("allowed: trusted only for an import path")
        ranges = [name for name, values in self.space.items() if isinstance(values, Range)]
        if ranges and (self.strategy is None or self.strategy.n_candidates is None):
            raise ValueError(f"allowed: a range, as {ranges[0]} has, only together with strategy.n_candidates")
        return self

    @property
    def space(self) -> dict[str, list[Scalar] | Range]:
        """The values to try, by parameter."""
        if self.search != "default":
            return dict(self.search)
        return {k: list(v) for k, v in lookup(self.estimator).space.items() if k not in self.params}

    @property
    def on_ray(self) -> bool:
        """Whether the rows are in other processes, so that this one's memory says nothing of a fit."""
        return self.executor is not None and self.executor.kind == "ray"

    @property
    def settings(self) -> dict[str, Any]:
        """Every parameter of the estimator by name, as it is without a search."""
        return {**lookup(self.estimator).make().get_params(), **self.params}

    def make(self, point: dict[str, Any], *, seed: int, n_jobs: int) -> Any:
        """Return the unfitted estimator at one point; it gets `random_state` and `n_jobs` where it has them."""
        estimator = shared(lookup(self.estimator).make(), seed=seed, n_jobs=n_jobs)
        return estimator.set_params(**{**self.params, **point})


class Config(Frozen):
    """A whole experiment file, merged over `conf/base.yaml`.

    title: of pages, by default the name. metrics: what the judge measures, see `ldsvm.metrics.metric`. costs: of
    mistakes, which decide from which probability on a class is given and add the metric cost; None: the most probable
    class is given. refresh: do everything anew, also what an earlier run has left: prepared data, trials, results.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=40)]
    title: str = ""
    seed: int = Field(ge=0, lt=2**32)
    n_jobs: int = Field(ge=1)
    paths: Paths
    dataset: DatasetConfig
    problems: list[ProblemConfig] = Field(min_length=1)
    split: SplitConfig | CrossValidationConfig = Field(discriminator="kind")
    judge: JudgeConfig
    metrics: Annotated[tuple[str, ...], Field(min_length=1)] = ("error",)
    costs: CostsConfig | None = None
    limits: LimitsConfig
    search: SearchConfig = SearchConfig()
    refresh: bool = False
    methods: dict[Name, MethodConfig] = Field(min_length=1)
    features: tuple[Step, ...] = ()
    published: tuple[PublishedConfig, ...] = ()
    vary: VaryConfig | None = None
    claims: tuple[ClaimConfig, ...] = ()
    production: ProductionConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_a_title(cls, data: Any) -> Any:
        return {"title": data["name"], **measured(data)} if isinstance(data, dict) and "name" in data else data

    @field_validator("features", mode="before")
    @classmethod
    def _steps(cls, value: Any) -> tuple[Step, ...]:
        return parse(value)

    @property
    def transformers(self) -> list[str]:
        """Import paths among the features."""
        return [step.name for step in self.features if is_path(step.name)]

    @property
    def classifiers(self) -> list[str]:
        """Import paths among the methods."""
        return [method.estimator for method in self.methods.values() if is_path(method.estimator)]

    @property
    def metric_paths(self) -> list[str]:
        """Import paths among the metrics, the objective, and the gate's metrics."""
        gate = self.production.gate.names if self.production else []
        return [name for name in dict.fromkeys([*self.metrics, self.search.objective, *gate]) if is_path(name)]

    @model_validator(mode="after")
    def _one_kind_of_page(self) -> Config:
        if self.vary is not None and self.published:
            raise ValueError("allowed: published figures without vary, whose page has no place for them")
        return self

    @model_validator(mode="after")
    def _seeds_exist(self) -> Config:
        if self.seed + self.split.count > 2**32:
            raise ValueError(f"allowed: seeds below 2**32 for all {self.split.count} splits")
        return self

    @property
    def mistakes(self) -> Costs | None:
        """What mistakes cost, None where all are alike."""
        return None if self.costs is None else self.costs.known

    @property
    def trial_jobs(self) -> int:
        """Threads of each trial."""
        return self.search.n_jobs or self.n_jobs

    @property
    def others(self) -> list[str]:
        """Names of the methods that are not ours."""
        return [name for name, method in self.methods.items() if not lookup(method.estimator).iterative]

    @property
    def journal(self) -> Path | None:
        """File of the finished trials of all searches of experiments of this name; None when none are to be kept.

        The number is that of the form of its lines.
        """
        return self.paths.runs / "journal" / f"{self.name}.2.jsonl" if self.search.resume else None

    @property
    def checkpoints(self) -> Path | None:
        """Folder where fits over blocks of rows keep how far they are; None when nothing is to be gone on with."""
        return self.results if self.search.resume and not self.refresh else None

    @property
    def results(self) -> Path:
        """Folder of this experiment's results; another configuration has another folder, so they never mix."""
        shown = {"paths", "published", "claims", "search", "refresh", "production"}
        decides = self.model_dump_json(exclude=shown | ({"costs"} if self.costs is None else set()))
        digest = hashlib.sha256((decides + self.search.objective).encode()).hexdigest()[:8]
        return self.paths.runs / "results" / f"{self.name}-{digest}"
