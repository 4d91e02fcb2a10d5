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
    """Where results and prepared data go. Relative paths start at the project root.

    runs: results, logs and the tracking store.
    cache: prepared data.
    """

    runs: Path
    cache: Path


class ProblemConfig(Frozen):
    """One classification problem on the data.

    name: what reports call it.
    labels: "original" takes the labels as they are; "parity" asks whether a digit is odd or even.
    """

    name: Name
    labels: Literal["original", "parity"]


class JudgeConfig(Frozen):
    """How the chosen models are measured on the test set.

    repeats: the prediction time is the median of this many predictions of the test set.
    refit: whether the chosen parameters are fitted once more, to training and validation rows together. That model is
        then judged and kept.
    """

    repeats: int = Field(ge=1, le=1000)
    refit: bool = False


class PublishedConfig(Frozen):
    """A published result, to be shown beside ours.

    method: a method of this file, to compare with, or one that cannot be run here.
    error, std: the test error in per cent, and its standard deviation.
    n_basis, iterations: if they are stated.
    source: where it was published.
    """

    method: str
    error: float = Field(ge=0, le=100)
    std: float | None = None
    n_basis: int | None = None
    iterations: int | None = Field(default=None, ge=1)
    source: str


VARIED = ("dataset", "features", "limits", "methods", "n_jobs", "seed", "split")  # sections whose settings can vary


class VaryConfig(Frozen):
    """A setting that varies: the experiment is repeated for each value, and shows curves instead of a table.

    key: the setting, as on the command line, such as split.train.
    values: at least two values of it.
    label: the label of the axis.
    log: whether the axis is logarithmic.
    show: the value whose latent spaces are drawn; null draws none.
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
    """Something that a paper claims, or that we expect; the report says whether it holds.

    text: the claim in words.
    of: the methods that it is about.
    than: other methods, or "others" for all methods that are not ours. Each method under `of` must have a lower test
        error than each of these.
    at_most: the test error, in per cent, that no method under `of` may exceed.
    share: if the experiment varies a setting, the share of its values for which the claim must hold.
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
    """How the trials of a search run, and what chooses among them.

    workers: number of trials that run at a time. One runs in a process of its own, several run on Ray.
    n_jobs: threads of each trial; null takes the experiment's n_jobs.
    ray_address: host:port of a running Ray cluster; null starts Ray here if it is needed.
    without_ray: if Ray cannot be had, "serial" runs one trial after the other, with a warning, and "fail" stops.
    resume: whether finished trials of an earlier search, even one that was killed, are taken from its journal.
    objective: the metric that chooses among the trials, on validation rows. It is the only key here that affects
        results.
    """

    workers: int = Field(default=1, ge=1, le=1024)
    n_jobs: int | None = Field(default=None, ge=1)
    ray_address: str | None = None
    without_ray: Literal["serial", "fail"] = "serial"
    resume: bool = True
    objective: str = "error"


class LimitsConfig(Frozen):
    """How much time and memory a fit, and a whole method, may take.

    fit_s: seconds for one fit. Points of a search that are fitted together get as many times this. The judge gets twice
        this for its fit and its timing, or three times with `refit`.
    fit_mib: memory that a fit may allocate, in MiB; null for what the machine has free, shared by the trials that run
        there at a time.
    task_s: seconds for everything that one method does on one problem.
    """

    fit_s: float = Field(gt=0, le=1e7)
    fit_mib: float | None = Field(gt=0, le=1e9, allow_inf_nan=False)
    task_s: float = Field(gt=0, le=1e8)


class MethodConfig(Frozen):
    """One method of the comparison.

    estimator: one of our names, or the import path of a classifier.
    params: parameters that are fixed.
    search: lists of values, or ranges, by parameter; "default" is the search space that comes with one of our names,
        without what `params` fixes.
    strategy: which points are fitted; null fits the whole grid.
    labels: "original" trains on the labels as they are if those of the problem are coarser, such as odd and even;
        answers are then read as the problem wants, also to choose among trials. null trains on the labels of the
        problem.
    executor: fits the method over blocks of rows; null keeps all rows in memory.
    trusted: for an import path, classes that its fitted model may hold. The model is kept if it holds no others.
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

    name: the name of the experiment, also in MLflow and of the folder of its results.
    title: the title of its pages, by default the name.
    seed: the seed of everything that is random.
    n_jobs: threads for training, for methods that can use them.
    metrics: what is measured on the test set, such as error, log_loss, or the name of a scorer of scikit-learn.
    costs: they set the decision threshold and add the metric cost; null predicts the most probable class.
    refresh: whether everything is computed again that an earlier run has left: prepared data, trials, results.
    features: the feature steps, in their order.
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
