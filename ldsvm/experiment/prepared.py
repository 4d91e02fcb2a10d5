"""The arrays every method of an experiment shares: loaded, split and made into features once, named by content."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.atomic import alone
from ldsvm.blocks.connection import ClusterFailed
from ldsvm.datasets import DataError, Dataset, Split, features, files, load, relabel, splits, stored_arrays
from ldsvm.datasets.column import INPUTS, Column
from ldsvm.datasets.files import snapshots
from ldsvm.datasets.files.roles import listed
from ldsvm.datasets.folds import cross_validated
from ldsvm.datasets.split_checks import check_parts
from ldsvm.datasets.summary import summarise
from ldsvm.datasets.table_schema import seen
from ldsvm.datasets.transformers import source_digest
from ldsvm.datasets.validation import clean, refuse
from ldsvm.datasets.words import slug
from ldsvm.experiment import schema_file
from ldsvm.experiment.config.places import check_deployed
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.config.split import CrossValidationConfig, SplitConfig
from ldsvm.experiment.feature_arrays import PARTS, PIPELINE, as_they_came, came, save_inputs, who_converts

FACTS, SPLIT, EXAMPLE = "facts.json", "split.npz", "example.parquet"
LAYOUT = 7  # raise it when what a folder holds, or how it is computed, changes
EXAMPLES = ("a first text to classify", "a second one")  # the posts of real people are shown nowhere


@dataclass(frozen=True)
class Prepared:
    """A folder of arrays and the facts about them.

    folder: holds X_{part} (n, D) float32, dense or CSR, and y_{part} (n,) for the parts train, validation and test,
    the row numbers of the split, and the fitted feature steps. digest: names the content (data, split, features).
    split: digest of the row numbers. seed: of the split and of everything fitted to it. sizes: rows per part.
    columns: names of the inputs as they came, None where they have none. features: what the steps did, one sentence
    each. notes: what was noticed about the data. summary: see `ldsvm.datasets.summary`. dataset: name, source,
    licence, citation, checksum of the content. table: name, role, reason and how (see `Column`) of each column of a
    mixed table, None for other inputs. schema: what columns with names had in training (see `Allowed`).
    """

    folder: Path
    digest: str
    split: str
    seed: int
    sizes: dict[str, int]
    n_features: int
    columns: list[str] | None
    features: list[str]
    notes: list[str]
    summary: dict[str, Any]
    dataset: dict[str, str]
    table: list[dict[str, str]] | None = None
    schema: list[dict[str, Any]] | None = None

    def arrays(self, part: str, labels: str) -> tuple[Any, np.ndarray]:
        """Return X (n, D), mapped from disk and read-only, and y (n,) in the given labelling."""
        return stored_arrays.load(self.folder, f"X_{part}"), relabel(np.load(self.folder / f"y_{part}.npy"), labels)

    def whole(self, model: Any) -> Any:
        """Return the pipeline from the data as they came to the predictions of a model fitted on these features."""
        from sklearn.pipeline import Pipeline

        from ldsvm.experiment.storing import loads

        file = self.folder / PIPELINE
        steps = [*(loads(file.read_bytes()).steps if file.exists() else ()), ("model", model)]
        if self.table is not None:
            from ldsvm.datasets.raw_table import RawTable

            roles = {column["name"]: column["role"] for column in self.table if column["role"] in INPUTS}
            days = {column["name"]: column["how"] for column in self.table if column["how"]}
            steps = [("read", RawTable(roles, days).fit(None)), *steps]
        elif self.columns:  # scikit-learn then refuses a table whose columns are others, or in another order
            steps[0][1].feature_names_in_ = np.array(self.columns, dtype=object)
        whole = Pipeline(steps) if file.exists() else model
        whole.schema_ = self.schema  # what the columns had, for those who check rows
        return whole

    def columns_of_features(self) -> list[str] | None:
        """Return the column that each feature is of; None where they have no names, or steps mix them."""
        from ldsvm.datasets.table_step import TableFeatures
        from ldsvm.experiment.storing import loads

        file = self.folder / PIPELINE
        steps: list[Any] = loads(file.read_bytes()).steps if file.exists() else []
        if len(steps) == 1 and isinstance(steps[0][1], TableFeatures):
            return steps[0][1].columns_of_features()
        return None if steps else self.columns

    def example(self) -> Any:
        """Return a few inputs as they came, before any feature step: (5, D), a table where the columns have names, or
        invented texts (2,).
        """
        if self.summary["kind"] == "text":
            return np.array(EXAMPLES, dtype=object)
        if self.table is not None:
            from pandas import read_parquet

            return read_parquet(self.folder / EXAMPLE)
        return as_they_came(np.load(self.folder / "example.npy"), self.columns)


def prepare(config: Config, on_split: Callable[[int], None] = lambda done: None) -> list[Prepared]:
    """Return the prepared data of an experiment, one for each split, from the cache where they are and intact.

    on_split: called with the number of each split, from 1, before it is prepared. Each folder appears under
    `paths.cache` complete or not at all. Raises DataError, one sentence for each fault.
    """
    source = load_source(config)
    found = []
    for i in range(config.split.count):
        on_split(i + 1)
        seed = config.seed + i
        found.append(divided(config, source, draw_split(config, source, seed), seed))
    return found


def save(prepared: Sequence[Prepared], file: Path) -> None:
    """Write the facts, not the arrays, as JSON: what one stage hands to the next. A table gets its schema too."""
    if prepared:
        schema_file.save(prepared[0].schema, file.parent)
    facts = [{**asdict(one), "folder": str(one.folder)} for one in prepared]
    file.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def read(file: Path) -> list[Prepared]:
    """Read what `save` wrote."""
    every = json.loads(file.read_text(encoding="utf-8"))
    return [Prepared(**{**facts, "folder": Path(facts["folder"])}) for facts in every]


@dataclass(frozen=True, eq=False)
class Source:
    """The wanted rows of a data set, their numbers in it (training and official test rows), and what was noticed."""

    data: Dataset
    kept: np.ndarray
    kept_test: np.ndarray | None
    notes: list[str]

    def numbers(self, split: Split) -> Split:
        """Return a split of the wanted rows by their numbers in the source."""
        rows = self.kept_test if split.official_test else self.kept
        assert rows is not None
        return replace(
            split, train=self.kept[split.train], validation=self.kept[split.validation], test=rows[split.test]
        )


def plain_files(config: Config) -> files.FileSpec | None:
    """Return the user's files of an experiment, an archive and the like as plain ones; None without `dataset.path`."""
    check_deployed(config, Path(os.environ.get("LDSVM_ROOT", ".")))
    spec = config.dataset.files
    return None if spec is None else snapshots.plain(spec, config.paths.cache / snapshots.FOLDER)


def load_source(config: Config, spec: files.FileSpec | None = None) -> Source:
    """Read and check an experiment's data. Raises DataError, one sentence for each fault.

    spec: what `plain_files` returned, where it is known.
    """
    wanted, cache = config.dataset, config.paths.cache
    check_deployed(config, Path(os.environ.get("LDSVM_ROOT", ".")))
    if wanted.files is not None:
        data = files.load(spec or wanted.files, name=slug(wanted.name), cache_dir=cache)
    else:
        data = load(wanted.name, cache_dir=cache, options=dict(wanted.options))
    train, test = (
        None
        if rows is None
        else clean(
            rows,
            missing=wanted.missing,
            unlabelled=wanted.unlabelled,
            classes=wanted.classes,
            what=what,
            official=official,
        )
        for rows, what, official in ((data.train, "data", False), (data.test, "official test set", True))
    )
    assert train is not None
    unused = config.split.test_ratio is not None and wanted.test_path is not None
    spare = ["The rows of dataset.test_path are not used: split.test is not official."] if unused else []
    roles = [] if train.rows.table is None else listed(train.rows.table)
    notes = [*data.notes, *spare, *roles, *refuse([*train.findings, *(test.findings if test else ())])]
    _check_costs(config, train.rows.y)
    data = replace(data, name=wanted.name, train=train.rows, test=test.rows if test else None)
    return Source(data, train.kept, test.kept if test else None, notes)


def _check_costs(config: Config, y: Any) -> None:
    """Refuse costs of mistakes for more than two classes."""
    for problem in config.problems if config.costs is not None else ():
        if (n := len(np.unique(relabel(y, problem.labels)))) > 2:
            raise DataError(
                f"costs are for two classes, but {problem.name} has {n:,}; leave costs out, or choose two classes with "
                "dataset.classes."
            )


def divided(config: Config, source: Source, split: Split, seed: int) -> Prepared:
    """Return the prepared data of one split of the wanted rows. seed: of the feature steps."""
    data, wanted = source.data, config.dataset
    # Everything that decides the content, and nothing else: another line of the file leaves the folder valid.
    key = [LAYOUT, data.sha256, wanted.missing, wanted.classes, split.digest(), seed, config.features]
    key += map(source_digest, config.transformers)
    digest = hashlib.sha256(json.dumps(key, default=asdict).encode()).hexdigest()[:12]
    folder = config.paths.cache / f"{slug(data.name)}-{digest}"
    if config.refresh or not stored_arrays.intact(folder):
        with _alone(folder.parent):  # another process may be at it, or have finished meanwhile
            intact = stored_arrays.intact(folder)
            if os.path.lexists(folder) and not intact:
                warnings.warn(
                    f"{folder} is rebuilt: its content has changed since it was written.", UserWarning, stacklevel=3
                )
            if config.refresh or not intact:
                stored_arrays.write(folder, lambda place: _fill(place, config, source, split, seed))
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    about = {name: getattr(data, name) for name in ("name", "source", "licence", "citation", "sha256")}
    sizes = {part: len(getattr(split, part)) for part in PARTS}
    notes = [*source.notes, *facts.pop("notes")]
    return Prepared(folder, digest, split.digest(), seed, sizes, dataset=about, notes=notes, **facts)


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    try:
        with alone(cache):
            yield
    except OSError as error:
        raise DataError(f"{cache}: prepared data cannot be kept there ({error}).") from error


def draw_split(config: Config, source: Source, seed: int) -> Split:
    """Return the row numbers of one split of the wanted rows, as the file asks. Raises DataError."""
    how, data = config.split, source.data
    rows = data.train
    if isinstance(how, CrossValidationConfig):
        fold = (seed - config.seed) % how.folds
        groups, name = (None, "") if rows.groups is None else _needed(rows.groups, "group", config)
        found = cross_validated(
            rows.y, folds=how.folds, validation=how.validation, seed=seed - fold, groups=groups, name=name,
            rows=source.kept,
        )  # fmt: skip
        return found[fold]
    sizes: dict[str, Any] = {"train": how.train, "validation": how.validation, **_test(how, data)}
    if how.kind == "grouped":
        groups, name = _needed(rows.groups, "group", config)
        return splits.grouped(groups, **sizes, seed=seed, y=rows.y, name=name, rows=source.kept)
    if how.kind == "time":
        times, name = _needed(rows.times, "time", config)
        return splits.ordered(times, **sizes, name=name, rows=source.kept)
    if how.kind == "random":
        return splits.shuffled(len(rows), **sizes, seed=seed)
    return {"stratified": splits.stratified, "balanced": splits.balanced}[how.kind](rows.y, **sizes, seed=seed)


def _test(how: SplitConfig, data: Dataset) -> dict[str, Any]:
    if how.test != "official":
        return {"test": how.test}
    if data.test is None:
        raise DataError(f'split.test is "official", but {data.name} has no official test set; allowed: a size.')
    return {"official": len(data.test)}


def _needed(values: Any, key: str, config: Config) -> tuple[Any, str]:
    """Return groups or times, and what messages call them."""
    if values is None:
        raise DataError(f"split.kind needs the key dataset.{key}: the name of a column of {config.dataset.name}.")
    return values, f"dataset.{key} {getattr(config.dataset, key) or ''}".strip()


def _fill(place: Path, config: Config, source: Source, split: Split, seed: int) -> None:
    """Write the arrays of one split, its row numbers, the fitted steps, and the facts about them."""
    data = source.data
    rows = {part: data.train.take(getattr(split, part)) for part in PARTS}
    if split.official_test:
        assert data.test is not None
        rows["test"] = data.test.take(split.test)
    findings = check_parts(
        rows["train"], rows["validation"], rows["test"], split=split, kept=source.kept, kept_test=source.kept_test
    )
    notes = refuse(findings)
    roles = None if data.train.table is None else {one.name: one.role for one in data.train.table if one.used}
    pipe = features.pipeline(
        config.features, kind=data.train.kind, missing=config.dataset.missing, seed=seed, roles=roles
    )
    try:
        described, n_features = save_inputs(place, pipe, rows, source.numbers(split), seed, who_converts(config))
    except ClusterFailed as error:
        raise DataError(str(error)) from error
    for part in PARTS:
        stored_arrays.save(place, f"y_{part}", _flat(rows[part].y))
    if data.train.table is not None:
        came(rows["train"].take(range(5))).to_parquet(place / EXAMPLE)
    elif data.train.kind != "text":
        first = rows["train"].X[:5]
        stored_arrays.save(place, "example", first.toarray() if data.train.kind == "sparse" else first)
    source.numbers(split).save(place / SPLIT)
    columns = None if data.train.columns is None else list(data.train.columns)
    facts = {"features": described, "notes": notes, "n_features": n_features, "columns": columns}
    facts["summary"] = summarise(data.train, data.test)
    if data.train.table is not None:
        facts["table"] = [{"name": c.name, "role": c.role, "reason": c.reason, "how": c.how} for c in data.train.table]
    if columns is not None:
        table = data.train.table or [Column(name, "number") for name in columns]
        facts["schema"] = [asdict(one) for one in seen(rows["train"].X, table)]
    (place / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _flat(y: np.ndarray) -> np.ndarray:
    """Return labels without Python objects, which a file could only hold pickled."""
    return y.astype(str) if y.dtype == object else y
