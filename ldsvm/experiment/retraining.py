"""What is new since a model was trained, what that calls for, and how old and new rows are divided. No MLflow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError, Split, files, splits
from ldsvm.datasets.moments import moments
from ldsvm.experiment.config import Config, MethodConfig
from ldsvm.experiment.drift import Drift, Profile, compare, profile
from ldsvm.experiment.prepared import Source
from ldsvm.experiment.production import ProductionConfig
from ldsvm.experiment.spaces import Scalar, StrategyConfig

WHOLE = ("n_basis", "n_components", "center_steps", "max_iter", "n_iter_no_change")  # parameters that are counts
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Mark:
    """How far the data of a training went, as plain values.

    time: the latest one, where the rows have times. files: the digests of the files by name, where there are files and
    no times. sha256: of the content.
    """

    sha256: str
    time: float | str | None = None
    files: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Decision:
    """What is to be done, and why: skip, retrain, or alarm, when a person should look first."""

    action: Literal["skip", "retrain", "alarm"]
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Both in one line."""
        return f"{self.action}: {' '.join(self.reasons)}"


def mark(config: Config, source: Source) -> Mark:
    """Return how far the data of an experiment go."""
    spec, digest = config.dataset.files, source.data.sha256
    if (times := _times(config, source)) is not None:
        latest = times.max()
        return Mark(digest, time=str(latest) if times.dtype.kind == "M" else float(latest))
    if spec is None:
        return Mark(digest)
    return Mark(digest, files={part.name: part.sha256 for part in files.inventory(spec)})


def fresh(config: Config, source: Source, then: Mark) -> Rows:
    """Return which of the wanted rows (N,) are newer than a training's data.

    Rows are newer than its latest time; without times, those of files that it did not have; of a data set of the
    catalogue all, when its content is another. Raises DataError for a file that was changed: which of its rows are new,
    nothing tells.
    """
    n = len(source.data.train)
    times = _times(config, source)
    if (times is None) != (then.time is None):
        raise DataError(
            f"dataset.time is {config.dataset.time or 'absent'}, which it was not when the champion was trained, so "
            "new rows cannot be told; allowed: as it was then, or another production.model."
        )
    if times is not None and then.time is not None:
        latest = np.datetime64(then.time) if isinstance(then.time, str) else then.time
        newer: Rows = times > latest
        return newer
    if config.dataset.files is not None and times is None and then.files is not None:
        return _in_new_files(config, source, then.files)
    return np.full(n, source.data.sha256 != then.sha256)


def _in_new_files(config: Config, source: Source, known: Mapping[str, str]) -> Rows:
    assert config.dataset.files is not None
    parts = files.inventory(config.dataset.files)
    for part in parts:
        if part.name in known and known[part.name] != part.sha256:
            raise DataError(
                f"{part.name} was changed since the champion was trained on it, so its new rows cannot be told; "
                "allowed: new files beside the old ones, or a column of times as dataset.time."
            )
    read = set(known.values())  # under another name by now, or copied
    fresh = [part.name not in known and part.sha256 not in read for part in parts]
    new = np.repeat(fresh, [part.rows for part in parts])
    found: Rows = new[source.kept]
    return found


def _times(config: Config, source: Source) -> NDArray[Any] | None:
    times = source.data.train.times
    return None if times is None else moments(times, f"dataset.time {config.dataset.time}", source.kept)


def decide(rules: ProductionConfig, new: int, drift: Drift | None) -> Decision:
    """Say what so many new rows, and how they drifted, call for. drift: None where there are too few."""
    if drift is None:
        return Decision("skip", (f"{new:,} new rows, production.least is {rules.least:,}.",))
    said = (f"{new:,} new rows.", *drift.sentences)
    if drift.share >= rules.drift.alarm_share:
        return Decision("alarm", (*said, f"That is {100 * drift.share:.0f} % of the inputs."))
    if drift.unknown and rules.drift.unknown_labels == "alarm":
        return Decision("alarm", said)
    return Decision("retrain", said)


def divide(config: Config, source: Source, new: Rows) -> Split:
    """Return a split whose test rows are a share of the new ones, and whose other rows train and validate.

    Where rows have groups, none has rows on both sides; else, where they have times, the latest ones judge and
    validate; else both are drawn in the proportions of the classes.
    """
    rules, how = config.production, config.split
    assert rules is not None
    places = np.flatnonzero(new)
    test = places[_share(config, source, places, rules.holdout)]
    rest = np.setdiff1d(np.arange(len(new)), test)
    groups = source.data.train.groups
    if groups is not None:  # of old rows too: what the challenger has seen of a group says something of the rest
        rest = rest[~np.isin(groups[rest], groups[test])]
    chosen = _share(config, source, rest, how.validation / (how.train + how.validation))
    return Split(np.delete(rest, chosen), rest[chosen], test, official_test=False)


def _share(config: Config, source: Source, places: NDArray[np.intp], share: float) -> NDArray[np.int64]:
    """Return which of these rows, (m,) numbers into the places, make a share of them."""
    rows, numbers = source.data.train, source.kept[places]
    sizes: dict[str, Any] = {"train": 1 - share, "validation": share}
    if rows.groups is not None:
        name = f"dataset.group {config.dataset.group}"
        split = splits.grouped(
            rows.groups[places], **sizes, seed=config.seed, y=rows.y[places], name=name, rows=numbers
        )
    elif (times := _times(config, source)) is not None:
        split = splits.ordered(times[places], **sizes, name=f"dataset.time {config.dataset.time}", rows=numbers)
    else:
        split = splits.stratified(rows.y[places], **sizes, seed=config.seed)
    return split.validation


def around(method: MethodConfig, params: Mapping[str, Any], rules: ProductionConfig) -> MethodConfig:
    """Return the method with a short search around the champion's parameters instead of its own.

    A searched number is divided by, left at, and multiplied by the factor, basis functions up to the gate's ceiling;
    what else is searched stays as the champion has it, and what the file fixes is as the file says.
    """
    near = {key: params[key] for key in method.space if _number(params.get(key))}
    space = {key: _near(key, value, rules) for key, value in near.items()}
    count = math.prod(len(values) for values in space.values())
    strategy = StrategyConfig(n_candidates=rules.trials) if count > rules.trials else None
    kept = {key: params[key] for key in method.space if key in params and key not in near}
    fixed = {**method.params, **kept}
    return method.model_copy(update={"params": fixed, "search": space, "strategy": strategy})


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _near(key: str, value: float, rules: ProductionConfig) -> list[Scalar]:
    moved = {value / rules.factor, value * rules.factor}
    if key not in WHOLE:
        return [*sorted({*moved, value})]
    ceiling = rules.gate.n_basis.threshold if key == "n_basis" and rules.gate.n_basis else math.inf
    return [*sorted({*(n for v in moved if (n := max(1, round(v))) <= ceiling), value})]


def described(pipeline: Any, rows: Any, y: NDArray[Any]) -> Profile:
    """Return the profile of a model's training. rows: as they came (N, D) or texts (N,). y: (N,) labels."""
    return profile(*_inputs(pipeline, rows), y, pipeline.transform(rows))


def drift(config: Config, pipeline: Any, then: Profile, rows: Any, y: NDArray[Any]) -> Drift:
    """Return how new rows differ from those that the model was trained on."""
    assert config.production is not None
    return compare(then, _inputs(pipeline, rows)[0], y, pipeline.transform(rows), config.production.drift)


def _inputs(pipeline: Any, rows: Any) -> tuple[Any, list[str]]:
    """Return what is compared: dense inputs as they came, else what the model's feature steps make of them."""
    if hasattr(rows, "columns"):
        return rows.to_numpy(), [str(name) for name in rows.columns]
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        return rows, [f"input {d}" for d in range(rows.shape[1])]
    X = pipeline[:-1].transform(rows) if hasattr(pipeline, "steps") else rows
    return X, [f"feature {d}" for d in range(X.shape[1])]
