"""Tables that may be larger than memory: batches of rows of some columns, one file at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.files import csv_text, faults, tables
from ldsvm.datasets.files.kinds import plain
from ldsvm.datasets.files.layout import check_unique
from ldsvm.datasets.files.opening import Style
from ldsvm.datasets.files.partitions import Values, check_apart

Batches = Callable[[Sequence[str], int], Iterator[Any]]  # of these columns, of at most so many rows where that is known


@dataclass(frozen=True)
class Stream:
    """One file. types: of its columns, by name. number: turns a piece of a column into numbers where it holds such.

    In files of text every column is text, as it is written. values: of the columns that its folders give.
    """

    file: Path
    format: str
    types: Mapping[str, Any]
    number: Callable[[Any], Any]
    read: Batches
    values: Values = field(default_factory=dict)

    def batches(self, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield the named columns in batches, without dictionaries; raise `DataError` for what is damaged.

        rows: at most so many in a batch; of a file of text as many as are in a block of it.
        """
        pa = optional("pyarrow")
        own = [name for name in names if name not in self.values] or [*self.types][:1]
        with faults.reading(self.file, self.format):
            for batch in self.read(own, rows):
                batch.validate(full=True)
                columns = {name: pa.repeat(value, len(batch)) for name, value in self.values.items()}
                columns |= {name: plain(batch.column(name)) for name in own}
                yield pa.RecordBatch.from_arrays([columns[name] for name in names], [*names])


def stream(
    file: Path, format: str, *, header: bool = True, encoding: str | None = None, values: Values | None = None
) -> Stream:
    r"""Open one file of a table's format; raise `DataError` when it cannot be read or repeats a name.

    header, encoding: of files of text, see `FileSpec`. values: of `Found`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id,size\n007,1.5\n008,2\n")
    ...     found = stream(Path(folder, "a.csv"), "csv")
    ...     [batch["id"].to_pylist() for batch in found.batches(["id"], 10)]
    [['007', '008']]
    """
    with faults.reading(file, format):
        delimiter = csv_text.DELIMITERS.get(format)
        if delimiter is None:
            types, number, batches = OPEN[format](file)
        else:
            types, number, batches = _separated(file, Style(delimiter, header, encoding))
    check_unique([name for name, _ in types], file)
    values = values or {}
    check_apart(values, [name for name, _ in types], file)
    return Stream(file, format, dict(types) | {k: v.type for k, v in values.items()}, number, batches, values)


def _parquet(file: Path) -> tuple[list[tuple[str, Any]], Callable[[Any], Any], Batches]:
    def batches(names: Sequence[str], rows: int) -> Iterator[Any]:
        with tables.parquet(file) as opened:
            yield from opened.iter_batches(rows, columns=[*names])

    with tables.parquet(file) as opened:
        return _types(opened.schema_arrow), _as_it_is, batches


def _arrow(file: Path) -> tuple[list[tuple[str, Any]], Callable[[Any], Any], Batches]:
    def batches(names: Sequence[str], rows: int) -> Iterator[Any]:
        for batch in tables.batches_of(file, names):
            for start in range(0, len(batch), rows):
                yield batch.slice(start, rows)

    return _types(tables.arrow(file).schema), _as_it_is, batches


def _separated(file: Path, style: Style) -> tuple[list[tuple[str, Any]], Callable[[Any], Any], Batches]:
    names, batches = csv_text.stream(file, style)
    text = optional("pyarrow").string()
    return [(name, text) for name in names], csv_text.numbers, lambda wanted, _rows: batches(wanted)


def _types(schema: Any) -> list[tuple[str, Any]]:
    """Return the names, repeated ones too, and what the types are once `plain` has unwrapped them."""
    return [(field.name, plain(optional("pyarrow").nulls(0, field.type)).type) for field in schema]


def _as_it_is(piece: Any) -> Any:
    return piece


OPEN = {"parquet": _parquet, "arrow": _arrow}
