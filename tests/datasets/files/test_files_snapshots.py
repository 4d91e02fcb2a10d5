"""Archives, workbooks and tables of databases give the rows of the plain files that they stand for."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from ldsvm.datasets import DataError, Dataset
from ldsvm.datasets.files import FileSpec, expansion, inventory, load, snapshots
from ldsvm.datasets.files.databases import check_address, is_address

ROWS: list[tuple[Any, ...]] = [
    (1, 1.5, "red", datetime(2024, 3, 1), "ill"),
    (2, None, None, datetime(2024, 3, 2), "well"),
    (3, 2.25, "blue", datetime(2024, 3, 3), "ill"),
]
NAMES = ("number", "size", "colour", "day", "state")
SECONDS = np.array([19783, 19784, 19785]) * 86_400.0
CODES = np.column_stack([[1, 2, 3], [1.5, np.nan, 2.25], [1, np.nan, 0], SECONDS])


def loaded(folder: Path, path: Path | str, **fields: Any) -> Dataset:
    return load(FileSpec(str(path), **{"label": "state", **fields}), name="a", cache_dir=folder / "cache")


def fails(folder: Path, message: str, path: Path | str, **fields: Any) -> None:
    with pytest.raises(DataError, match=message) as caught:
        loaded(folder, path, **fields)
    assert "\n" not in str(caught.value) and "cache" not in str(caught.value)


def zipped(path: Path, files: Mapping[str, str]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def book(path: Path, sheets: Mapping[str, list[tuple[Any, ...]]]) -> Path:
    import openpyxl

    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    made.close()
    return path


def database(path: Path, rows: list[tuple[Any, ...]] = ROWS) -> str:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table visits (number integer primary key, size real, colour, day text, state)")
        values = [(a, b, c, d.isoformat(), e) for a, b, c, d, e in rows]
        connection.executemany("insert into visits values (?, ?, ?, ?, ?)", values)
        connection.commit()
    return f"sqlite:///{path}"


def test_a_zip_with_one_table_or_several(tmp_path: Path) -> None:
    one = zipped(tmp_path / "one.zip", {"in/a.csv": "x,state\n1,u\n2,v\n", "__MACOSX/a.csv": "?", "in/.b": ""})
    assert loaded(tmp_path, one).X.tolist() == [[1], [2]]
    parts = {"in/b.csv": "state,x\nv,3\n", "in/a.csv": "x,state\n1,u\n2,v\n"}
    several = zipped(tmp_path / "several.zip", parts)
    assert loaded(tmp_path, several).X.tolist() == [[1], [2], [3]]
    # The files are told from one another by their names in the archive, whose other content changes nothing.
    before = inventory(snapshots.plain(FileSpec(str(several), label="state"), tmp_path / "cache"))
    zipped(several, {**parts, "in/c.csv": "x,state\n4,u\n"})
    after = inventory(snapshots.plain(FileSpec(str(several), label="state"), tmp_path / "cache"))
    assert [part.name for part in after] == ["a.csv", "b.csv", "c.csv"] and after[:2] == before
    texts = zipped(tmp_path / "mail.zip", {"ham/1.txt": "fine", "spam/2.txt": "awful"})
    assert loaded(tmp_path, texts, label=None).y.tolist() == ["ham", "spam"]


def test_archives_that_cannot_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("../a.csv", "/a.csv", "C:/a.csv", "..\\a.csv"):
        fails(
            tmp_path,
            r"a.zip holds '.*', which is outside the archive",
            zipped(tmp_path / "a.zip", {name: "x,state\n1,u\n"}),
        )
    fails(tmp_path, r"a.zip holds no files\.", zipped(tmp_path / "a.zip", {"__MACOSX/a.csv": ""}))
    (tmp_path / "b.zip").write_bytes((tmp_path / "a.zip").read_bytes()[:-9])
    fails(tmp_path, "b.zip: is damaged, truncated, unreadable, or not of format zip", tmp_path / "b.zip")
    mixed = zipped(tmp_path / "a.zip", {"a.csv": "x,state\n1,u\n", "b.tsv": "x\tstate\n1\tu\n"})
    fails(tmp_path, "a.zip: holds files of 2 formats", mixed)
    fails(tmp_path, "a.zip: column 'x' is text in row 2, counted from 1 without a header, 'y' first", zipped(
        tmp_path / "a.zip", {"a.csv": "x,state\n1,u\ny,v\n3,u\n4,v\n"})
    )  # fmt: skip
    monkeypatch.setattr(expansion, "FREE", 1000)
    monkeypatch.setattr(expansion, "FACTOR", 2)
    fails(tmp_path, "a.zip: expands to more than", zipped(tmp_path / "a.zip", {"a.csv": "x,state\n" + "1,u\n" * 9999}))
    assert not [*(tmp_path / "cache" / "snapshots").glob(".*")]


@pytest.mark.parametrize("header", [True, False])
def test_a_workbook_keeps_its_types(tmp_path: Path, header: bool) -> None:
    rows = [*([NAMES] if header else []), *ROWS, (None,) * 5]
    path = book(tmp_path / "clinic.xlsx", {"visits": rows, "empty": []})
    names = NAMES if header else tuple(f"c{i}" for i in range(5))
    data = loaded(tmp_path, path, label=names[-1], header=header)
    np.testing.assert_array_equal(data.X, CODES)
    assert data.y.tolist() == ["ill", "well", "ill"] and data.train.table is not None
    assert [(column.name, column.role) for column in data.train.table] == [
        (names[0], "number"), (names[1], "number"), (names[2], "category"), (names[3], "date"),
    ]  # fmt: skip


def test_what_is_not_installed_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, address = book(tmp_path / "a.xlsx", {"visits": [("x", "state")]}), database(tmp_path / "a.db")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    fails(tmp_path, r"needs openpyxl, which is not installed: pip install 'ldsvm\[excel\]'", path)
    fails(tmp_path, r"needs sqlalchemy, which is not installed: pip install 'ldsvm\[sql\]'", address, table="visits")


def test_sheets_are_named(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", {"old": [("x", "state"), (9, "u")], "new": [("x", "state"), (1, "u"), ("?", "v")]})
    assert loaded(tmp_path, path, sheet="new", missing_values=("?",)).X[0].tolist() == [1]
    fails(tmp_path, "a.xlsx: has the sheets 'old', 'new'; name one of them as dataset.sheet", path)
    fails(
        tmp_path,
        "a.xlsx: dataset.sheet is 'neu', but there is no such sheet, nearest 'new'; the sheets are",
        path,
        sheet="neu",
    )
    (tmp_path / "b.xlsx").write_text("no workbook")
    fails(tmp_path, "b.xlsx: is damaged, truncated, unreadable, or not of format xlsx", tmp_path / "b.xlsx")
    csv = tmp_path / "a.csv"
    csv.write_text("x,state\n1,u\n")
    fails(tmp_path, "a.csv: dataset.sheet does not apply to format csv", csv, sheet="new")


def test_a_table_of_a_database(tmp_path: Path) -> None:
    address = database(tmp_path / "clinic.db", ROWS[::-1])
    # Rows to score come from here also where the training's came from a text, whose separator means nothing then.
    data = loaded(tmp_path, address, table="visits", format="semicolon")  # in the order of its primary key
    np.testing.assert_array_equal(data.X, CODES)
    again = loaded(tmp_path, address, query="select number, state from visits where size > 1 or '%s' = ':a' order by 1")
    assert again.X.tolist() == [[1], [3]] and again.train.columns == ("number",)
    assert len([*(tmp_path / "cache" / "snapshots").iterdir()]) == 2
    loaded(tmp_path, address, table="visits")
    assert len([*(tmp_path / "cache" / "snapshots").iterdir()]) == 2  # the same content has the same name


def test_a_database_is_never_written_and_named_where_something_is_wrong(tmp_path: Path) -> None:
    address = database(tmp_path / "clinic.db")
    before = (tmp_path / "clinic.db").read_bytes()
    fails(tmp_path, "clinic.db: cannot be read .attempt to write a readonly", address, query="delete from visits")
    fails(tmp_path, "clinic.db: dataset.query returns no rows; allowed: a SELECT", address, query="begin")
    assert (tmp_path / "clinic.db").read_bytes() == before
    fails(tmp_path, "dataset.table is 'visit', which is not a table, nearest 'visits'", address, table="visit")
    for both in ({}, {"table": "visits", "query": "select 1"}):
        fails(tmp_path, "name one table as dataset.table, or give a SELECT .*; there are 'visits'", address, **both)
    fails(tmp_path, "no.db: there is no file .*no.db", f"sqlite:///{tmp_path}/no.db", table="visits")
    (tmp_path / "text.db").write_text("no database at all" * 99)
    fails(tmp_path, "text.db: cannot be read .file is not a database", f"sqlite:///{tmp_path}/text.db", table="a")
    empty = "select number, state from visits where size > 99"
    fails(tmp_path, "clinic.db holds column names but no rows", address, query=empty)


def test_large_tables_are_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldsvm.datasets.files.databases.ROWS", 2)
    data = loaded(tmp_path, database(tmp_path / "clinic.db"), table="visits")
    np.testing.assert_array_equal(data.X, CODES)
    assert data.source.startswith("2 Parquet files")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://me:12345@host/clinic", "without a password"),
        ("postgresql://host/clinic?user=me&password=12345", "without a password"),
        ("postgresql://host/clinic?sslpassword=12345", "without a password"),
        ("mysql://host/clinic", "allowed: sqlite:///FILE and postgresql://HOST/DATABASE"),
    ],
)
def test_addresses_that_are_refused_before_anything_keeps_them(address: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        check_address(address)
    assert "12345" not in str(caught.value) and is_address(address)
