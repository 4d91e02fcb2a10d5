"""Files of rows without labels to files of classes, margins and latent coordinates, chunk by chunk. No MLflow.

Each chunk is a Parquet file beside the output, whole or absent, until all are put together under the output's name. So
memory does not grow with the rows, a run that was stopped goes on at the chunk it was at, and the output is whole or
not there at all. Chunks of another input, model or setting are thrown away.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import DataError
from ldsvm.datasets.atomic import replacing
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.files import FileSpec, numbers, values
from ldsvm.datasets.files.find import TABLES, find
from ldsvm.datasets.words import shown, told
from ldsvm.experiment.prepared import as_they_came

MANIFEST = "manifest.json"
OWN = ("class", "margin", "model")  # columns of the output beside z0, z1, … and those that are kept
OUTPUTS = (".parquet", ".csv")


@dataclass(frozen=True)
class Scoring:
    """What is scored. input: a table, a folder or a glob of tables. output: a file that ends in .parquet or .csv.

    columns: the inputs in the order of the training, or None for texts in the column `text`. keep: columns of the input
    that the output has too, such as a number of the row. rows: of a chunk. model: its name and version;
    source: where its files are, so that no chunk of a model of the same name elsewhere is taken for its own.
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


OnRows = Callable[[int], None]


def score(job: Scoring, pipeline: Any, on_rows: OnRows = lambda rows: None) -> int:
    """Score every row of a job's input with a fitted pipeline and return how many there were.

    on_rows: called with the number of rows done. Raises DataError, in one sentence, for inputs that are not what the
    model was trained on: columns that are absent, are no numbers, or have missing values; and for an output that cannot
    be written.
    """
    if job.output.suffix not in OUTPUTS:
        raise DataError(f"{job.output}: the output's name ends in none of {', '.join(OUTPUTS)}.")
    files = _files(job)
    if taken := sorted(name for name in job.keep if name in OWN or re.fullmatch(r"z\d+", name)):
        raise DataError(
            f"keep names {shown(taken[0])}, a column that the output has of its own; rename it in the input."
        )
    if job.output.resolve() in [file.resolve() for file in files]:
        raise DataError(f"{job.output}: is the input too; allowed: another name for the output.")
    parts = _begin(job, files)
    done, chunks = 0, []
    try:
        for number, table in enumerate(_chunks(files, job)):
            chunks.append(parts / f"{number:06d}.parquet")
            if not chunks[-1].exists():
                _write(_scored(table, job, pipeline, done), chunks[-1])
            done += table.num_rows
            on_rows(done)
        if not chunks:
            raise DataError(f"{job.input}: holds no rows; at least one is needed.")
        _gather(chunks, job.output)
    except DataError:  # another run of the same job would end the same way
        shutil.rmtree(parts, ignore_errors=True)
        raise
    shutil.rmtree(parts)
    return done


def _files(job: Scoring) -> tuple[Path, ...]:
    found, _ = find(FileSpec(job.input))
    if found.format not in TABLES:
        raise DataError(f"{job.input}: {found.format} data cannot be scored from a file; allowed: {', '.join(TABLES)}.")
    return found.files


def _begin(job: Scoring, files: Sequence[Path]) -> Path:
    """Return the folder of the chunks, empty unless it holds those of just this job."""
    facts = {**asdict(job), "output": str(job.output), "files": [_identity(file) for file in files]}
    text = json.dumps(facts, sort_keys=True)
    parts = job.output.with_name(f".{job.output.name}.parts")
    manifest = parts / MANIFEST
    try:
        if not manifest.is_file() or manifest.read_text("utf-8") != text:
            shutil.rmtree(parts, ignore_errors=True)
            with replacing(manifest) as new:
                new.write_text(text, "utf-8")
    except OSError as error:
        raise DataError(f"{job.output}: cannot be written there ({error.strerror}).") from error
    return parts


def _identity(file: Path) -> list[Any]:
    with file.open("rb") as stream:
        return [str(file.resolve()), hashlib.file_digest(stream, "sha256").hexdigest()]


def _chunks(files: Sequence[Path], job: Scoring) -> Iterator[Any]:
    """Yield tables of `job.rows` rows, the last one of fewer, from the files one after the other."""
    pa = optional("pyarrow")
    waiting: list[Any] = []
    count = 0
    for file in files:
        for batch in _batches(file, job):
            waiting.append(batch)
            count += batch.num_rows
            while count >= job.rows:
                table = pa.Table.from_batches(waiting)
                yield table.slice(0, job.rows)
                waiting = table.slice(job.rows).to_batches()
                count -= job.rows
    if count:
        yield pa.Table.from_batches(waiting)


def _batches(file: Path, job: Scoring) -> Iterator[Any]:
    pa = optional("pyarrow")
    try:
        schema, batches = _opened(file, job.rows)
        names = list(dict.fromkeys([*(job.columns or ()), *([job.text] if job.text else []), *job.keep]))
        absent = [name for name in names if name not in schema.names]
        if absent:
            more = "" if len(absent) == 1 else f" and {len(absent) - 1} more"
            raise DataError(
                f"{file}: the column {shown(absent[0])}{more} is absent, which the model needs or keep names."
            )
        for batch in batches:
            yield batch.select(names)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{file}: cannot be read ({' '.join(str(error).split())}).") from error


def _opened(file: Path, rows: int) -> tuple[Any, Iterator[Any]]:
    """Return the columns of a file and its rows in batches."""
    name = file.name.lower().removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        opened = optional("pyarrow.parquet").ParquetFile(file, memory_map=True, page_checksum_verification=True)
        return opened.schema_arrow, opened.iter_batches(batch_size=rows)
    if name.endswith((".csv", ".tsv", ".tab")):
        csv = optional("pyarrow.csv")
        parsing = csv.ParseOptions(delimiter="," if name.endswith(".csv") else "\t", newlines_in_values=True)
        reader = csv.open_csv(file, csv.ReadOptions(block_size=1 << 24), parsing)
        return reader.schema, iter(reader)
    ipc, source = optional("pyarrow.ipc"), optional("pyarrow").memory_map(str(file))
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    table = (ipc.open_file if is_file else ipc.open_stream)(source).read_all()
    return table.schema, iter(table.to_batches(max_chunksize=rows))


def _scored(table: Any, job: Scoring, pipeline: Any, before: int) -> Any:
    """Return the output's rows of one chunk. before: so many rows came in earlier ones."""
    pa = optional("pyarrow")
    X = _inputs(table, job, before)
    scores = pipeline.decision_function(X)
    Z = pipeline.transform(X)
    columns = {name: table[name] for name in job.keep}
    columns["class"] = pa.array(_classes(scores, pipeline.classes_).tolist())
    columns["margin"] = pa.array(_margins(scores).astype(np.float32))
    columns |= {f"z{place}": pa.array(np.ascontiguousarray(Z[:, place], np.float32)) for place in range(Z.shape[1])}
    columns["model"] = pa.array([job.model] * table.num_rows).dictionary_encode()
    return pa.table(columns)


def _inputs(table: Any, job: Scoring, before: int) -> Any:
    if job.columns is None:
        assert job.text is not None
        return values.texts(table[job.text].chunks, f"{job.input}: column {shown(job.text)}")
    X, _ = numbers.matrix({name: list(table[name].chunks) for name in job.columns}, job.input)
    gone = np.isnan(X)
    if gone.any() and not job.missing:
        rows, columns = np.nonzero(gone)
        name = job.columns[columns[0]]
        where = told("row", np.unique(rows[columns == columns[0]]) + before)
        raise DataError(f"{job.input}: column {shown(name)} has no value in {where}; allowed: numbers, as in training.")
    return as_they_came(X, job.columns)


def _classes(scores: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
    return found


def _margins(scores: NDArray[Any]) -> NDArray[Any]:
    """Return by how much the class that is given leads the next one, (n,)."""
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.partition(scores, -2, axis=1)
    lead: NDArray[Any] = best[:, -1] - best[:, -2]
    return lead


def _write(table: Any, file: Path) -> None:
    try:
        with replacing(file) as new:
            optional("pyarrow.parquet").write_table(table, new)
    except OSError as error:
        raise DataError(f"{file.parent}: cannot be written ({error.strerror or error}).") from error


def _gather(chunks: Sequence[Path], output: Path) -> None:
    """Put the chunks together, one in memory at a time."""
    parquet, csv = optional("pyarrow.parquet"), optional("pyarrow.csv")
    schema = parquet.read_schema(chunks[0])
    make = parquet.ParquetWriter if output.suffix == ".parquet" else csv.CSVWriter
    try:
        with replacing(output) as new, make(str(new), schema) as writer:
            for chunk in chunks:
                writer.write_table(parquet.read_table(chunk).cast(schema))
    except OSError as error:
        raise DataError(f"{output}: cannot be written ({error.strerror or error}).") from error
