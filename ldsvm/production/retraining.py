"""Whether new rows are a reason to retrain, how they differ from the training, and the search around the champion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError
from ldsvm.datasets.column import Column
from ldsvm.datasets.read_tables import reader_of
from ldsvm.datasets.words import listing, shown
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config, MethodConfig
from ldsvm.experiment.config.spaces import Scalar, StrategyConfig
from ldsvm.experiment.feature_arrays import as_they_came
from ldsvm.production.drift import Drift, Profile, Seen, compare, count
from ldsvm.production.estimate import Estimate, Held, estimate, expected, prior_of
from ldsvm.production.input_counts import Inputs, count_bins, count_table
from ldsvm.production.new_rows import KEPT, Changes

WHOLE = ("n_basis", "n_components", "center_steps", "max_iter", "n_iter_no_change")  # parameters that are counts
JUDGES = 10  # rows of a holdout; fewer could hardly tell two models apart


class Alarm(RuntimeError):
    """A person must look at the data before anything is trained; the message gives the reasons, one per line."""

    @classmethod
    def of(cls, model: str, decision: Decision) -> Alarm:
        """Return the alarm that a decision on a model raises."""
        return cls("\n  ".join([f"{model} is not retrained, because of an alarm:", *decision.reasons]))


@dataclass(frozen=True)
class Decision:
    """What is to be done, and why: skip, retrain, or alarm, when a person should look first."""

    action: Literal["skip", "retrain", "alarm"]
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Action and reasons in one line."""
        return f"{self.action}: {' '.join(self.reasons)}"


def decide(rules: ProductionConfig, found: Changes, drift: Drift | None, cells: Sequence[str] = ()) -> Decision:
    """Decide what to do about changed rows and their drift; of an alarm its causes come first.

    drift: None if there are too few new rows. cells: sentences on what new rows hold.
    """
    every = [*_describe_changes(rules, found), *_describe_drift(rules, drift), *((text, False) for text in cells)]
    said, alarm = [sentence for sentence, _ in every], any(reason for _, reason in every)
    if alarm and not rules.acknowledge:
        said = [sentence for sentence, _ in sorted(every, key=lambda one: not one[1])]
        go_on = "Look at the data; if they are right, run again with production.acknowledge=true."
        return Decision("alarm", (*said, go_on))
    if alarm:
        said.append("A person has acknowledged this.")
    if drift is None:
        few = f"{found.new:,} new rows; production.least is {rules.least:,}."
        return Decision("skip", (few, *said[1:]))
    if (judges := round(rules.holdout * found.new)) < JUDGES:
        few = f"production.holdout={rules.holdout:g} leaves {judges:,} of them for the holdout; {JUDGES} are needed."
        return Decision("skip", (said[0], few, *said[1:]))
    return Decision("retrain", tuple(said))


Sentences = list[tuple[str, bool]]  # each with whether a person should look at the data


def _describe_changes(rules: ProductionConfig, found: Changes) -> Sentences:
    """Return sentences about rows that came and went."""
    said = [(f"{found.new:,} new rows.", False)]
    if found.repeated:
        what = "rows of new or changed files were known before, so they do not count as new."
        said.append((f"{found.repeated:,} {what}", False))
    if found.by_file:
        what = f"it was trained on more than {KEPT:,} rows, or by an earlier release"
        said.append((f"Rows of the champion that are now in other files count as new, since {what}.", False))
    if found.lost:
        gone, many = "rows are no longer there", found.lost > rules.lost_share * (found.before or 0)
        limit = f", more than production.lost_share of {rules.lost_share:g} allows" * many
        said.append((f"{found.lost:,} of the champion's {found.before:,} {gone}{limit}.", many))
    wrong = (
        " If the champion was trained with a wrong time, all later rows look late; in that case, go back with python "
        "-m flows rollback, or choose another production.model."
    )
    if found.late:
        late = "rows came late: they are not newer than the champion's, so they do not count as new."
        many = found.late >= rules.least and found.late > found.new
        said.append((f"{found.late:,} {late}{wrong * (many and found.beyond is None)}", many))
    if found.beyond is not None:
        latest = f"The champion's latest time, {found.beyond}, is later than all times in the data."
        said.append((f"{latest}{wrong}", True))
    return said


def _describe_drift(rules: ProductionConfig, drift: Drift | None) -> Sentences:
    """Return sentences about how new rows differ from the training."""
    if drift is None:
        return []
    said = [(sentence, False) for sentence in drift.sentences]
    if drift.unknown and rules.drift.unknown_labels == "alarm":
        said.append(("New labels raise an alarm (production.drift.unknown_labels is alarm).", True))
    if beyond := drift.beyond(rules.drift):
        said.append((beyond, True))
    return said


def search_around(method: MethodConfig, params: Mapping[str, Any], rules: ProductionConfig) -> MethodConfig:
    """Return the method with a short search around the champion's parameters instead of its own.

    A number that the file searches is tried at the champion's value, divided by the factor, and multiplied by it (basis
    functions up to the gate's ceiling). Other searched parameters keep the champion's value, fixed ones the file's.
    """
    near = {key: params[key] for key in method.space if _is_number(params.get(key))}
    space = {key: _near(key, value, rules) for key, value in near.items()}
    count = math.prod(len(values) for values in space.values())
    strategy = StrategyConfig(n_candidates=rules.trials) if count > rules.trials else None
    kept = {key: params[key] for key in method.space if key in params and key not in near}
    fixed = {**method.params, **kept}
    return method.model_copy(update={"params": fixed, "search": space, "strategy": strategy})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _near(key: str, value: float, rules: ProductionConfig) -> list[Scalar]:
    moved = {value / rules.factor, value * rules.factor}
    if key not in WHOLE:
        return [*sorted({*moved, value})]
    ceiling = rules.gate.n_basis.threshold if key == "n_basis" and rules.gate.n_basis else math.inf
    return [*sorted({*(n for v in moved if (n := max(1, round(v))) <= ceiling), value})]


def drift(config: Config, pipeline: Any, then: Profile, rows: Any, y: NDArray[Any]) -> Drift:
    """Return how new rows differ from those that the model was trained on. rows: as they came (n, D), or texts (n,)."""
    assert config.production is not None
    return compare(then, _seen(pipeline, then, rows, y), config.production.drift)


def estimated(config: Config, pipeline: Any, then: Profile, held: Held, rows: Any) -> Estimate:
    """Return the error that a scoring estimates for rows as they came, (n, D) or texts (n,), without their labels.

    held: see `estimate`. The model has probabilities.
    """
    assert config.production is not None
    rules, whole = config.production.drift, fill_missing(pipeline, in_training_order(pipeline, rows))
    P, answers = pipeline.predict_proba(whole), pipeline.predict(whole)
    found = compare(then, _seen(pipeline, then, rows, answers), rules, answers=True)
    sums = expected(P, np.searchsorted(pipeline.classes_, answers), prior_of(then, pipeline.classes_))
    return estimate(sums, found, rules, held)


def _seen(pipeline: Any, then: Profile, rows: Any, y: NDArray[Any]) -> Seen:
    rows, reader = in_training_order(pipeline, rows), reader_of(pipeline)
    if reader is not None and then.gaps:
        known = reader.transform(rows)
    else:
        known = countable(rows, lambda: _features(pipeline, rows))
    return count(then, known, y, pipeline.transform(fill_missing(pipeline, rows)))


def countable(rows: Any, features: Callable[[], Any]) -> Any:
    """Return rows, numbers or texts, as `count_inputs` counts them. features: gives them after the feature steps."""
    X = rows if is_compared_raw(rows) else features()
    return X.to_numpy() if hasattr(X, "columns") else X


def is_compared_raw(rows: Any) -> bool:
    """Return whether rows are compared as they came: dense numbers are, others only after the model's feature steps."""
    if hasattr(rows, "columns"):
        return all(kind.kind in "biuf" for kind in rows.dtypes)
    return isinstance(rows, np.ndarray) and rows.dtype != object


def count_inputs(rows: Any, table: Sequence[Column] | None = None) -> Inputs:
    """Return the counts of rows (N, D) as they came, a table or an array, or of sparse or dense features.

    table: the columns of a mixed table.
    """
    if table is not None:
        return count_table(rows, {column.name: column.role for column in table if column.used})
    if hasattr(rows, "columns"):
        return count_bins(rows.to_numpy(), [str(name) for name in rows.columns])
    return count_bins(rows, [f"{'input' if is_compared_raw(rows) else 'feature'} {d}" for d in range(rows.shape[1])])


def in_training_order(pipeline: Any, rows: Any) -> Any:
    """Return rows with the columns of a model's training, in its order. Raises DataError where columns are absent."""
    names = getattr(pipeline, "feature_names_in_", None)
    if names is not None and hasattr(rows, "columns"):
        if absent := [str(name) for name in names if name not in rows.columns]:
            raise DataError(
                f"{listing('Column', absent)} {'is' if len(absent) == 1 else 'are'} missing; the champion needs "
                f"{'it' if len(absent) == 1 else 'them'}: give all its columns, or choose another production.model."
            )
        return rows[list(names)]
    wanted, found = getattr(pipeline, "n_features_in_", None), None if rows.ndim == 1 else rows.shape[1]
    if found is not None and wanted is not None and wanted != found:
        raise DataError(
            f"The data have {found:,} columns, but the champion was trained with {wanted:,}; give as many, or choose "
            "another production.model."
        )
    return rows


def check_labels(known: NDArray[Any], y: NDArray[Any]) -> None:
    """Raise DataError unless labels (N,) are of the kind that a model answers: 1 and "1" never count as equal."""
    was, now = ("text" if labels.dtype.kind in "OU" else "numbers" for labels in (known, y))
    if was != now:
        raise DataError(
            f"Labels are {now}, such as {shown(y[0])}, but were {was}, such as {shown(known[0])}, when the champion "
            "was trained; give labels as they were then, or choose another production.model."
        )


def fill_missing(pipeline: Any, rows: Any) -> Any:
    """Return rows with missing values replaced by the medians of these rows, unless the model imputes them itself."""
    from sklearn.impute import SimpleImputer

    if (
        rows.ndim == 1
        or reader_of(pipeline) is not None
        or any(isinstance(step, SimpleImputer) for _, step in getattr(pipeline, "steps", ()))
    ):
        return rows
    values = rows.to_numpy() if hasattr(rows, "columns") else rows
    if not np.isnan(getattr(values, "data", values) if hasattr(values, "tocsr") else values).any():
        return rows
    whole = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(values)
    return as_they_came(whole, list(rows.columns) if hasattr(rows, "columns") else None)


def _features(pipeline: Any, rows: Any) -> Any:
    return pipeline[:-1].transform(rows) if hasattr(pipeline, "steps") else rows
