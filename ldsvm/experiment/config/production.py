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
    false_discovery_rate: of the tests of the inputs, and the level of the two of labels and latent distances.
    alarm_share: when more than this share of the inputs has drifted, nothing is trained before a person has looked; 1
    trains in any case. unknown_labels: "alarm" does the same for labels that were not there in training, "retrain"
    learns them.
    """

    psi: float = Field(default=0.2, gt=0)
    false_discovery_rate: float = Field(default=0.01, gt=0, lt=1)
    alarm_share: float = Field(default=0.5, ge=0, le=1)
    unknown_labels: Literal["alarm", "retrain"] = "alarm"


class Change(BaseModel, frozen=True, extra="forbid"):
    """What a metric of which less is better must keep to, as in MLflow: a ceiling, and least gains on the champion.

    threshold: in the metric's unit. min_absolute_change: in that unit too; min_relative_change: as a share of the
    champion's value.
    """

    threshold: float | None = Field(default=None, ge=0)
    min_absolute_change: float = Field(default=0.0, ge=0)
    min_relative_change: float = Field(default=0.0, ge=0, le=1)


class Rule(BaseModel, frozen=True, extra="forbid"):
    """What any metric must keep to: a bound, and least gains on the champion.

    threshold: a ceiling where less is better, else a floor. min_absolute_change: in the metric's unit, towards the
    better; min_relative_change: as a share of the champion's value.
    """

    threshold: float | None = Field(default=None, allow_inf_nan=False)
    min_absolute_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    min_relative_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class Ceiling(BaseModel, frozen=True, extra="forbid"):
    """What a cost may be at most."""

    threshold: float = Field(gt=0)


class GateConfig(BaseModel, frozen=True, extra="forbid"):
    """The rules of promotion.

    metric: in which a challenger must be better, or not worse: any that metrics can name. metrics: rules for any of
    these, by its name.
    error_percent: on the holdout, in per cent. class_error_percent: of the worst class. evidence: "better" wants a
    challenger that is better beyond chance, "not_worse" one that is not worse beyond chance, such as a smaller model.
    confidence: of the test, McNemar's for the error and else a paired randomisation test; with "better",
    1 - confidence bounds the probability that any of all challengers of one champion is promoted although none is
    better; with "not_worse" it is of each test by itself. n_basis, predict_us, parameter_bytes: ceilings on basis
    functions, microseconds per row on one thread, and the size of what a prediction needs.
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

    input: a table, a folder or a glob of tables; output: a file that ends in .parquet or .csv, new or of an earlier
    scoring. alias: of the version that answers. keep: columns of the input that the output has too. rows: held in
    memory at a time. format, header, encoding, decimal, thousands, missing_values, sheet, table, query: of the
    input, those of dataset where they are left out.
    escape_formulas: in a .csv output, which people open in spreadsheets, a text that begins with =, +, -, @, a tab or a
    line's end, and is no number, gets a ' before it, so that none is run as a formula; a .parquet output has texts as
    they came.
    drift: what is done when the rows of a chunk do not look like those of the training: "stop" ends the scoring there,
    "warn" says so and goes on, "ignore" compares nothing.
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
    """How a challenger that has passed the gate becomes the champion.

    shadow_rows: 0, the default, promotes it at once. With more it gets the alias "shadow": the flow score lets it
    answer the champion's rows too, and once so many were compared it may be promoted. least_agreement: share of these
    rows for which both must give the same class; 0 asks for nothing. promote: "by_hand" waits for the flow promote;
    "automatic" lets the flow score promote it as soon as it may be. force: promote it without enough rows or agreement;
    meant for the command line of the flow promote.
    """

    shadow_rows: int = Field(default=0, ge=0)
    least_agreement: float = Field(default=0.9, ge=0, le=1)
    promote: Literal["by_hand", "automatic"] = "by_hand"
    force: bool = False


class KeepConfig(BaseModel, frozen=True, extra="forbid"):
    """What is removed when it is old; null, the default, keeps everything.

    versions: after a retraining so many of the newest versions stay in the registry, all with an alias, and all that
    somebody else has registered; the others are removed with their files, and the runs that made them stay. days: after
    a scoring, what earlier ones have left in the folder of its output is removed when it is older: outputs of this
    model with the `.drift.json` beside them, unless they were renamed, and chunks of scorings that were stopped.
    """

    versions: int | None = Field(default=None, ge=1)
    days: float | None = Field(default=None, gt=0)


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", 'Field name "schema"', UserWarning)  # an old method of pydantic's

    class SchemaRule(BaseModel, frozen=True, extra="forbid"):
        """What is done about new rows of a mixed table with values or gaps that its `schema.yaml` does not allow."""

        schema: Literal["refuse", "warn", "ignore"] = "warn"  # type: ignore[assignment]


class ProductionConfig(SchemaRule, frozen=True, extra="forbid"):
    """How a model of ours is kept fresh.

    model: its name in the registry. method: which of `methods` it is. holdout: share of the new rows that is never
    trained on and judges both models. least: new rows below which nothing is done. factor, trials: the search around
    the champion tries so many points of its parameters divided by, at, and multiplied by the factor. lost_share: when
    more than this share of the champion's rows is gone, nothing is trained before a person has looked; 1 trains in any
    case. acknowledge: that person has, and this run and later ones on the same content go on; meant for the command
    line, since in a file it would turn all alarms off. alarms: of what people are told, through the webhook of the
    variable LDSVM_WEBHOOK: a run that failed or crashed, drift, a challenger that the gate refused, promoted or
    put in shadow, a rollback. schema: see `SchemaRule`. score: what the flow score does.
    rollout: what happens between the gate and the alias champion. keep: how long old versions and scores are kept.
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
