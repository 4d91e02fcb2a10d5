"""Small real tables as every method gets them: read by the pipeline's own reader, categories and gaps made numbers."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ldsvm.datasets import DataError, features
from ldsvm.datasets.column import INPUTS
from ldsvm.datasets.files.coding import frame
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.steps import parse
from ldsvm.experiment.draft import Found, find_out

FOLDER = "tables"
ROWS, TEST = 5_000, 0.3
TWICE = {"keel/german.dat"}  # the rows of german.csv
SMALL = ("iris", "wine")


@dataclass(frozen=True)
class Table:
    """A table that was read: its name, rows, and what was found out about its columns."""

    name: str
    found: Found

    def split(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Return X, y of the training rows and of the test rows, by classes; the steps are fitted to the first."""
        from sklearn.model_selection import train_test_split

        rows = self.found.rows
        y = np.unique(rows.y, return_inverse=True)[1]
        train, test = train_test_split(np.arange(len(y)), test_size=TEST, stratify=y, random_state=seed)
        roles = {column.name: column.role for column in rows.table or () if column.role in INPUTS}
        pipe = features.pipeline(
            parse(self.found.steps), kind=rows.kind, missing=self.found.missing, seed=seed, roles=roles or None
        )
        parts = [rows.X[part] if rows.table is None else frame(rows.X[part], rows.table) for part in (train, test)]
        X = features.fit_transform(pipe, parts[0], y=y[train].astype(str))
        return X, y[train], features.transform(pipe, parts[1]), y[test]


def tables(quick: bool, full: bool = False) -> list[Table]:
    """Return the tables of LDSVM_DATA_HOME, by name, of at most 5,000 rows each; two with `quick`, small ones.

    Raises `DataError` where that folder has none.
    """
    home = Path(os.environ.get("LDSVM_DATA_HOME", "data/raw")) / FOLDER
    files = sorted([*home.rglob("*.csv"), *home.rglob("*.dat")], key=lambda file: file.stem)
    files = [file for file in files if file.relative_to(home).as_posix() not in TWICE]
    if quick:
        with TemporaryDirectory() as folder:
            return [Table(name, find_out(FileSpec(str(_small(Path(folder), name)), label="label"))) for name in SMALL]
    if not files:
        raise DataError(f"{home}: has no tables (*.csv, *.dat); allowed: LDSVM_DATA_HOME, a folder that has them.")
    found = [Table(file.stem, find_out(FileSpec(str(file)))) for file in files]
    return found if full else [Table(table.name, _fewer(table.found)) for table in found]


def _small(folder: Path, name: str) -> Path:
    """Write one of scikit-learn's tables, with a column of words made from its first numbers, as CSV."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    size = np.where(X[:, 0] > np.median(X[:, 0]), "large", "small")
    lines = [",".join([*map(str, row), word, f"class {label}"]) for row, word, label in zip(X, size, y, strict=True)]
    file = folder / f"{name}.csv"
    head = ",".join([*(f"x{i}" for i in range(X.shape[1])), "size", "label"])
    file.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return file


def _fewer(found: Found) -> Found:
    """At most ROWS rows, by classes; the others are not used at all."""
    from sklearn.model_selection import train_test_split

    y = found.rows.y.astype(str)
    if len(y) <= ROWS:
        return found
    kept, _ = train_test_split(np.arange(len(y)), train_size=ROWS, stratify=y, random_state=0)
    return replace(found, rows=found.rows.take(np.sort(kept)))
