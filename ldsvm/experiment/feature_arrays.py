"""The inputs of an experiment after its feature steps, written part by part to the folder of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.datasets import Rows, Split, features, large, splits, stored_arrays
from ldsvm.datasets.column import Column
from ldsvm.datasets.files.coding import frame
from ldsvm.experiment.config.executors import WORKERS
from ldsvm.experiment.config.schema import Config

PARTS = ("train", "validation", "test")
PIPELINE = "features.skops"
FITTED = 200_000  # training rows of a table, or of large dense inputs, that the feature steps are fitted to
BLOCK = 50_000  # rows of a table that become features together

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def as_they_came(X: Any, columns: Sequence[str] | None, table: Sequence[Column] | None = None) -> Any:
    """Return inputs as a table where their columns have names, and as they are otherwise. table: see `Rows`."""
    if table is not None:
        return frame(X, table)
    if not columns:
        return X
    from pandas import DataFrame

    return DataFrame(X, columns=list(columns))


def who_converts(config: Config) -> Each:
    """Return what applies a function to blocks of rows, in order: `map`, or Ray where a method is fitted there."""
    for method in config.methods.values():
        if method.executor is not None and method.executor.kind == "ray":
            from ldsvm.blocks.each_on_ray import each_on_ray

            return partial(each_on_ray, address=method.executor.address, workers=method.executor.workers or WORKERS)
    return map


def save_inputs(
    place: Path, pipe: Any, rows: dict[str, Rows], numbers: Split, seed: int, each: Each
) -> tuple[list[str], int]:
    """Write the inputs after the feature steps, which validation and test have no say in.

    Return what the steps did, one sentence each, and the number of features. each: see `who_converts`.
    """
    if pipe is None:
        for part in PARTS:
            X = rows[part].X
            if large.in_file(X):
                out = stored_arrays.create(place, f"X_{part}", *X.shape)
                for start in range(0, len(X), BLOCK):
                    out[start : start + BLOCK] = X[start : start + BLOCK]
            else:
                stored_arrays.save(place, f"X_{part}", X)
        return [], int(rows["train"].X.shape[1])
    from ldsvm.experiment.storing import dumps

    train = rows["train"]
    if train.table is not None or large.in_file(train.X):
        described, columns = _save_by_blocks(place, pipe, rows, numbers, seed, each)
    else:
        X = features.fit_transform(pipe, train.X, numbers.train, y=train.y)
        stored_arrays.save(place, "X_train", X)
        for part in PARTS[1:]:
            stored_arrays.save(place, f"X_{part}", features.transform(pipe, rows[part].X, rows=getattr(numbers, part)))
        described, columns = features.describe(pipe), int(X.shape[1])
    (place / PIPELINE).write_bytes(dumps(pipe))
    return described, columns


def _save_by_blocks(
    place: Path, pipe: Any, rows: dict[str, Rows], numbers: Split, seed: int, each: Each
) -> tuple[list[str], int]:
    """Fit the steps to some training rows, or to all where these are few, and write all rows block by block."""
    train, n = rows["train"], len(rows["train"])
    fitted = np.arange(n) if n <= FITTED else splits.stratified(train.y, train=FITTED, validation=0, seed=seed).train
    some = train.take(fitted)
    X = features.fit_transform(pipe, came(some), numbers.train[fitted], y=some.y)
    columns = int(X.shape[1])
    left = {part: np.arange(len(rows[part])) for part in PARTS}
    out = {part: stored_arrays.create(place, f"X_{part}", len(rows[part]), columns) for part in PARTS}
    out["train"][fitted] = X  # target encoding gives rows that it was fitted to other values than `transform`
    left["train"] = np.setdiff1d(left["train"], fitted, assume_unique=True)
    del X, some
    blocks = [(part, left[part][start : start + BLOCK]) for part in PARTS for start in range(0, len(left[part]), BLOCK)]
    cut = ((came(rows[part].take(which)), getattr(numbers, part)[which]) for part, which in blocks)
    found = (each if len(blocks) > 1 else map)(partial(_transformed, pipe), cut)
    for (part, which), converted in zip(blocks, found, strict=True):
        out[part][which] = converted
    about = f"fitted to {len(fitted):,} of {n:,} training rows, drawn in proportion to the classes"
    return features.describe(pipe) + ([about] if len(fitted) < n else []), columns


def _transformed(pipe: Any, block: tuple[Any, Any]) -> Any:
    X, numbers = block
    return features.transform(pipe, X, rows=numbers)


def came(rows: Rows) -> Any:
    """Return the inputs of rows as they came, see `as_they_came`."""
    return as_they_came(rows.X, None, rows.table)
