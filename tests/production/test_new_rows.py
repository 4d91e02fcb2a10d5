"""New rows in what is no plain file: an archive with one more table, a database with later rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest

from ldsvm.datasets import DataError
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.production.new_rows import Changes, count_changes, find_new, mark, read

ROOT = Path(__file__).resolve().parents[2]


def config(folder: Path, *given: str) -> Config:
    return load_config("conf/own_table.yaml", [f"paths.cache={folder / 'cache'}", *given], root=ROOT)


def zipped(folder: Path, tables: dict[str, str]) -> None:
    with ZipFile(folder / "visits.zip", "w") as archive:
        for name, rows in tables.items():
            archive.writestr(f"{name}.csv", f"a,label\n{rows}")


def test_a_table_that_is_new_in_an_archive(tmp_path: Path) -> None:
    asked, tables = config(tmp_path, f"dataset.path={tmp_path / 'visits.zip'}"), {"1": "1,x\n2,y\n", "2": "3,x\n4,y\n"}
    zipped(tmp_path, tables)
    before = mark(read(asked))
    zipped(tmp_path, {"0": "5,x\n6,y\n7,x\n", **tables})
    reading = read(asked)
    new = find_new(asked, reading, before)
    assert new.tolist() == [True] * 3 + [False] * 4
    assert count_changes(reading, before, new) == Changes(3, before=4)
    zipped(tmp_path, {**tables, "1": "1,x\n9,y\n"})
    with pytest.raises(DataError, match=r"1\.csv has changed since the champion was trained"):
        find_new(asked, read(asked), before)


def test_rows_that_are_later_in_a_database(tmp_path: Path) -> None:
    def add(*rows: tuple[int, str, str]) -> None:
        with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
            connection.execute("create table if not exists visits (a, day, label)")
            connection.executemany("insert into visits values (?, ?, ?)", rows)
            connection.commit()

    asked = config(
        tmp_path, f"dataset.path=sqlite:///{tmp_path / 'a.db'}", "dataset.table=visits", "dataset.time=day",
        "split.kind=time",
    )  # fmt: skip
    add((1, "2024-03-01", "x"), (2, "2024-03-02", "y"))
    before = mark(read(asked))
    add((3, "2024-03-03", "x"))
    assert find_new(asked, read(asked), before).tolist() == [False, False, True]
