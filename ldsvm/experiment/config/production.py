"""What an experiment file may say about its method in production: when it trains anew, and what is good enough."""

from __future__ import annotations

import warnings
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, StrictFloat, StrictInt, StrictStr, field_validator

from ldsvm.datasets.files.databases import check_address, is_address
from ldsvm.datasets.files.spellings import Spelling
from ldsvm.experiment.config.alarm_kinds import AlarmKind


def _encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise ValueError("allowed: an encoding of Python's, such as utf-8, cp1252, latin-1, utf-16") from None
    return name


Decimal = Literal[".", ","]
Thousands = Literal[",", ".", " ", "'"]
Encoding = Annotated[str, AfterValidator(_encoding)]
Mark = StrictStr | StrictInt | StrictFloat  # of a missing value


class DriftConfig(BaseModel, frozen=True, extra="forbid"):
    """When inputs, labels or latent distances have drifted.

    psi: population stability index above which a change is large; 0.1 is often called moderate, 0.25 large.
    false_discovery_rate: bound for the tests over all inputs; also the level of the tests of labels and of latent
        distances.
    alarm_share: if a larger share of the inputs has drifted, nothing is trained until a person has looked; 1 trains in
        any case.
    unknown_labels: for labels that were not in the training data: "alarm" trains nothing until a person has looked,
        "retrain" learns them.
    """

    psi: float = Field(default=0.2, gt=0)
    false_discovery_rate: float = Field(default=0.01, gt=0, lt=1)
    alarm_share: float = Field(default=0.5, ge=0, le=1)
    unknown_labels: Literal["alarm", "retrain"] = "alarm"


class Change(BaseModel, frozen=True, extra="forbid"):
    """Limits of a metric of which less is better, as in MLflow.

    threshold: the largest value that is allowed, in the unit of the metric.
    min_absolute_change: by how much the challenger must be better than the champion, in the unit of the metric.
    min_relative_change: the same, as a share of the champion's value.
    """

    threshold: float | None = Field(default=None, ge=0)
    min_absolute_change: float = Field(default=0.0, ge=0)
    min_relative_change: float = Field(default=0.0, ge=0, le=1)


class Rule(BaseModel, frozen=True, extra="forbid"):
    """Limits of any metric.

    threshold: the largest value that is allowed if less is better, else the least.
    min_absolute_change: by how much the challenger must be better than the champion, in the unit of the metric.
    min_relative_change: the same, as a share of the champion's value.
    """

    threshold: float | None = Field(default=None, allow_inf_nan=False)
    min_absolute_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    min_relative_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class Ceiling(BaseModel, frozen=True, extra="forbid"):
    """An upper limit.

    threshold: the largest value that is allowed.
    """

    threshold: float = Field(gt=0)


class GateConfig(BaseModel, frozen=True, extra="forbid"):
    """The rules that a challenger must pass to become the champion.

    metric: the metric in which the challenger must be better than the champion, or not worse.
    metrics: limits of any number of metrics, by name.
    error_percent: limits of the error on the holdout, in per cent.
    class_error_percent: limit of the error of the worst class, in per cent.
    evidence: "better" asks for a challenger that is better beyond chance, "not_worse" for one that is not worse beyond
        chance, such as a smaller model.
    confidence: confidence of the test, which is McNemar's for the error and a paired randomisation test for other
        metrics. With "better", 1 - confidence bounds the probability that any challenger of a champion is promoted
        although none is better. With "not_worse" it is the confidence of each test by itself.
    n_basis: limit of the number of basis functions.
    predict_us: limit of the prediction time, in microseconds per row on one thread.
    parameter_bytes: limit of the size of what a prediction needs, in bytes.
    """

    metric: str = "error"
    metrics: dict[str, Rule] = {}
    error_percent: Change = Change()
    class_error_percent: Ceiling | None = None
    evidence: Literal["better", "not_worse"] = "better"
    confidence: float = Field(default=0.95, ge=0.5, lt=1)
    n_basis: Ceiling | None = None
    predict_us: Ceiling | None = None
    parameter_bytes: Ceiling | None = None

    @property
    def names(self) -> list[str]:
        """Every metric that the rules need, but for the error."""
        return [name for name in dict.fromkeys([self.metric, *self.metrics]) if name != "error"]


class ScoreConfig(BaseModel, frozen=True, extra="forbid"):
    """Which rows a model scores, and where the answers go.

    input: a table, or a folder or glob of tables.
    output: a file that ends in .parquet or .csv, new or written by an earlier scoring.
    alias: the alias of the version that answers.
    keep: columns of the input that are copied to the output.
    rows: number of rows in memory at a time.
    format, header, encoding, decimal, thousands, missing_values, sheet, table, query: how to read the input; by default
        as `dataset` says.
    escape_formulas: whether a text in a .csv output gets a leading ' if a spreadsheet would run it as a formula: it
        begins with =, +, -, @, a tab or a line break, and is no number.
    drift: what to do if the rows of a chunk are unlike the training data: "warn" says so and goes on, "stop" ends the
        scoring there, "ignore" compares nothing.
    """

    input: str
    output: str
    alias: Literal["champion", "previous"] = "champion"
    keep: tuple[str, ...] = ()
    rows: int = Field(default=50_000, ge=1, le=10_000_000)
    format: Literal["parquet", "csv", "semicolon", "pipe", "blanks", "tsv", "arrow"] | None = None
    header: bool | None = None
    encoding: Encoding | None = None
    escape_formulas: bool = True
    drift: Literal["warn", "stop", "ignore"] = "warn"
    decimal: Decimal | None = None
    thousands: Thousands | None = None
    missing_values: tuple[Mark, ...] | None = None
    sheet: str | None = None
    table: str | None = None
    query: str | None = None

    @field_validator("input")
    @classmethod
    def _no_password(cls, value: str) -> str:
        if is_address(value):
            check_address(value)
        return value

    def spelling(self, decimal: str | None, missing_values: tuple[Mark, ...], thousands: str | None = None) -> Spelling:
        """Return how the input writes numbers, given how the data set does."""
        missing = missing_values if self.missing_values is None else self.missing_values
        thousands = self.thousands or (None if self.decimal else thousands)  # of another decimal mark
        return Spelling.of(self.decimal or decimal, missing, "production.score", thousands)


class RolloutConfig(BaseModel, frozen=True, extra="forbid"):
    """What happens to a challenger that has passed the gate.

    shadow_rows: 0 promotes it at once. With more it gets the alias "shadow" and answers the champion's rows too; when
        so many rows were compared, it may be promoted.
    least_agreement: share of these rows for which both must give the same class; 0 asks for nothing.
    promote: "by_hand" waits for the command promote; "automatic" lets score promote it as soon as it may be.
    force: promote it without enough rows or agreement; meant for the command line of promote.
    """

    shadow_rows: int = Field(default=0, ge=0)
    least_agreement: float = Field(default=0.9, ge=0, le=1)
    promote: Literal["by_hand", "automatic"] = "by_hand"
    force: bool = False


class KeepConfig(BaseModel, frozen=True, extra="forbid"):
    """What is removed when it is old; null keeps everything.

    versions: number of newest versions that stay in the registry after a retraining. Versions with an alias, and those
        that somebody else has registered, stay too. The others are removed with their files; the runs that made them
        stay.
    days: age in days at which a scoring removes what earlier ones have left in the folder of its output: outputs of
        this model with their `.drift.json`, unless they were renamed, and chunks of scorings that were stopped.
    """

    versions: int | None = Field(default=None, ge=1)
    days: float | None = Field(default=None, gt=0)


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", 'Field name "schema"', UserWarning)  # an old method of pydantic's

    class SchemaRule(BaseModel, frozen=True, extra="forbid"):
        """What is done about new rows of a mixed table with values or gaps that its `schema.yaml` does not allow."""

        schema: Literal["refuse", "warn", "ignore"] = "warn"  # type: ignore[assignment]


class ProductionConfig(SchemaRule, frozen=True, extra="forbid"):
    """How a model of ours is kept up to date.

    model: its name in the registry.
    method: which of `methods` it is.
    holdout: share of the new rows that judges both models and trains neither.
    least: with fewer new rows nothing is done.
    factor: the search around the champion tries its parameters divided by this, unchanged, and multiplied by this.
    trials: number of points that this search tries at most.
    lost_share: if a larger share of the champion's rows is gone, nothing is trained until a person has looked; 1 trains
        in any case.
    acknowledge: a person has looked, so this run and later ones on the same data go on in spite of alarms. It is meant
        for the command line: in a file it would turn all alarms off.
    alarms: the kinds of alarms that people are told of.
    schema: what to do about new rows of a mixed table with values or gaps that its `schema.yaml` does not allow.
    score: what the command score does.
    rollout: what happens between the gate and the alias champion.
    keep: how long old versions and scores are kept.
    """

    model: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
    method: str = "ours"
    holdout: float = Field(default=0.3, gt=0, lt=1)
    least: int = Field(default=100, ge=20)
    factor: float = Field(default=3.0, gt=1)
    trials: int = Field(default=9, ge=1)
    lost_share: float = Field(default=0.5, ge=0, le=1)
    acknowledge: bool = False
    alarms: tuple[AlarmKind, ...] = get_args(AlarmKind)
    drift: DriftConfig = DriftConfig()
    gate: GateConfig = GateConfig()
    score: ScoreConfig | None = None
    rollout: RolloutConfig = RolloutConfig()
    keep: KeepConfig = KeepConfig()
