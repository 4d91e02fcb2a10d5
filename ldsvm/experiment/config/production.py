"""The section production of an experiment file: when the model is retrained, and what makes it good enough."""

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
        raise ValueError("allowed: an encoding that Python knows, such as utf-8, cp1252, latin-1 or utf-16") from None
    return name


Decimal = Literal[".", ","]
Thousands = Literal[",", ".", " ", "'"]
Encoding = Annotated[str, AfterValidator(_encoding)]
Mark = StrictStr | StrictInt | StrictFloat  # of a missing value


class DriftConfig(BaseModel, frozen=True, extra="forbid"):
    """When inputs, labels or latent distances count as drifted.

    psi: the population stability index above which a change is large; 0.1 is often called moderate, 0.25 large.
    false_discovery_rate: of the tests on the inputs; also the level of the tests on labels and on latent distances.
    alarm_share: when more than this share of the inputs has drifted, nothing is trained until a person has looked; 1
    always trains.
    unknown_labels: for labels that were absent from the training data: "alarm" waits for a person too, "retrain" learns
    them.
    """

    psi: float = Field(default=0.2, gt=0)
    false_discovery_rate: float = Field(default=0.01, gt=0, lt=1)
    alarm_share: float = Field(default=0.5, ge=0, le=1)
    unknown_labels: Literal["alarm", "retrain"] = "alarm"


class Change(BaseModel, frozen=True, extra="forbid"):
    """A rule for a metric of which less is better, named as in MLflow: a ceiling, and how much better to be.

    threshold: the largest value allowed.
    min_absolute_change: how much lower than the champion's it must be. min_relative_change: the same as a share of the
    champion's value.
    """

    threshold: float | None = Field(default=None, ge=0)
    min_absolute_change: float = Field(default=0.0, ge=0)
    min_relative_change: float = Field(default=0.0, ge=0, le=1)


class Rule(BaseModel, frozen=True, extra="forbid"):
    """A rule for any metric: a bound, and how much better than the champion to be.

    threshold: the largest value allowed where less is better, else the smallest.
    min_absolute_change: how much better than the champion's value it must be. min_relative_change: the same as a share
    of the champion's value.
    """

    threshold: float | None = Field(default=None, allow_inf_nan=False)
    min_absolute_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    min_relative_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class Ceiling(BaseModel, frozen=True, extra="forbid"):
    """The largest value allowed."""

    threshold: float = Field(gt=0)


class GateConfig(BaseModel, frozen=True, extra="forbid"):
    """The rules by which a challenger is promoted.

    metric: the metric in which challenger and champion are compared; any that the key metrics of the file accepts.
    metrics: further rules, by name of the metric.
    error_percent: rule for the error on the holdout, in per cent. class_error_percent: the same for the worst class.
    evidence: "better" requires a challenger that is significantly better; "not_worse" accepts one that is not
    significantly worse, such as a smaller model.
    confidence: of the test, which is McNemar's for the error and a paired randomisation test for other metrics. With
    "better", 1 - confidence bounds the probability that any of the challengers of one champion is promoted although
    none is better; with "not_worse" it holds for each test separately.
    n_basis, predict_us, parameter_bytes: limits on the number of basis functions, on microseconds per row on one
    thread, and on the bytes that a prediction needs.
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
        """Every metric that the rules need, except the error."""
        return [name for name in dict.fromkeys([self.metric, *self.metrics]) if name != "error"]


class ScoreConfig(BaseModel, frozen=True, extra="forbid"):
    """Which rows the model scores, and where the scores go.

    input: a table, or a folder or glob of tables.
    output: a file that ends in .parquet or .csv; the output of an earlier scoring is replaced.
    alias: of the model version that scores. keep: columns of the input that are copied to the output.
    rows: number of rows held in memory at a time.
    format, header, encoding, decimal, thousands, missing_values, sheet, table, query: how to read the input (default:
    as dataset).
    escape_formulas: in a .csv output, put a ' before texts that begin with =, +, -, @, a tab or a line break and are no
    numbers, so that a spreadsheet does not run them as formulas. A .parquet output has all texts unchanged.
    drift: what to do when rows do not look like the training data: "stop" the scoring, "warn" and go on, or "ignore" it
    (nothing is compared).
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

    shadow_rows: 0 promotes it at once. With more, it gets the alias shadow: the flow score lets it score the same rows
    as the champion, and it may be promoted after this many rows.
    least_agreement: share of these rows for which both must predict the same class; 0 turns this off.
    promote: "by_hand" waits for the flow promote; "automatic" lets the flow score promote it as soon as it may.
    force: promote it without enough rows or agreement; meant for the command line of the flow promote.
    """

    shadow_rows: int = Field(default=0, ge=0)
    least_agreement: float = Field(default=0.9, ge=0, le=1)
    promote: Literal["by_hand", "automatic"] = "by_hand"
    force: bool = False


class KeepConfig(BaseModel, frozen=True, extra="forbid"):
    """What is removed when it is old; null keeps everything.

    versions: number of newest model versions that stay after a retraining. Versions with an alias, and versions that
    somebody else registered, always stay. The others are removed with their files; the MLflow runs that trained them
    stay.
    days: after a scoring, older files in the folder of its output are removed: outputs of this model with their
    `.drift.json` (unless renamed), and the chunks of scorings that were stopped.
    """

    versions: int | None = Field(default=None, ge=1)
    days: float | None = Field(default=None, gt=0)


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", 'Field name "schema"', UserWarning)  # an old method of pydantic's

    class SchemaRule(BaseModel, frozen=True, extra="forbid"):
        """What to do with new rows whose values or missing values the `schema.yaml` of a mixed table does not allow."""

        schema: Literal["refuse", "warn", "ignore"] = "warn"  # type: ignore[assignment]


class ProductionConfig(SchemaRule, frozen=True, extra="forbid"):
    """How a model is kept fresh in production.

    model: its name in the registry. method: the key of its method in `methods`, which must be one of ours.
    holdout: share of the new rows that is never trained on, and on which both models are judged.
    least: number of new rows from which the model is retrained.
    factor, trials: the search around the champion tries `trials` points, each with the champion's parameters, or these
    divided or multiplied by `factor`.
    lost_share: when more than this share of the champion's rows is gone, nothing is trained until a person has looked;
    1 always trains.
    acknowledge: a person has looked at the data: this run, and later ones on the same data, go on despite the alarm.
    Meant for the command line; in a file it would turn all such alarms off.
    alarms: the events that are sent to the webhook in the variable LDSVM_WEBHOOK: a run that failed or crashed, drift,
    a challenger that was refused, promoted or put in shadow, a rollback.
    schema: what to do with new rows that the schema does not allow, see `SchemaRule`.
    drift: when data count as drifted. gate: the rules of promotion. score: what the flow score does.
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
