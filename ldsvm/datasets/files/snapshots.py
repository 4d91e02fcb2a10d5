"""Zip archives, workbooks and tables of databases as plain files, which are named by their content."""

from __future__ import annotations

import hashlib
import re
import shutil
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile, ZipInfo

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import databases, expansion, faults
from ldsvm.datasets.files.databases import is_address
from ldsvm.datasets.files.kinds import array_of
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.words import shown

FOLDER = "snapshots"  # below the folder of prepared data
WORKBOOKS = (".xlsx", ".xlsm")
Fill = Callable[[Path], None]


def plain(spec: FileSpec, folder: Path) -> FileSpec:
    """Return a spec of plain files; others are converted into files below ``folder``, unless these are there already.

    An archive becomes its files, a sheet of a workbook and a table of a database become Parquet files, whose types are
    kept. Large tables of text become Arrow files there once they are read, see `large_text`. Raises `DataError` for
    what cannot be read.

    Examples
    --------
    >>> plain(FileSpec("a.csv"), Path("cache")).path
    'a.csv'
    """
    paths = [None if path is None else _plain(path, spec, folder) for path in (spec.path, spec.test_path)]
    found = replace(spec, path=str(paths[0]), test_path=paths[1], snapshots=folder)
    if paths == [spec.path, spec.test_path]:
        return found
    if is_address(spec.path) or Path(spec.path).suffix.lower() in WORKBOOKS:
        return replace(found, format=None, header=True, encoding=None, sheet=None, table=None, query=None)
    return found


def _plain(given: str, spec: FileSpec, folder: Path) -> str:
    if is_address(given):
        return _kept(folder, databases.name_of(given, spec.table), lambda place: databases.write(given, spec, place))
    path = Path(given).expanduser()
    ending = path.suffix.lower()
    if ending not in (".zip", *WORKBOOKS) or not path.is_file():
        return given
    with faults.reading(path, ending.removeprefix(".")), ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        # Reading one stops at the size that is told here.
        expansion.check(path, path.stat().st_size, sum(member.file_size for member in members))
        if ending == ".zip":
            return _kept(folder, path.stem, lambda place: _unpack(archive, members, path, place))
    return _kept(folder, path.stem, lambda place: _write_sheet(path, spec, place))


def _kept(folder: Path, name: str, fill: Fill) -> str:
    """Return the file, or the folder of several, that ``fill`` writes into an empty folder, at its place by content."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".") as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        fill(new)
        digest = hashlib.sha256()
        for file in sorted(file for file in new.rglob("*") if file.is_file()):
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{file.relative_to(new)}\n{content}\n".encode("utf-8", "surrogateescape"))
        place = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}-{digest.hexdigest()[:12]}"
        with suppress(OSError):  # another run has written the same
            new.rename(place)
    entries = [*place.iterdir()]
    return str(entries[0] if len(entries) == 1 and entries[0].is_file() else place)


def _unpack(archive: ZipFile, members: Sequence[ZipInfo], path: Path, place: Path) -> None:
    names = {member: PurePosixPath(member.filename.replace("\\", "/")) for member in members}
    visible = {member: name for member, name in names.items() if not any(map(_is_hidden, name.parts))}
    if not visible:
        raise DataError(f"{path} holds no files.")
    for member, name in visible.items():
        if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
            raise DataError(
                f"{path} holds {shown(member.filename)}, which is outside the archive; allowed: relative paths."
            )
        if member.flag_bits & 1:
            raise DataError(f"{path}: is encrypted; unpack it, and give the unpacked file or folder.")
    parts = [name.parts for name in visible.values()]
    shared = 0  # folders that all are in
    while (
        all(len(one) > shared + 1 and "=" not in one[shared] for one in parts) and len({p[shared] for p in parts}) == 1
    ):
        shared += 1
    for member, name in visible.items():
        file = place.joinpath(*name.parts[shared:])
        file.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, file.open("xb") as target:
            shutil.copyfileobj(source, target)


def _is_hidden(part: str) -> bool:
    return part == "__MACOSX" or (part.startswith(".") and part != "..")


def _write_sheet(path: Path, spec: FileSpec, place: Path) -> None:
    openpyxl, parquet = optional("openpyxl", "excel"), optional("pyarrow.parquet")
    with faults.reading(path, "xlsx"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of styles and extensions, which do not matter here
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            rows = _rows(path, book, spec.sheet)
        finally:
            book.close()
    width = max(map(len, rows), default=0)
    columns = [[row[i] if i < len(row) else None for row in rows] for i in range(width)]
    names = [f"c{i}" for i in range(width)]
    if spec.header:
        names = ["" if column[0] is None else str(column[0]).strip() for column in columns]
        columns = [column[1:] for column in columns]
    used = [i for i in range(width) if names[i] or any(value is not None for value in columns[i])]
    arrays = [array_of(columns[i]) for i in used]
    table = optional("pyarrow").Table.from_arrays(arrays, names=[names[i] for i in used])
    parquet.write_table(table, place / f"{path.stem}.parquet")


def _rows(path: Path, book: Any, wanted: str | None) -> list[tuple[Any, ...]]:
    """Return the rows that hold something, of the wanted sheet, or of the only one that has such rows."""
    if wanted is not None and wanted not in book.sheetnames:
        near, known = faults.nearest(wanted, book.sheetnames), faults.names(book.sheetnames)
        raise DataError(
            f"{path}: dataset.sheet is {shown(wanted)}, but there is no such sheet{near}; the sheets are {known}."
        )
    sheets = [sheet for sheet in book.worksheets if wanted in (None, sheet.title)]
    every = {sheet.title: [row for row in sheet.iter_rows(values_only=True) if any(v is not None for v in row)]
             for sheet in sheets}  # fmt: skip
    filled = [name for name, rows in every.items() if rows]
    if len(filled) > 1:
        raise DataError(f"{path}: has the sheets {faults.names(filled)}; name one of them as dataset.sheet.")
    return every[filled[0]] if filled else []
