"""The rows that a model scores: which files they are in, checked, and chunk by chunk as the model takes them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.files import FileSpec, faults, numbers, snapshots, values
from ldsvm.datasets.files.coding import asked_of, coded_table, frame
from ldsvm.datasets.files.databases import is_address
from ldsvm.datasets.files.find import TABLES, find, holds
from ldsvm.datasets.files.spellings import Spelling
from ldsvm.datasets.files.streams import Stream, stream
from ldsvm.datasets.read_tables import reader_of
from ldsvm.datasets.table_schema import Allowed, Check
from ldsvm.datasets.words import row_list, shown
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.config.yaml_merge import found as looked_for
from ldsvm.experiment.feature_arrays import as_they_came
from ldsvm.production.schema_check import allowed, file_of

OWN = ("class", "margin", "model")  # columns of the output beside z0, z1, … and those that are kept
OUTPUTS = (".parquet", ".csv")
HEADER = 1_000_000  # characters of a CSV file that are looked at for its header
USUAL = Spelling(section="production.score")


@dataclass(frozen=True)
class Scoring:
    """What is scored. input: a table, a folder or a glob of tables. output: a file that ends in .parquet or .csv.

    columns: the inputs in the order of the training, or None for texts in the column `text`. keep: columns of the input
    that the output has too, such as a number of the row; from files of text they come out as they are written, quoted
    in a CSV output. escape_formulas: see `ScoreConfig`. rows: of a chunk. model: its name and version; missing: whether
    inputs may lack values; source: where the model's files are, so that chunks of a model of the same name
    in another store are not reused. format, header, encoding: as in `FileSpec`. roles, days: of the columns of a
    mixed table, see `RawTable`; none where the inputs are numbers or texts. allowed, edited: what these columns may
    hold, and whether people say so, in schema_file; schema: what is done about rows that hold something else.
    """

    input: str
    output: Path
    columns: tuple[str, ...] | None
    text: str | None
    keep: tuple[str, ...]
    rows: int
    model: str
    missing: bool = False
    source: str = ""
    format: str | None = None
    header: bool = True
    encoding: str | None = None
    escape_formulas: bool = True
    spelling: Spelling = USUAL
    roles: Mapping[str, str] = field(default_factory=dict)
    days: Mapping[str, str] = field(default_factory=dict)
    allowed: tuple[Allowed, ...] = ()
    edited: bool = False
    schema: str = "warn"
    schema_file: str = "schema.yaml"

    @classmethod
    def of(cls, config: Config, model: Any, name: str, source: str, root: Path) -> Scoring:
        """Return what a file asks of the model `name`. root: the project's folder. Raises DataError."""
        assert config.production is not None and config.production.score is not None
        dataset, asked = config.dataset, config.production.score
        names = getattr(model, "feature_names_in_", None)
        if names is None and dataset.text is None:
            raise DataError(f"{name} was trained on inputs without names; a file can be scored by names only.")
        spec, output = places(config, root)
        spec = snapshots.plain(spec, config.paths.cache / snapshots.FOLDER)
        reader = reader_of(model)
        may, edited = allowed(config, model)
        return cls(
            input=spec.path, output=output,
            columns=None if names is None else tuple(map(str, names)), text=dataset.text,
            keep=asked.keep, rows=asked.rows, model=name, missing=dataset.missing == "impute",
            roles=dict(reader.roles) if reader else {}, days=dict(reader.days or {}) if reader else {},
            source=source, format=spec.format, encoding=spec.encoding, header=spec.header,
            escape_formulas=asked.escape_formulas,
            spelling=asked.spelling(dataset.decimal, dataset.missing_values, dataset.thousands),
            allowed=may, edited=edited, schema=config.production.schema, schema_file=str(file_of(config)),
        )  # fmt: skip


def places(config: Config, root: Path) -> tuple[FileSpec, Path]:
    """Return input and output of production.score: the input is looked for like dataset.path, in the working directory
    and then in `root`, the project's folder; the output is written below the working directory.
    """
    data, asked = config.dataset, config.production.score if config.production else None
    assert asked is not None
    given = asked.input if is_address(asked.input) else str(Path(asked.input).expanduser())
    table, query = (data.table, data.query) if asked.table is asked.query is None else (asked.table, asked.query)
    spec = FileSpec(
        looked_for(given, root) or given,
        format=asked.format or data.format,
        header=data.header if asked.header is None else asked.header,
        encoding=asked.encoding or data.encoding,
        sheet=asked.sheet or data.sheet,
        table=table,
        query=query,
    )
    return spec, Path.cwd() / Path(asked.output).expanduser()


@dataclass(frozen=True)
class Part:
    """Rows of one file, all in one batch. row: number of the first one in that file."""

    stream: Stream
    row: int
    batch: Any

    def cut(self, start: int, rows: int | None = None) -> Part:
        """Return `rows` of the rows from `start` on, or all from there on."""
        return replace(self, row=self.row + start, batch=self.batch.slice(start, rows))


def opened(job: Scoring) -> list[Stream]:
    """Return the files of the input; raise DataError unless each has the columns, and the output is elsewhere."""
    _check_names(job)
    found, _ = find(FileSpec(job.input, format=job.format))
    if found.format not in TABLES:
        raise DataError(f"{job.input}: {found.format} files cannot be scored; allowed: {', '.join(TABLES)}.")
    if holds(job.input, job.output):  # another run would score the answers of this one
        raise DataError(f"{job.output} would be read as a part of the input {job.input}; choose another output.")
    if job.output.exists() and not is_output(job.output):
        raise DataError(
            f"{job.output} exists and is not an output of a scoring, so it is not overwritten; choose another name."
        )
    streams = [
        stream(file, found.format, header=job.header, encoding=job.encoding, values=found.values.get(file))
        for file in found.files
    ]
    for one in streams:
        _check_there(one, job)
    return streams


def _check_names(job: Scoring) -> None:
    if job.output.suffix not in OUTPUTS:
        raise DataError(f"{job.output}: the output's name must end in {' or '.join(OUTPUTS)}.")
    if job.output.is_dir():
        raise DataError(f"{job.output}: is a folder; allowed: the name of a file.")
    if taken := sorted(name for name in job.keep if name in OWN or re.fullmatch(r"z\d+", name)):
        raise DataError(
            f"production.score.keep has {shown(taken[0])}, a name that the output uses for its own columns; rename it "
            "in the input."
        )


def is_output(file: Path) -> bool:
    """Return whether a file is, by its columns, the output of a scoring, which may be replaced."""
    try:
        if not file.is_file():
            return False  # a pipe, which would wait
        if file.suffix == ".parquet":
            names = optional("pyarrow.parquet").read_schema(file).names
        else:
            with file.open(encoding="utf-8", newline="") as text:
                names = next(csv.reader(io.StringIO(text.read(HEADER), newline="")), [])
    except (OSError, ValueError, csv.Error, optional("pyarrow").ArrowException):
        return False
    own = names[names.index("class") :] if "class" in names else []
    return own[:2] == ["class", "margin"] and own[2:] == [*(f"z{place}" for place in range(len(own) - 3)), "model"]


def _check_there(one: Stream, job: Scoring) -> None:
    absent = [name for name in _read(one, job) if name not in one.types]
    if absent:
        one_only = len(absent) == 1
        what = f"column {shown(absent[0])} is" if one_only else f"columns {faults.names(absent)} are"
        kept = absent[0] in job.keep and absent[0] not in _needed(one, job)
        why = "production.score.keep names" if kept else "the model needs"
        raise DataError(
            f"{one.file}: {what} missing; {why} {'it' if one_only else 'them'} "
            f"(the columns are {faults.names([*one.types])})."
        )


def _read(one: Stream, job: Scoring) -> list[str]:
    """Return the columns of a file that are read, each once."""
    return list(dict.fromkeys([*_needed(one, job), *job.keep]))


def _needed(one: Stream, job: Scoring) -> list[str]:
    return [*_sources(one, job), *([job.text] if job.text else [])]


def _sources(one: Stream, job: Scoring) -> list[str]:
    """Return the columns that hold the model's inputs: a[0], a[1] and so on may be in a column a of lists."""
    found = []
    for name in job.columns or ():
        lists = re.sub(r"\[\d+\]$", "", name)
        found.append(lists if name not in one.types and lists in one.types else name)
    return list(dict.fromkeys(found))


def divided(streams: Sequence[Stream], job: Scoring) -> Iterator[list[Part]]:
    """Yield `job.rows` rows, at last fewer, from the files one after the other."""
    chunk: list[Part] = []
    room = job.rows
    for part in _parts(streams, job):
        while len(part.batch) >= room:
            yield [*chunk, part.cut(0, room)]
            part, chunk, room = part.cut(room), [], job.rows
        if len(part.batch):
            chunk.append(part)
            room -= len(part.batch)
    if chunk:
        yield chunk


def _parts(streams: Sequence[Stream], job: Scoring) -> Iterator[Part]:
    for one in streams:
        row = 0
        for batch in one.batches(_read(one, job), job.rows):
            yield Part(one, row, batch)
            row += len(batch)


def inputs(chunk: Sequence[Part], job: Scoring, check: Check | None = None) -> Any:
    """Return what the model takes; raise DataError, with file and row, for what it was not trained on.

    check: gets the rows of a table.
    """
    if job.roles:
        from pandas import concat

        return concat([_mixed(part, job, check) for part in chunk], ignore_index=True)
    found = [_texts(part, job) if job.columns is None else _numbers(part, job, check) for part in chunk]
    return as_they_came(found[0] if len(found) == 1 else np.concatenate(found), job.columns)


def _mixed(part: Part, job: Scoring, check: Check | None) -> Any:
    columns = {name: [part.batch[name]] for name in job.roles}
    table, given = asked_of(job.roles, job.days), str(part.stream.file)
    found = frame(*coded_table(columns, table, {}, given, job.spelling, part.row))
    if check is not None:
        check.look(found, given, part.row + np.arange(len(found)))
    return found


def _texts(part: Part, job: Scoring) -> Any:
    assert job.text is not None
    return values.texts([part.batch[job.text]], f"{part.stream.file}: column {shown(job.text)}")


def _numbers(part: Part, job: Scoring, check: Check | None) -> NDArray[np.float32]:
    given, one = str(part.stream.file), part.stream
    assert job.columns is not None
    # Another spelling than the usual one is read there, and from the text as it is written.
    pieces = {
        name: [one.number(part.batch[name]) if job.spelling.plain else part.batch[name]] for name in _sources(one, job)
    }
    X, names = numbers.matrix(pieces, given, part.row, "the model was trained on numbers", spelling=job.spelling)
    if names != job.columns:
        raise DataError(f"{given}: its lists make {len(names)} inputs; the model needs {len(job.columns)}.")
    gone = np.isnan(X)
    if gone.any() and not job.missing:
        rows, columns = np.nonzero(gone)
        where = row_list(np.unique(rows[columns == columns[0]]) + part.row)
        raise DataError(
            f"{given}: column {shown(names[columns[0]])} has no value in {where}; allowed: numbers, as in training."
        )
    if check is not None:
        check.look(as_they_came(X, names), given, part.row + np.arange(len(X)))
    return X
