"""The keys of an experiment file, as frozen models; `ldsvm.experiment.config.load` reads files into them."""

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
    """Base of every section: immutable, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Paths(Frozen):
    """Where results (runs) and prepared data (cache) go. Relative paths start at the project root."""

    runs: Path
    cache: Path


class ProblemConfig(Frozen):
    """One classification problem on the data: its labels as they are, or whether a digit is odd or even (parity)."""

    name: Name
    labels: Literal["original", "parity"]


class JudgeConfig(Frozen):
    """How the chosen model of each method is judged on the test set.

    repeats: number of predictions of the test set; the time reported is their median.
    refit: fit the chosen point once more, to training and validation rows together, and judge and keep that model.
    """

    repeats: int = Field(ge=1, le=1000)
    refit: bool = False


class PublishedConfig(Frozen):
    """A published result, shown beside ours: test error and its standard deviation in per cent, and its source.

    method: a method of the same file, or the name of one that is not run here.
    n_basis, iterations: basis functions and iterations, where the source states them.
    """

    method: str
    error: float = Field(ge=0, le=100)
    std: float | None = None
    n_basis: int | None = None
    iterations: int | None = Field(default=None, ge=1)
    source: str


VARIED = ("dataset", "features", "limits", "methods", "n_jobs", "seed", "split")  # sections whose settings can vary


class VaryConfig(Frozen):
    """One setting and its values: the experiment is repeated for each value, and the report shows curves over them.

    key: the setting, dotted as on the command line, such as split.train.
    label: the label of the axis. log: whether the axis is logarithmic.
    show: the value whose latent spaces are drawn; None draws none.
    """

    key: Annotated[str, Field(pattern=r"^[^=]+$")]
    values: Annotated[list[Scalar], Field(min_length=2)]
    label: str
    log: bool = False
    show: Scalar | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> VaryConfig:
        if self.key.split(".")[0] not in VARIED or self.key in ("split.repeats", "split.folds"):
            raise ValueError(f"allowed: a key below {', '.join(VARIED)}, except split.repeats and split.folds")
        if len(set(map(repr, self.values))) < len(self.values):
            raise ValueError("allowed: each value once")
        if self.show is not None and (type(self.show), self.show) not in [(type(v), v) for v in self.values]:
            raise ValueError(f"show must be one of the values {', '.join(map(str, self.values))}")
        return self


class ClaimConfig(Frozen):
    """A claim about the results, by a paper or by us; the report says whether it holds.

    text: the claim in words.
    of: methods; the test error of each must be below that of each of `than`, and at most `at_most`.
    than: names of methods, or "others" for all that are not ours.
    at_most: a test error in per cent.
    share: where the experiment varies a setting, the share of its values for which the claim must hold.
    """

    text: Annotated[str, Field(min_length=1)]
    of: Annotated[list[str], Field(min_length=1)]
    than: list[str] | Literal["others"] = []
    at_most: float | None = Field(default=None, ge=0, le=100)
    share: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _says_something(self) -> ClaimConfig:
        if not self.than and self.at_most is None:
            raise ValueError("a claim needs than, at_most, or both")
        if set(self.of) & set(self.than):
            raise ValueError("of and than must not name the same method")
        return self


class SearchConfig(Frozen):
    """How the trials of a search run, and the metric by which the best is chosen.

    workers: number of trials that run at a time. One runs in its own process; more run on Ray.
    n_jobs: threads of each trial; None: as many as the experiment's n_jobs.
    ray_address: host:port of a running Ray cluster; None starts one on this machine if workers is above 1.
    without_ray: what to do when Ray cannot be used: "serial" warns and runs one trial after the other, "fail" stops.
    resume: take finished trials of an earlier search, also of one that was killed, from its journal.
    objective: the metric on the validation rows that chooses the trial. Of these keys, it alone affects results.
    """

    workers: int = Field(default=1, ge=1, le=1024)
    n_jobs: int | None = Field(default=None, ge=1)
    ray_address: str | None = None
    without_ray: Literal["serial", "fail"] = "serial"
    resume: bool = True
    objective: str = "error"


class LimitsConfig(Frozen):
    """Limits of time and memory.

    fit_s: seconds for one fit. Several points that are fitted together get this for each; the judge gets it twice
    (fit and timing), and three times with judge.refit.
    fit_mib: memory in MiB that one fit may allocate; None: the free memory, shared by the trials that run at a time.
    task_s: seconds for everything that one method does on one problem.
    """

    fit_s: float = Field(gt=0, le=1e7)
    fit_mib: float | None = Field(gt=0, le=1e9, allow_inf_nan=False)
    task_s: float = Field(gt=0, le=1e8)


class MethodConfig(Frozen):
    """One method: a classifier, its parameters, and the values to search.

    estimator: a name such as ldsvm or linear_svm, or the import path of a classifier.
    params: fixed parameters of the estimator.
    search: lists of values, or ranges, by parameter; "default": the estimator's own search space without `params`.
    strategy: how points of the search are chosen; None tries every combination.
    labels: "original" trains on the original labels where the problem groups them (as odd and even), and groups the
    predictions, also when trials are compared. None trains on the problem's labels.
    executor: how the method is fitted over blocks of rows; None holds all rows in memory.
    trusted: for an import path: classes that the fitted model may contain. A model with other classes is not kept.
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
            raise ValueError("allowed: executor with the estimator ldsvm only")
        return self

    @model_validator(mode="after")
    def _ranges_are_drawn_from(self) -> MethodConfig:
        if self.search == "default" and is_path(self.estimator):
            raise ValueError("search must list values by parameter, since an import path has no default search")
        if self.trusted and not is_path(self.estimator):
            raise ValueError("allowed: trusted with an import path only")
        ranges = [name for name, values in self.space.items() if isinstance(values, Range)]
        if ranges and (self.strategy is None or self.strategy.n_candidates is None):
            raise ValueError(f"the range of {ranges[0]} needs strategy.n_candidates, the number of points to draw")
        return self

    @property
    def space(self) -> dict[str, list[Scalar] | Range]:
        """The values to try, by parameter."""
        if self.search != "default":
            return dict(self.search)
        return {k: list(v) for k, v in lookup(self.estimator).space.items() if k not in self.params}

    @property
    def on_ray(self) -> bool:
        """Whether fits run in Ray's processes, so that this process's memory says nothing about them."""
        return self.executor is not None and self.executor.kind == "ray"

    @property
    def settings(self) -> dict[str, Any]:
        """Every parameter of the estimator by name, without a search."""
        return {**lookup(self.estimator).make().get_params(), **self.params}

    def make(self, point: dict[str, Any], *, seed: int, n_jobs: int) -> Any:
        """Return the unfitted estimator at one point; it gets `random_state` and `n_jobs` where it has them."""
        estimator = shared(lookup(self.estimator).make(), seed=seed, n_jobs=n_jobs)
        return estimator.set_params(**{**self.params, **point})


class Config(Frozen):
    """A whole experiment file, merged over `conf/base.yaml`.

    name: of the experiment, of its MLflow experiment and of its folder of results.
    title: the title of the report (default: the name).
    seed: of the first split and of everything random. n_jobs: number of threads.
    metrics: what the judge measures, see `ldsvm.metrics.metric`.
    costs: the costs of mistakes; they set the threshold on the probability of a class, and add the metric cost. None:
    the most probable class is predicted.
    published: results of others, shown beside ours. vary: one setting to repeat the experiment over.
    refresh: compute everything again: prepared data, trials and results of earlier runs are not reused.
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
            raise ValueError("allowed: published or vary, not both (the report with curves shows no published results)")
        return self

    @model_validator(mode="after")
    def _seeds_exist(self) -> Config:
        if self.seed + self.split.count > 2**32:
            raise ValueError(f"seed plus the {self.split.count} splits must be at most 2**32")
        return self

    @property
    def mistakes(self) -> Costs | None:
        """The costs of mistakes, None where all cost the same."""
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
        """Journal of finished trials of all searches of experiments with this name; None when none are kept.

        The number in its name is the version of its format.
        """
        return self.paths.runs / "journal" / f"{self.name}.2.jsonl" if self.search.resume else None

    @property
    def checkpoints(self) -> Path | None:
        """Folder of the checkpoints of fits over blocks of rows; None when fits are not to be resumed."""
        return self.results if self.search.resume and not self.refresh else None

    @property
    def results(self) -> Path:
        """Folder of this experiment's results; another configuration has another folder, so they never mix."""
        shown = {"paths", "published", "claims", "search", "refresh", "production"}
        decides = self.model_dump_json(exclude=shown | ({"costs"} if self.costs is None else set()))
        digest = hashlib.sha256((decides + self.search.objective).encode()).hexdigest()[:8]
        return self.paths.runs / "results" / f"{self.name}-{digest}"
