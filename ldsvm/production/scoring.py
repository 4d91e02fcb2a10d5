"""Files of rows without labels to files of classes, margins and latent coordinates, chunk by chunk. No MLflow.

Each chunk is a Parquet file beside the output, whole or absent, until all are put together under the output's name. So
memory does not grow with the rows, a run that was stopped goes on at the chunk it was at, and the output is whole or
not there at all. Chunks of another input, model or setting lie in another folder and are removed once the output is
there; one run at a time writes an output.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.atomic import alone, replacing
from ldsvm.datasets import DataError
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.files import faults
from ldsvm.datasets.files.streams import Stream
from ldsvm.datasets.table_schema import Check
from ldsvm.datasets.words import shown
from ldsvm.production.answers import Answers
from ldsvm.production.schema_check import refuse
from ldsvm.production.score_watch import Chunk, Watch
from ldsvm.production.scoring_rows import Part, Scoring, divided, inputs, opened
from ldsvm.production.shadow import Shadow

OnRows = Callable[[int], None]
FORMULA = r"^[=+\-@\t\r\n]"  # first characters of what spreadsheets run as a formula
COUNTS = b"ldsvm.counts"  # key in a chunk's metadata, of what its rows are compared by
PARTS = ".parts"  # at the end of the name of the folder of chunks, beside the output
AGREEMENT = b"ldsvm.agreement"  # the same, of whether a challenger in shadow agrees
NUMBER = r"^[+-]?([\d.,]*|[\d.,]+e[+-]?\d+|inf|infinity|nan)$"  # also a lone sign, as for no value


def score(
    job: Scoring,
    pipeline: Any,
    on_rows: OnRows = lambda rows: None,
    check: Check | None = None,
    watch: Watch | None = None,
    shadow: Shadow | None = None,
) -> int:
    """Score every row of a job's input with a fitted pipeline and return how many there were.

    on_rows: called with the number of rows done. check: finds the cells that the schema does not allow, in the chunks
    that are still to do where another run was stopped; by default that of the job. watch: compares all rows with those
    of the training; its Alarm ends the scoring, and the chunks that are done are kept for the next run. shadow: answers
    all rows too, for a comparison, which does not change the output.

    Raises DataError, in one sentence, for inputs that are not what the model was trained on: columns that are absent,
    are not numbers, or have missing values; for kept columns whose types in different files do not fit together; for
    cells that the schema does not allow, where they are refused; and for an output that cannot be written, is being
    written by another run, or is where the input is looked for.
    """
    streams, check = opened(job), check or Check(job.allowed, job.edited)
    kept = _kept(streams, job)
    with _alone(job) as folder:
        files = [_identity(one.file) for one in streams]
        chunks = folder / _digest(job, files)
        if shadow is not None:
            shadow.files = {one.file: digest for one, (_, digest) in zip(streams, files, strict=True)}
        try:
            done = _answered(streams, job, pipeline, kept, chunks, on_rows, check, watch, shadow)
        except DataError:  # a second run would fail the same way, so the chunks are of no use
            shutil.rmtree(chunks, ignore_errors=True)
            if not any(path.is_dir() for path in folder.iterdir()):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)  # with chunks of other jobs, which the output is newer than
    return done


def _answered(
    streams: Sequence[Stream],
    job: Scoring,
    pipeline: Any,
    kept: dict[str, Any],
    folder: Path,
    on_rows: OnRows,
    check: Check,
    watch: Watch | None,
    shadow: Shadow | None,
) -> int:
    """Write the chunks that are not in the folder yet, then the output; return the number of rows."""
    done, chunks = 0, []
    for number, chunk in enumerate(divided(streams, job)):
        chunks.append(folder / f"{number:06d}.parquet")
        rows = sum(len(part.batch) for part in chunk)
        if not _there(chunks[-1], rows, watch, shadow):
            _write(_scored(chunk, job, pipeline, kept, check, watch, shadow), chunks[-1])
        done += rows
        counts = optional("pyarrow.parquet").read_schema(chunks[-1]).metadata or {}
        if watch is not None:
            watch.take(Chunk.of(counts[COUNTS]))
        if shadow is not None and shadow.failure is None:
            shadow.take(counts[AGREEMENT])
        on_rows(done)
    if not chunks:
        raise DataError(f"{job.input} holds column names but no rows; at least one row is needed.")
    _gather(chunks, job)
    return done


def _kept(streams: Sequence[Stream], job: Scoring) -> dict[str, Any]:
    """Return the types of the columns that are kept, of all files together."""
    pa = optional("pyarrow")
    found = {}
    for name in dict.fromkeys(job.keep):
        schemas = [pa.schema([(name, type)]) for type in dict.fromkeys(one.types[name] for one in streams)]
        try:
            found[name] = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            types = faults.names([str(schema.field(0).type) for schema in schemas])
            raise DataError(
                f"{job.input}: column {shown(name)} of production.score.keep has the types {types} in different files; "
                "allowed: one type."
            ) from error
        try:
            for make in {".parquet", job.output.suffix}:  # the chunks are Parquet
                with _writer(pa.BufferOutputStream(), pa.schema([(name, found[name])]), make) as writer:
                    writer.write_table(pa.table({name: pa.nulls(1, found[name])}))
        except pa.ArrowException as error:
            raise DataError(
                f"{job.output}: cannot hold column {shown(name)} of production.score.keep, of type {found[name]}; "
                "write a .parquet file, or leave the column out."
            ) from error
    return found


@contextmanager
def _alone(job: Scoring) -> Iterator[Path]:
    """Yield the folder of a job's chunks, which one run at a time uses."""
    folder = job.output.with_name(f".{job.output.name}{PARTS}")
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(folder, wait=False))
        except TimeoutError as error:
            raise DataError(
                f"{job.output}: another run is writing this file; wait until it has ended, or choose another output."
            ) from error
        except OSError as error:
            raise DataError(f"{job.output} cannot be written ({error.strerror}).") from error
        yield folder


def _digest(job: Scoring, files: list[list[str]]) -> str:
    """Return a digest that names the folder of this job's chunks. files: see `_identity`."""
    facts = {**asdict(job), "output": str(job.output), "files": files}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _there(chunk: Path, rows: int, watch: Watch | None, shadow: Shadow | None) -> bool:
    """Return whether a chunk can be read, has so many rows, and has their counts where they are compared."""
    try:
        table = optional("pyarrow.parquet").read_table(chunk)
    except (OSError, optional("pyarrow").ArrowException):
        return False
    counts = table.schema.metadata or {}
    agreed = shadow is None or shadow.failure is not None or shadow.is_of(counts.get(AGREEMENT))
    return bool(table.num_rows == rows) and (watch is None or COUNTS in counts) and agreed


def _identity(file: Path) -> list[str]:
    """Return where a file is, and the digest of its content."""
    with file.open("rb") as stream:
        return [str(file.resolve()), hashlib.file_digest(stream, "sha256").hexdigest()]


def _scored(
    chunk: Sequence[Part],
    job: Scoring,
    pipeline: Any,
    kept: dict[str, Any],
    check: Check,
    watch: Watch | None,
    shadow: Shadow | None = None,
) -> Any:
    """Return the output's rows of one chunk, with their counts where they are compared. kept: types of columns."""
    pa = optional("pyarrow")
    X = given = inputs(chunk, job, check)
    refuse(check, job.schema, "scored", job.schema_file)
    model = pipeline
    if hasattr(pipeline, "steps"):  # the features once; `inputs` has done what the first step of a mixed table does
        X, model = pipeline[1 if job.roles else 0 : -1].transform(X), pipeline[-1]
    found = Answers(model, X)
    said, Z = found.labels, found.Z
    columns = {name: pa.chunked_array([_cast(part, name, type) for part in chunk]) for name, type in kept.items()}
    columns["class"] = pa.array(said.tolist())
    columns["margin"] = pa.array(found.margins().astype(np.float32))
    columns |= {f"z{place}": pa.array(np.ascontiguousarray(Z[:, place], np.float32)) for place in range(Z.shape[1])}
    columns["model"] = pa.array([job.model] * len(Z)).dictionary_encode()
    counts = {}
    if watch is not None:
        counts[COUNTS] = watch.count(given, X, said, Z, found.probabilities()).as_json()
    if shadow is not None:  # last: all that the champion says is there
        parts = [(part.stream.file, len(part.batch)) for part in chunk]
        counts |= {} if (agreed := shadow.look(parts, given, said, job.roles)) is None else {AGREEMENT: agreed}
    return pa.table(columns, metadata=counts or None)


def _cast(part: Part, name: str, type: Any) -> Any:
    try:
        return part.batch[name].cast(type)
    except optional("pyarrow").ArrowException as error:
        raise DataError(
            f"{part.stream.file}: column {shown(name)} of production.score.keep has values that do not fit {type}, the "
            "type of that column in all files together; allowed: one type in all files."
        ) from error


def _write(table: Any, file: Path) -> None:
    try:
        with replacing(file) as new:
            optional("pyarrow.parquet").write_table(table, new)
    except OSError as error:
        raise DataError(f"{file.parent}: cannot be written ({error.strerror or error}).") from error


def _gather(chunks: Sequence[Path], job: Scoring) -> None:
    """Put the chunks together, one in memory at a time."""
    parquet, output = optional("pyarrow.parquet"), job.output
    ready = _escaped if job.escape_formulas and output.suffix == ".csv" else lambda table: table
    try:
        schema = parquet.read_schema(chunks[0]).remove_metadata()
        given = ready(schema.empty_table()).schema
        with replacing(output) as new, _writer(str(new), given, output.suffix) as writer:
            for chunk in chunks:
                writer.write_table(ready(parquet.read_table(chunk).cast(schema)))
    except (OSError, optional("pyarrow").ArrowException) as error:  # such as bytes that are no text, in a CSV
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{output}: cannot be written ({why}).") from error


def _escaped(table: Any) -> Any:
    """Return a table in which a ' stands before each text, names too, that a spreadsheet would run as a formula."""
    pa, compute = optional("pyarrow"), optional("pyarrow.compute")
    mark, empty = (pa.scalar(text, pa.large_string()) for text in ("'", ""))

    def safe(texts: Any) -> Any:
        texts = texts.cast(pa.large_string())
        number = compute.match_substring_regex(texts, NUMBER, ignore_case=True)
        formula = compute.and_not(compute.match_substring_regex(texts, FORMULA), number)
        return compute.if_else(formula, compute.binary_join_element_wise(mark, texts, empty), texts)

    columns = []
    for column in table.columns:
        inner = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        texts = any(word in str(inner) for word in ("string", "binary")) and not pa.types.is_nested(inner)
        columns.append(safe(column.cast(inner)) if texts else column)
    return pa.table(columns, names=safe(pa.array(table.column_names)).to_pylist())


def _writer(where: Any, schema: Any, suffix: str) -> Any:
    if suffix == ".parquet":
        return optional("pyarrow.parquet").ParquetWriter(where, schema)
    return optional("pyarrow.csv").CSVWriter(where, schema)
