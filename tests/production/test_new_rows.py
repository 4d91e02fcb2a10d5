"""New rows in an archive, in a database, and in files that have other names by now, or more rows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pytest

from ldsvm.datasets import DataError, Rows
from ldsvm.datasets.column import Column
from ldsvm.datasets.duplicates import content_keys
from ldsvm.datasets.stored_texts import StoredTexts
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.production import new_rows, retraining
from ldsvm.production.new_rows import Changes, Mark, count_changes, find_new, mark, read

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
    assert find_new(asked, read(asked), before).tolist() == [False, True, False, False]  # by content
    with pytest.raises(DataError, match=r"1\.csv has changed since the champion was trained"):
        find_new(asked, read(asked), replace(before, keys=None))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["another name", "more rows in the file"])
def test_rows_of_the_training_are_known_wherever_they_lie(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(file: Path, numbers: range | list[int]) -> None:  # codes of towns differ: Aachen comes first, but later
        towns = ["Bonn", "Ulm", ""] * 20 + ["Aachen", "Ulm"] * 5
        made = (f"{i % 7},{1 + i % 28}.5.2024,{towns[i]},about {i % 9} of them,{'xy'[i % 2]}\n" for i in numbers)
        file.write_text("".join(["size,day,town,note,label\n", *made]))

    def asked(file: Path) -> Config:
        return config(tmp_path, f"dataset.path={file}", "dataset.columns={note: text}")

    first, later = tmp_path / "a.csv", tmp_path / ("b.csv" if how == "another name" else "a.csv")
    write(first, range(60))
    before = Mark(**json.loads(json.dumps(asdict(mark(read(asked(first)))))))
    write(later, range(70))
    reading = read(asked(later))
    assert reading.source.data.train.columns == ("size", "day", "town", "note")
    found = find_new(asked(later), reading, before)
    assert found.tolist() == [False] * 60 + [True] * 10
    assert count_changes(reading, before, found) == Changes(10, before=60, repeated=60)
    write(later, [*range(50), *range(60, 70)])
    reading = read(asked(later))
    assert count_changes(reading, before, find_new(asked(later), reading, before)) == Changes(10, 60, 10, repeated=50)
    monkeypatch.setattr(new_rows, "KEPT", 59)
    assert mark(reading).keys is None


def test_keys_of_texts_that_lie_in_a_file_are_those_of_texts_in_memory() -> None:
    words, codes = ["so", "it goes", "on"], np.array([[2.0], [0.0], [np.nan], [1.0]])
    stored = StoredTexts.written([pa.array(words[:1]), pa.array(words[1:])])
    keys = [content_keys(Rows(codes, np.arange(4), table=(Column("a", "text", of),))) for of in (words, stored)]
    np.testing.assert_array_equal(*keys)
    assert len(np.unique(keys[0])) == 4


def test_rows_in_other_files_are_new_where_their_keys_were_not_kept_and_it_is_said(tmp_path: Path) -> None:
    tables = {"1": "1,x\n2,y\n3,x\n4,y\n"}
    zipped(tmp_path, tables)
    asked = config(tmp_path, f"dataset.path={tmp_path / 'visits.zip'}")
    before = replace(mark(read(asked)), keys=None)
    zipped(tmp_path, {"2": f"{tables['1']}5,x\n"})
    reading = read(asked)
    changes = count_changes(reading, before, find_new(asked, reading, before))
    assert changes == Changes(5, before=4, lost=4, by_file=True)
    said = retraining.decide(ProductionConfig(model="m"), changes, None).sentence
    assert "Rows of the champion that are now in other files count as new, since it was trained on more" in said


@pytest.mark.slow
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
