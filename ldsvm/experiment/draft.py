"""A first experiment file for a user's own data: what is found in the data, and a search that suits their size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ldsvm.datasets import features
from ldsvm.datasets.column import INPUTS, Column
from ldsvm.datasets.dataset import DataError, Rows, absent
from ldsvm.datasets.files import FileSpec, snapshots
from ldsvm.datasets.files import read as read_files
from ldsvm.datasets.files.coding import frame
from ldsvm.datasets.files.dialect import look
from ldsvm.datasets.files.faults import names as listed_names
from ldsvm.datasets.files.roles import ID, infer_role
from ldsvm.datasets.files.spellings import Spelling
from ldsvm.datasets.flaws import flaws
from ldsvm.datasets.steps import parse
from ldsvm.datasets.validation import counting
from ldsvm.datasets.words import shown

MANY_ROWS = 400_000  # more are read in blocks by all methods
MOST_ROWS = 20_000  # of which the features are counted
TARGETS = ("label", "class", "target", "outcome", "y")
FEWEST = 5  # rows of a class, on average: a label with fewer is a number to estimate
MOST_COMPONENTS = 100
CODE = re.compile(r"(?i)(^|[_ .-])(zip|plz|postal|postcode|code|type)([_ .-]|$)|code$")
FEW_CODES = 10  # different whole numbers that may be codes
GROUPS = 20  # values that a column of groups has at least, and rows of one group at most


@dataclass(frozen=True, eq=False)
class Found:
    """What is known of a user's data.

    spec: how they are read. rows: all of them. columns: with their roles, also those left out; empty where they have
    no names. steps: the feature steps that make numbers of scale one of them, and width: how many. missing: the value
    of dataset.missing. why_group: why the split is by dataset.group, empty where it is not. sentences: on how the
    files are written.
    """

    spec: FileSpec
    rows: Rows
    columns: tuple[Column, ...]
    steps: list[Any]
    width: int
    missing: str
    why_group: str = ""
    sentences: tuple[str, ...] = ()

    @property
    def codes(self) -> list[str]:
        """Names of the numbers that may be codes: whole ones with few values, or with such a name."""
        X, names = self.rows.X, self.rows.columns or ()
        numbers = {column.name for column in self.columns if column.role == "number"}
        found = []
        for place, name in enumerate(names):
            if name in numbers and self.rows.kind in ("dense", "table"):
                values = np.unique(X[~np.isnan(X[:, place]), place])
                whole = not (values % 1).any()
                found += [name] if whole and (CODE.search(name) or 3 <= len(values) <= FEW_CODES) else []
        return found

    @property
    def streams(self) -> bool:
        """Whether the rows are too many for methods that hold all of them."""
        return self.rows.kind in ("table", "dense") and len(self.rows) > MANY_ROWS

    @property
    def dates(self) -> list[str]:
        """Names of the inputs that are dates."""
        return [column.name for column in self.columns if column.role == "date"]


def find_out(spec: FileSpec, header: bool | None = None) -> Found:
    """Read a user's data as they are written, and find out what the columns are.

    spec: path, and, if known, format, label, group and time. header: see `look`. Raises `DataError`, one sentence, for
    what cannot be read, for a label that no column is named, and for one that has nearly as many values as rows.
    """
    with TemporaryDirectory() as folder:
        given, spec = spec, snapshots.plain(replace(spec, header=header is not False), Path(folder))
        try:
            found = _looked_over(spec, header)
        except DataError as error:  # what was unpacked has a name of its own
            raise DataError(str(error).replace(spec.path, given.path)) from None
    source = {field: getattr(given, field) for field in ("path", "sheet", "table", "query", "snapshots")}
    return replace(found, spec=replace(found.spec, **source, header=found.spec.header and header is not False))


def _looked_over(spec: FileSpec, header: bool | None) -> Found:
    looked = look(spec, header)
    spec, columns = looked.spec, looked.columns
    if columns is not None and spec.label is None:
        if not any(map(len, next(iter(columns.values()), []))):
            raise DataError(f"{spec.path} holds column names but no rows; at least one row is needed.")
        raise DataError(_ask_for_label(spec, list(columns)))
    out = {column.name: column for column in looked.left_out}
    rows, why = read_files(spec).train, ""
    _check_classes(rows, spec)
    if columns is not None:
        spec, found, why = _decide(spec, rows, columns)
        if spec.drop != looked.spec.drop or spec.group != looked.spec.group:
            rows = read_files(spec).train
        out |= {column.name: column for column in found}
    steps = _steps(rows)
    return Found(spec, rows, tuple(out.values()), steps, _width(rows, steps), _missing(rows), why, looked.sentences)


def _ask_for_label(spec: FileSpec, names: list[str]) -> str:
    likely = next((name for name in names if name.lower() in TARGETS), names[-1])
    return (
        f"{spec.path} has the columns {listed_names(names)}; say which one holds the classes, such as --label {likely}."
    )


def _decide(spec: FileSpec, rows: Rows, columns: Mapping[str, Any]) -> tuple[FileSpec, list[Column], str]:
    """Return the spec with more columns to drop, or a column of groups; the columns with roles; and why by groups."""
    used = {spec.label, spec.group, spec.time, *spec.drop}
    spelling = Spelling.of(spec.decimal, spec.missing_values, thousands=spec.thousands)
    if rows.table is not None:
        found = {column.name: column for column in rows.table}
    else:
        found = {name: infer_role(name, pieces, spelling) for name, pieces in columns.items() if name not in used}
    counts = {rows.columns[place] for place in counting(rows)} if rows.columns is not None else set()
    counts = {name for name in counts if name in found and found[name].role == "number"}
    if all(name in counts for name, column in found.items() if column.used):
        counts = set()  # nothing would be left
    found |= {name: Column(name, "identifier", reason="it numbers the rows") for name in counts}
    # Of a table of numbers alone nothing is left out that the file does not name; of others, identifiers are.
    out = [name for name, column in found.items() if column.role == "identifier" and rows.table is None]
    spec = replace(spec, drop=(*spec.drop, *dict.fromkeys([*out, *sorted(counts)])))
    if spec.group is not None or spec.time is not None:
        return spec, list(found.values()), ""
    group, why = _likely_group(rows, [name for name, column in found.items() if column.used])
    return replace(spec, group=group), [column for column in found.values() if column.name != group], why


def _likely_group(rows: Rows, names: list[str]) -> tuple[str | None, str]:
    """Return a column whose name is that of a key, with values that come back, and the reason; None without one."""
    for place, name in enumerate(rows.columns or ()):
        if name not in names or not ID.search(name):
            continue
        values = len(np.unique(rows.X[:, place]))
        if max(GROUPS, len(rows) / GROUPS) <= values <= len(rows) / 2:
            return name, (
                f"{values:,} values in {len(rows):,} rows, so rows with the same value seem to belong together; if "
                "they do not, remove the line group and write kind: stratified"
            )
    return None, ""


def _check_classes(rows: Rows, spec: FileSpec) -> None:
    known = rows.y[~absent(rows.y)]
    classes = len(set(known.tolist()))
    if classes < 2 or classes * FEWEST > len(known):
        what = f"column {shown(spec.label)}" if spec.label else "the label"
        raise DataError(
            f"{spec.path}: {what} has {classes:,} different values in {len(known):,} rows; allowed: at least 2 "
            f"classes with on average {FEWEST} rows each."
        )


def _missing(rows: Rows) -> str:
    return "impute" if rows.kind == "dense" and len(flaws(rows).missing.columns) else "refuse"


def _steps(rows: Rows) -> list[Any]:
    """Return the feature steps for these rows; components are half as many as a part of them has, at most."""
    if rows.kind in ("table", "dense"):
        return ["table"] if rows.kind == "table" else ["scale"]
    tfidf = [{"tfidf": {"min_df": 3, "sublinear_tf": True}}] if rows.kind == "text" else []
    columns = rows.n_features or 0
    if rows.kind == "text":
        pipe = features.pipeline(parse(tfidf), kind="text", missing="refuse", seed=0)
        columns = features.fit_transform(pipe, rows.X[:MOST_ROWS]).shape[1]
    return [*tfidf, {"svd": {"n_components": max(1, min(MOST_COMPONENTS, columns // 2, len(rows) // 4))}}]


def _width(rows: Rows, steps: list[Any]) -> int:
    """Return how many numbers the feature steps make of a row."""
    if rows.kind == "dense":
        return int(rows.X.shape[1])
    if rows.kind in ("sparse", "text"):
        return int(steps[-1]["svd"]["n_components"])
    known = np.flatnonzero(~absent(rows.y))[:: max(1, len(rows) // MOST_ROWS)]
    some = rows.take(known)
    assert some.table is not None
    roles = {column.name: column.role for column in some.table if column.role in INPUTS}
    pipe = features.pipeline(parse(steps), kind="table", missing="refuse", seed=0, roles=roles)
    y = some.y.astype(str) if some.y.dtype == object else some.y
    return int(features.fit_transform(pipe, frame(some.X, some.table), y=y).shape[1])


def name_of(path: str) -> str:
    """Return a name for the experiment of a file, a folder or a glob.

    Examples
    --------
    >>> name_of("data/My Table.csv.gz"), name_of("patients/*.parquet"), name_of("2024/")
    ('my_table', 'patients', '2024')
    """
    place = Path(path)
    last = place.name.partition(".")[0]
    while re.search(r"[*?\[]", last) and place != place.parent:
        place = place.parent
        last = place.name.partition(".")[0]
    plain = re.sub(r"[^a-z0-9_-]+", "_", last.lower()).strip("_-")
    return plain[:40] or "table"
