"""Quotation marks that close a field in its middle, against the reader of Python's own library."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import FileSpec, opening, quotes, read
from ldsvm.datasets.files.csv_text import DELIMITERS
from ldsvm.datasets.files.dialect import look


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [5, 7, 64])
def test_quotation_marks_that_close_nothing(block: int, end: str) -> None:
    # Python's reader, told to be strict, is the judge: it too refuses what follows a closing mark, but for spaces.
    pieces = ['"', '""', "\\", "ab", ",", ",", end, end]
    draw = np.random.default_rng(block)
    counts = {True: 0, False: 0}
    for _ in range(1000):
        text = "".join(draw.choice(pieces, size=draw.integers(1, 12)))
        try:
            list(csv.reader(io.StringIO(text + end, newline=""), strict=True))
            good = True
        except csv.Error as error:
            good = "expected after" not in str(error)
        try:
            quotes.check(io.BytesIO(text.encode()), Path("a.csv"), ",", block)
            accepted = True
        except DataError:
            accepted = False
        assert accepted == good, text
        counts[good] += 1
    assert min(counts.values()) > 100


def test_marks_inside_fields_that_do_not_start_with_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\na 5" pipe,0\n"a ""5\\"" pipe" ,1\nso "called",0\n')
    assert read(FileSpec(str(path), text="text")).train.X.tolist() == ['a 5" pipe', 'a "5\\" pipe ', 'so "called"']


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_single_quotes_around_all_values_of_a_column_are_no_part_of_them(
    tmp_path: Path, delimiter: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python's reader, told that ' quotes, is the judge.
    rows = [
        ["size", "kind", "label"],
        *([f"'{i}.5'", f"'a{delimiter}\"{i % 2}\"'", f"'{i % 2 - 1}'"] for i in range(30)),
    ]
    text = ending.join(delimiter.join(row) for row in rows) + ending
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    expected = [*csv.reader(text.splitlines(), delimiter=delimiter, quotechar="'")][1:]
    format = next(name for name, mark in DELIMITERS.items() if mark == delimiter)
    monkeypatch.setattr(opening, "BLOCK", 64)
    for file in (path, gzipped(path)):
        found = read(FileSpec(str(file), format=format)).train
        assert found.table is not None and found.y.tolist() == [int(row[2]) for row in expected]
        assert found.X[:, 0].tolist() == [float(row[0]) for row in expected]
        assert [found.table[1].values[int(code)] for code in found.X[:, 1]] == [row[1] for row in expected]
        assert any("Single quotes" in said for said in look(FileSpec(str(file), format=format)).sentences)


def gzipped(path: Path) -> Path:
    file = path.with_name(f"{path.name}.gz")
    file.write_bytes(gzip.compress(path.read_bytes()))
    return file


def test_rows_without_the_column_that_is_quoted_throughout_are_read_as_those_with_it(tmp_path: Path) -> None:
    # as the rows that a model is asked about lack the label
    path, rows = tmp_path / "a.csv", ["'a, b',x", "?,y", "c,x", "'a, b',y", "?,x", "c,y"] * 3
    path.write_text("\n".join(["kind,label", *(f"{row[:-1]}'{row[-1]}'" for row in rows)]) + "\n")
    found = read(FileSpec(str(path), missing_values=("?",))).train
    path.write_text("\n".join(["kind,label", *rows]) + "\n")
    some = read(FileSpec(str(path), missing_values=("?",))).train
    assert found.table is not None and some.table is not None
    assert found.table[0].values == some.table[0].values == ("a, b", "c")


def test_an_apostrophe_is_no_quotation_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("kind,label\n'tis,0\nb,1\n5',1\n\"it's, 'c'\",0\n")
    found = read(FileSpec(str(path))).train
    assert found.table is not None and found.table[0].values == ("'tis", "5'", "b", "it's, 'c'")
    assert look(FileSpec(str(path))).sentences == ()
