"""Tables: Parquet, CSV and TSV, Arrow files and streams, in one or several files of the same columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldsvm.checks import index_columns
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError, Rows
from ldsvm.datasets.files import csv_text, expansion, faults, large_text, numbers, values
from ldsvm.datasets.files.coding import Table, coded_table, mixed
from ldsvm.datasets.files.find import Found
from ldsvm.datasets.files.kinds import plain
from ldsvm.datasets.files.layout import Layout, layout
from ldsvm.datasets.files.opening import Style
from ldsvm.datasets.files.partitions import check_apart
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.files.spellings import Spelling
from ldsvm.datasets.large import is_large
from ldsvm.datasets.room import check_room
from ldsvm.datasets.words import shown

# Values of a category that dataset.columns asks for: feature steps are fitted to as many rows of a large table.
ASKED = 200_000


@dataclass(frozen=True)
class Opened:
    """One file: the names of its columns, repeated ones too, and a function that reads some of them as a table.

    rows: how many. index: the columns that are the index of the rows, where the file says so.
    """

    names: Sequence[str]
    load: Callable[[list[str]], Any]
    rows: int
    index: Sequence[str] = ()


class Columns(Mapping[str, list[Any]]):
    """Columns of a table in several files, as pyarrow arrays; each is read when it is asked for, and not kept.

    A file that lacks a column has no part in it.
    """

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __init__(self, files: Sequence[tuple[Path, Opened]], format: str, names: Sequence[str]) -> None:
        self._files, self._format, self._names = files, format, names

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> list[Any]:
        optional("pyarrow").default_memory_pool().release_unused()  # else it keeps what the column before had
        return self.read([name])[name]

    def read(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return several columns at once."""
        found: dict[str, list[Any]] = {name: [] for name in names}
        for file, opened in self._files:
            there = [name for name in names if name in opened.names]
            if not there:
                continue
            with faults.reading(file, self._format):
                table = opened.load(there)
                # Few files have checksums, and a wrong offset would end the process instead of raising an error.
                table.validate(full=True)
            for name in there:
                found[name] += [plain(piece) for piece in table[name].chunks]
        return found


def read(train: Found, test: Found | None, spec: FileSpec) -> tuple[Rows, Rows | None]:
    """Return the rows of both sets, in the order of the files and of the lines in them.

    The columns of the first file decide what is read of all others, which may have them in another order; roles are
    those that the training set's columns have. Raises `DataError` for files that cannot be read, columns that are
    absent or of a wrong type, and for no rows.
    """
    rows, plan = _read(train, spec, None, None)
    if test is None:
        return rows, None
    rows_test, _ = _read(test, spec, plan, rows.table)
    return replace(rows, table=rows_test.table), rows_test  # with the values that only the test set has


def count(file: Path, found: Found, spec: FileSpec) -> int:
    """Return the number of rows of one of the files that were found."""
    with faults.reading(file, found.format):
        return open_file(file, found, spec).rows


def open_file(file: Path, found: Found, spec: FileSpec) -> Opened:
    """Open one of the files that were found, with the columns that its folders give."""
    if found.format in csv_text.DELIMITERS:
        opened = _separated(file, found, spec)
    else:
        opened = {"parquet": _parquet, "arrow": _arrow}[found.format](file)
    values = found.values.get(file, {})
    if not values:
        return opened
    check_apart(values, opened.names, file)

    def load(names: list[str]) -> Any:
        table = opened.load([name for name in names if name not in values] or [*opened.names[:1]])
        for name in (name for name in names if name in values):
            table = table.append_column(name, optional("pyarrow").repeat(values[name], len(table)))
        return table.select(names)

    return Opened([*opened.names, *values], load, opened.rows, opened.index)


def _read(found: Found, spec: FileSpec, plan: Layout | None, table: Table | None) -> tuple[Rows, Layout]:
    spelling = Spelling.of(spec.decimal, spec.missing_values, thousands=spec.thousands)
    training = plan is None
    others, inputs, plan = _opened(found, spec, plan)
    rows = _rows(others, plan, found.given, spelling)
    del others
    if plan.text is not None:
        return rows, plan
    if (training and (spec.roles or mixed(inputs, spelling))) or table is not None:
        codes, table = coded_table(inputs, table, dict(spec.roles), found.given, spelling, most=ASKED)
        return replace(rows, X=codes, columns=tuple(one.name for one in table if one.used), table=table), plan
    X, names = numbers.matrix(inputs, found.given, spelling=spelling, precise=training)
    return replace(rows, X=X, columns=names), plan


def _opened(
    found: Found, spec: FileSpec, plan: Layout | None
) -> tuple[dict[str, numbers.Column], Mapping[str, numbers.Column], Layout]:
    """Return the label and other columns that are not inputs, and the inputs, which are read later if they are large.

    The columns of the first file become the plan where there is none.
    """
    files: list[tuple[Path, Opened]] = []
    for file in found.files:
        with faults.reading(file, found.format):
            opened = open_file(file, found, spec)
            if plan is None:
                plan = layout(spec, opened.names, file, opened.index)
            plan.check(opened.names, file)
        files.append((file, opened))
    assert plan is not None  # find() returns at least one file
    inputs: Mapping[str, numbers.Column]
    columns = inputs = Columns(files, found.format, plan.inputs)
    others = [name for name in plan.names if name not in plan.inputs or name in (plan.group, plan.time)]
    if is_large(sum(opened.rows for _, opened in files), len(plan.inputs)):
        read = columns.read(others)
    else:
        read = columns.read(plan.names)
        inputs = {name: read[name] for name in plan.inputs}
    if not sum(map(len, read[plan.label])):
        raise DataError(f"{found.given} holds column names but no rows; at least one row is needed.")
    return {name: read[name] for name in others}, inputs, plan


def _rows(columns: dict[str, numbers.Column], plan: Layout, given: str, spelling: Spelling) -> Rows:
    """Return labels, groups, times and texts; X is None where the inputs are other columns."""

    def one(role: str, name: str | None, convert: Callable[[numbers.Column, str], Any]) -> Any:
        return None if name is None else convert(columns[name], f"{given}: dataset.{role} {shown(name)}")

    if plan.time is not None and spelling.decimal == ",":  # as texts, 10,5 would be before 9,5
        columns[plan.time] = [spelling.number(piece) for piece in columns[plan.time]]
    y = one("label", plan.label, values.labels)
    groups, times = one("group", plan.group, values.groups), one("time", plan.time, values.times)
    if plan.text is not None:
        return Rows(one("text", plan.text, values.texts), y, None, groups, times)
    return Rows(None, y, None, groups, times)


def _words(spec: FileSpec) -> list[str]:
    """Return the columns that are text whatever they look like, in formats that only guess types.

    Otherwise a group 007 would be the number 7 in one file, and in another, with words among its groups, not. A
    group that is an input too must be a number, and then is one in all files.
    """
    plain = [name for name in (spec.text, spec.group) if name is not None and name not in (spec.columns or ())]
    return plain + [name for name, role in spec.roles if role in ("category", "text")]


def parquet(path: Path) -> Any:
    """Return the reader of a Parquet file."""
    return optional("pyarrow.parquet").ParquetFile(path, memory_map=True, page_checksum_verification=True)


def _parquet(path: Path) -> Opened:
    file = parquet(path)
    schema = file.schema_arrow

    def load(names: list[str]) -> Any:
        rows = file.metadata.num_rows  # of 4 bytes a cell at least, however few bytes say them
        needed = max(4 * rows * len(names), _stored(file.metadata, set(names)))
        check_room(path, needed, f"its {rows:,} rows of {len(names):,} columns")
        # A file of its own each, and not `read_table`, which makes columns out of folders such as year=2024.
        return file.read(columns=names).select(names)

    return Opened(schema.names, load, file.metadata.num_rows, index_columns(schema))


def _stored(facts: Any, names: set[str]) -> int:
    """Return the bytes of these columns of a Parquet file once they are not compressed, by its metadata."""
    groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    return sum(one.total_uncompressed_size for one in columns if one.path_in_schema.partition(".")[0] in names)


def _arrow(path: Path) -> Opened:
    schema = arrow(path).schema
    rows = sum(map(len, batches_of(path, schema.names[:1])))

    def load(names: list[str]) -> Any:
        batches, size = [], 0
        for batch in batches_of(path, names):
            size += batch.nbytes
            expansion.check(path, path.stat().st_size, size)
            batches.append(batch)
        return optional("pyarrow").Table.from_batches(batches, arrow(path, names).schema).select(names)

    return Opened(schema.names, load, rows, index_columns(schema))


def arrow(path: Path, names: Sequence[str] = ()) -> Any:
    """Return the reader of an Arrow file or stream, of all columns or of some; others are not unpacked."""
    ipc, source = optional("pyarrow.ipc"), optional("pyarrow").memory_map(str(path))
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    opened = ipc.open_file if is_file else ipc.open_stream
    known = arrow(path).schema.names if names else []
    places = [place for place, name in enumerate(known) if name in names]
    if len(places) == len(known):  # what is not packed is then mapped, and not copied
        return opened(source)
    return opened(source, options=ipc.IpcReadOptions(included_fields=places))


def batches_of(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """Yield the record batches of an Arrow file or stream, with these columns in the file's order."""
    reader = arrow(path, names)
    count = getattr(reader, "num_record_batches", None)  # which a stream does not know
    yield from reader if count is None else map(reader.get_batch, range(count))


def _separated(path: Path, found: Found, spec: FileSpec) -> Opened:
    """Open a file of text: in memory, or, where the files are large, as an Arrow file that it becomes."""
    words, style = _words(spec), Style(csv_text.DELIMITERS[found.format], spec.header, spec.encoding)
    if spec.decimal == "," or spec.thousands == ".":  # as they are written: 1.234 may be a thousand
        names, _ = csv_text.stream(path, style)
        guessed = {spec.label or "label", spec.time} - set(spec.columns or ())
        words += [name for name in names if name not in guessed]
    label = spec.label or "label"
    if spec.snapshots is not None and large_text.are_large(found.files):
        return _arrow(large_text.snapshot(path, found.format, style, words, label, spec.snapshots))
    table = _as_written(csv_text.read(path, style, words), label, path, style)
    return Opened(table.column_names, table.select, len(table))


def _as_written(table: Any, label: str, path: Path, style: Style) -> Any:
    """Return a table whose labels are texts where they were taken for truth values: true, True and TRUE stay so."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    if table.column_names.count(label) != 1 or not pa.types.is_boolean(table[label].type):
        return table
    texts = pc.if_else(
        table[label].is_valid(), csv_text.read(path, style, [label])[label], pa.scalar(None, pa.string())
    )
    return table.set_column(table.column_names.index(label), label, texts)
