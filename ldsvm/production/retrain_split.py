"""The split of a retraining: which old and new rows train, validate, and judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError, Split, splits
from ldsvm.datasets.duplicates import keys_of
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.config.split import SplitConfig
from ldsvm.production.new_rows import Reading, Rows
from ldsvm.production.retraining import JUDGES


def divide(config: Config, reading: Reading, new: Rows) -> tuple[Split, list[str]]:
    """Return a split whose test rows are a share of the new ones and whose other rows train and validate, and remarks.

    Where rows have groups, none has rows on both sides, and groups without old rows judge if there are enough; else,
    where rows have times, the latest ones judge and validate, unless far too many are of the latest time, or only they
    have some of the labels; else both are drawn in the proportions of the classes. Rows of labels that are too rare for
    all parts train. Files that are there twice are taken once, and no row judges whose inputs equal those of another
    part or of an old row. Raises DataError where a part stays empty, or sizes are a count and a fraction.
    """
    rules = config.production
    assert rules is not None
    _check_sizes(config)
    groups, said = reading.source.data.train.groups, []
    split = _divided(config, reading, new, by_time=reading.times is not None and groups is None)
    if split is None or (groups is None and reading.times is not None and _untrained(reading, split).any()):
        why = "too many rows have the latest time" if split is None else "only the latest rows have some of the labels"
        said.append(f"Rows were split at random, not by dataset.time {config.dataset.time}, since {why}.")
        split = _divided(config, reading, new, by_time=False)
    assert split is not None
    split, seen = _unseen(reading, split)
    if seen:
        said.append(
            f"{seen:,} rows of the holdout were left out, since they equal rows for training or validation, or old "
            "rows."
        )
    _check(rules.holdout, new, split, JUDGES if seen else 1)
    split, rare = _training_knows_all(reading, split)
    if rare:
        said.append(
            f"Labels with too few rows for the holdout, so that all their rows are for training: {', '.join(rare)}."
        )
        _check(rules.holdout, new, split)
    if groups is not None and (known := int(np.isin(groups[split.test], groups[_old(reading, new)]).sum())):
        said.append(
            f"{known:,} of the {len(split.test):,} rows of the holdout belong to groups that the champion was trained "
            "on, so it may look better than it is."
        )
    return split, said


def _old(reading: Reading, new: Rows) -> Rows:
    return ~new & ~reading.copies


def _check_sizes(config: Config) -> None:
    how = config.split
    assert isinstance(how, SplitConfig)
    if isinstance(how.train, int) != isinstance(how.validation, int):
        raise DataError(
            f"split.train={how.train!r}, split.validation={how.validation!r}; allowed: two counts, or two fractions "
            "between 0 and 1."
        )


def _check(holdout: float, new: Rows, split: Split, judges: int = 1) -> None:
    """Raise DataError for a part without a row, or a holdout with fewer rows than needed."""
    if min(len(split.train), len(split.validation)) == 0 or len(split.test) < judges:
        sizes = (
            f"{len(split.train):,} training, {len(split.validation):,} validation and {len(split.test):,} holdout rows"
        )
        equal = ", without those that equal other rows" if judges > 1 else ""
        raise DataError(
            f"production.holdout={holdout:g} with {new.sum():,} new and {(~new).sum():,} old rows gives {sizes}"
            f"{equal}; allowed: a share that leaves at least one row for each"
            f"{f', and {judges} for the holdout' if judges > 1 else ''}."
        )


def _unseen(reading: Reading, split: Split) -> tuple[Split, int]:
    """Return the split without test rows whose inputs equal those of a row outside the test set, and their number."""
    keys, others = keys_of(reading.source.data.train.X), ~reading.copies
    others[split.test] = False
    seen = np.isin(keys[split.test], keys[others])
    return replace(split, test=split.test[~seen]), int(seen.sum())


def _training_knows_all(reading: Reading, split: Split) -> tuple[Split, list[str]]:
    """Return the split with all rows of labels that training lacks moved there, in whole groups; and those labels."""
    data = reading.source.data.train
    move = _untrained(reading, split)
    if not move.any():
        return split, []
    names = sorted(map(str, np.unique(data.y[move])))
    if data.groups is not None:
        move = np.isin(data.groups, data.groups[move])
    validation, test = split.validation[~move[split.validation]], split.test[~move[split.test]]
    moved = [part[move[part]] for part in (split.validation, split.test)]
    return Split(np.sort(np.concatenate([split.train, *moved])), validation, test, official_test=False), names


def _untrained(reading: Reading, split: Split) -> Rows:
    """Return which rows (N,) have a label that no training row of the split has, though others of it have."""
    y = reading.source.data.train.y
    others = np.zeros(len(y), bool)
    others[np.concatenate([split.validation, split.test])] = True
    found: Rows = others & ~np.isin(y, np.unique(y[split.train]))
    return found


def _divided(config: Config, reading: Reading, new: Rows, *, by_time: bool) -> Split | None:
    """Return a split; None if by time no two parts can be made, since too many rows have the latest time."""
    rules, how = config.production, config.split
    assert rules is not None and isinstance(how, SplitConfig)  # a file with production has no other
    groups = reading.source.data.train.groups
    places, share = np.flatnonzero(new), rules.holdout
    if groups is not None:
        strange = places[~np.isin(groups[places], groups[_old(reading, new)])]
        if len(strange) > (n := round(share * len(places))) and len(np.unique(groups[strange])) > 1:
            places, share = strange, n / len(strange)
    which = _share(config, reading, places, share, by_time)
    if which is None:
        return None
    test = places[which]
    rest = np.setdiff1d(np.flatnonzero(~reading.copies), test)
    if groups is not None:  # old rows too: a challenger that has seen part of a group knows something of the rest
        rest = rest[~np.isin(groups[rest], groups[test])]
    chosen = _share(config, reading, rest, how.validation / (how.train + how.validation), by_time)
    return None if chosen is None else Split(np.delete(rest, chosen), rest[chosen], test, official_test=False)


def _share(
    config: Config, reading: Reading, places: NDArray[np.intp], share: float, by_time: bool
) -> NDArray[np.int64] | None:
    """Return a share of these rows, as (m,) indices into places; None if too many rows have the latest time."""
    rows, numbers = reading.source.data.train, reading.source.kept[places]
    n = round(share * len(places))
    if not 0 < n < len(places):  # `divide` raises the error
        return np.arange(min(n, len(places)), dtype=np.int64)
    sizes: dict[str, Any] = {"train": len(places) - n, "validation": n}
    if rows.groups is not None:
        name = f"dataset.group {config.dataset.group}"
        return splits.grouped(
            rows.groups[places], **sizes, seed=config.seed, y=rows.y[places], name=name, rows=numbers
        ).validation
    if not by_time:
        return splits.stratified(rows.y[places], **sizes, seed=config.seed).validation
    assert reading.times is not None
    times = reading.times[places]
    last = np.flatnonzero(times == times.max())
    if len(last) <= n:  # equal times stay together, in the earlier part
        return splits.ordered(times, **sizes, name=f"dataset.time {config.dataset.time}", rows=numbers).validation
    return last if len(last) <= 2 * n and len(last) < len(places) else None
