"""Large tables of text as Arrow files: the values that `csv_text.read` finds, with a few blocks in memory at a time.

Arrow files keep the types as they are, and one column is read without the others.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ldsvm.atomic import alone, replacing
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import csv_text, faults
from ldsvm.datasets.files.csv_text import Batches
from ldsvm.datasets.files.layout import check_unique
from ldsvm.datasets.files.opening import COMPRESSED, Style

LARGE = 2**27  # bytes of all files of a table of text; smaller ones are read whole
PACKED = 10  # how often its size a compressed file counts
VERSION = 1  # raise it when the same file becomes another Arrow file
HEXADECIMAL = r"^\s*[+-]?0[xX]"


def are_large(files: Sequence[Path]) -> bool:
    """Return whether the files of a table of text are together too large to be read whole."""
    return sum(file.stat().st_size * (PACKED if file.suffix.lower() in COMPRESSED else 1) for file in files) > LARGE


def snapshot(path: Path, format: str, style: Style, texts: Sequence[str], label: str, folder: Path) -> Path:
    """Return an Arrow file of the values of ``path``, in ``folder``, written unless it is there for the same content.

    The columns ``texts`` stay text, and so do truth values of the column ``label``; the others have the types that all
    their values suggest. Raises what `csv_text.read` raises, and `DataError` for a folder that cannot be written.
    """
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    digest.update(json.dumps([VERSION, asdict(style), sorted({*texts}), label]).encode())
    place = folder / f"{path.name.partition('.')[0]}-{digest.hexdigest()[:12]}.arrow"
    if place.exists():
        return place
    names, batches = csv_text.stream(path, style)
    check_unique(names, path)
    pa, types = optional("pyarrow"), _types(names, batches, texts)
    truths = pa.types.is_boolean(types.get(label, pa.null()))
    if truths:
        types[label] = pa.string()

    def rows() -> Iterator[Any]:
        with faults.reading(path, format):
            for batch in batches(names, types):
                yield _without_gaps(batch, label) if truths else batch

    try:
        with alone(folder):
            for left in folder.glob(".*.arrow.*"):  # by a process that was killed
                left.unlink(missing_ok=True)
            _write(place, rows())
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror or error}).") from error
    return place


def _without_gaps(batch: Any, name: str) -> Any:
    """Return a batch in which the marks of missing values in one column are null."""
    pa, pc, csv = optional("pyarrow"), optional("pyarrow.compute"), optional("pyarrow.csv")
    texts = batch[name]
    gaps = pc.is_in(pc.utf8_trim(texts, " \t"), value_set=pa.array(csv.ConvertOptions().null_values))
    place = batch.schema.names.index(name)
    return batch.set_column(place, name, pc.if_else(gaps, pa.scalar(None, pa.string()), texts))


def _write(place: Path, batches: Iterator[Any]) -> None:
    pa, ipc = optional("pyarrow"), optional("pyarrow.ipc")
    first = next(batches)
    options = ipc.IpcWriteOptions(compression="zstd")
    with (
        replacing(place) as new,
        pa.OSFile(str(new), "wb") as sink,
        ipc.new_file(sink, first.schema, options=options) as writer,
    ):
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def _types(names: Sequence[str], batches: Batches, texts: Sequence[str]) -> dict[str, Any]:
    """Return the types that `csv_text.read` gives the columns outside ``texts``."""
    text = optional("pyarrow").string()
    found: dict[str, set[Any]] = {name: set() for name in names if name not in texts}
    for batch in batches([*found], {}) if found else ():
        left = [name for name, types in found.items() if text not in types]
        for name, type in zip(left, _guessed(batch.select(left)), strict=True):
            found[name].add(type)
    return {name: _common(name, types, batches) for name, types in found.items()}


def _guessed(batch: Any) -> list[Any]:
    """Return the types that the values of one batch of texts suggest."""
    pa, pc = optional("pyarrow"), optional("pyarrow.compute")
    types = [field.type for field in _read(batch).schema] if batch.num_columns else []
    for place, type in enumerate(types):
        # 0x1f is no number, see `csv_text.read`.
        if pa.types.is_integer(type) and pc.any(pc.match_substring_regex(batch.column(place), HEXADECIMAL)).as_py():
            types[place] = pa.string()
    return types


def _common(name: str, types: set[Any], batches: Batches) -> Any:
    """Return the first type, in pyarrow's order, in which all batches of a column can be read."""
    order = _order()
    last = max(map(order.index, types), default=0)
    for type in order[last:-1]:
        if {*types} <= {order[0], type} or all(_reads(batch, type) for batch in batches([name], {})):
            return type
    return order[-1]


def _order() -> list[Any]:
    """Return the types that pyarrow tries for a column, one after the other."""
    pa = optional("pyarrow")
    moments = [pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("s", "ns")]
    return [pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *moments, pa.float64(), pa.string()]


def _reads(batch: Any, type: Any) -> bool:
    try:
        _read(batch, type)
    except optional("pyarrow").ArrowInvalid:
        return False
    return True


def _read(batch: Any, type: Any = None) -> Any:
    """Return texts as pyarrow reads them, all as one type where it is given."""
    csv, written = optional("pyarrow.csv"), io.BytesIO()
    csv.write_csv(batch, written)
    text = written.getbuffer()
    types = {} if type is None else dict.fromkeys(batch.schema.names, type)
    return csv.read_csv(
        optional("pyarrow").py_buffer(text),
        csv.ReadOptions(block_size=max(1, len(text))),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(column_types=types),
    )
