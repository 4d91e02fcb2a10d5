"""Tables of text in other styles: without names of columns, with other separators, with lines about the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldsvm.datasets import DataError
from ldsvm.datasets.files import FileSpec, opening, read
from ldsvm.datasets.files.csv_text import DELIMITERS
from ldsvm.datasets.files.dialect import has_header, look
from ldsvm.datasets.files.opening import Style
from ldsvm.datasets.files.streams import stream

ROWS = [["1.5", "red", "x"], ["-2", "dark blue", "y"], ["", "red", "x"]]


def write(folder: Path, text: str, name: str = "a.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.mark.parametrize("format", DELIMITERS)
@pytest.mark.parametrize("header", [True, False])
def test_every_separator_with_and_without_names(tmp_path: Path, format: str, header: bool) -> None:
    gap = "NaN" if format == "blanks" else ""
    sign = {"blanks": "   "}.get(format, DELIMITERS[format])
    lines = [sign.join([a or gap, f'"{b}"', c]) for a, b, c in ROWS]
    names = ["c0", "c1", "c2"] if not header else ["size", "colour", "kind"]
    ends = "  " if format == "blanks" else ""
    text = "\n".join([ends + line + ends for line in ([sign.join(names)] if header else []) + lines]) + "\n"
    path = write(tmp_path, text, "a.dat")
    spec = FileSpec(path, format=format, label=names[2], header=header)
    rows = read(spec).train
    assert rows.table is not None and [column.name for column in rows.table] == names[:2]
    np.testing.assert_array_equal(rows.X, [[1.5, 1], [-2, 0], [np.nan, 1]])
    assert rows.table[1].values == ("dark blue", "red") and rows.y.tolist() == ["x", "y", "x"]
    [batch] = stream(Path(path), format, header=header).batches(names[::-1], 10)
    assert batch.column(names[1]).to_pylist() == ["red", "dark blue", "red"] and batch.schema.names == names[::-1]
    found = look(FileSpec(path, label=names[2])).spec
    assert (found.format, found.header) == (format, header)


def test_semicolons_among_as_many_decimal_commas(tmp_path: Path) -> None:
    spec = look(FileSpec(write(tmp_path, "1,5;2,5;red\n2,25;3,5;blue\n1,5;2;red\n" * 3))).spec
    assert (spec.format, spec.header, spec.decimal, spec.label) == ("semicolon", False, ",", "c2")
    assert read(spec).train.X[:2].tolist() == [[1.5, 2.5], [2.25, 3.5]]


def test_a_file_without_names_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BLOCK", 64)
    monkeypatch.setattr(opening, "HEAD", 32)
    text = "".join(f"{row * 7 % 31}.5   {row}\t {row % 2}\n" for row in range(200))
    rows = read(FileSpec(write(tmp_path, text, "a.txt"), format="blanks", header=False, label="c2")).train
    np.testing.assert_array_equal(rows.X, [[row * 7 % 31 + 0.5, row] for row in range(200)])


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (["1.5,2,a", "2.5,1,b", "3,2,a"], False),
        (["x,y,kind", "2.5,1,b", "3,2,a"], True),
        (["1.5,2.25", "2.5,1", "3,2"], False),
        (["p,x,s", "e,x,s", "p,y,s", "e,x,s"], False),  # words that come back
        (["p,rare,s", "e,x,s", "p,y,s", "e,x,s", "p,x,t"], False),  # most of them
        (["a,b,c", "e,x,s", "p,y,s", "e,x,s", "p,y,s"], True),
        (["?,2,a", "2.5,1,b", "3,2,a"], False),  # a gap among numbers is no name
        (["400.5,401.25,kind", "2.5,1,b", "3,2,a", "4,2,a", "7,1,b"], True),  # wavelengths: no row has "kind"
        (["0,1,2", "3,4,x", "5,2,y"], True),
        (["2019,2020", "3,4", "5,2"], True),
        (["1,2,a"], True),  # nothing below to compare with
        (["@relation r", "@attribute u real", "@attribute v {a,b}", "@data", "1,a", "2,b"], True),
    ],
)  # fmt: skip
def test_what_the_first_line_is(tmp_path: Path, lines: list[str], header: bool) -> None:
    assert has_header(Path(write(tmp_path, "\n".join(lines) + "\n")), Style()) == header


def test_without_names_the_last_column_is_the_label(tmp_path: Path) -> None:
    for name in ("a.csv", "b.data"):
        path = write(tmp_path, "1.5, 2, a\n2.5, 1, b\n3, 2, a\n" * 4, name)
        found = look(FileSpec(path))
        assert (found.spec.label, found.spec.header) == ("c2", False)
        assert found.sentences == (
            "The columns are c0 to c2: the first line holds values, not names.",
            "The last one, c2, is used as the label; choose another with --label.",
        )
    (tmp_path / "a.csv").unlink()
    spec = look(FileSpec(str(tmp_path))).spec  # a folder of files with such a name
    assert (spec.format, spec.label) == ("csv", "c2") and read(spec).train.y.tolist()[:2] == ["a", "b"]
    assert look(FileSpec(path), header=True).columns.keys() == {"1.5", "2", "a"}  # type: ignore[union-attr]
    with pytest.raises(
        DataError, match=r"b\.data: row 2, counted from 1 without a header, has 2 fields, but the first row has 3"
    ):
        read(FileSpec(write(tmp_path, "1,2,3\n1,2\n", "b.data"), format="csv", header=False, label="c2"))
    with pytest.raises(
        DataError,
        match=r"cannot be read as a table; allowed: fields separated by commas, semicolons, tabs, \| or blanks",
    ):
        look(FileSpec(write(tmp_path, "1,2,3\n1;2\n", "b.data")))


@pytest.mark.parametrize("header", [True, False])
def test_lines_about_the_columns_give_their_names(tmp_path: Path, header: bool) -> None:
    text = """% from a repository
@relation plants
@attribute 'leaf size' real [0.1, 7.9]
@attribute Colour{red, green}
@attribute Class {rose, lily}
@inputs leaf size, Colour
@outputs Class
@data
1.5, red, rose
2, green, lily
"""
    path = write(tmp_path, text, "plants.dat")
    for spec in (look(FileSpec(path, label="Class")).spec, FileSpec(path, format="csv", label="Class", header=header)):
        rows = read(spec).train
        assert rows.X.tolist() == [[1.5, 1], [2, 0]] and rows.y.tolist() == ["rose", "lily"]
        assert rows.columns == ("leaf size", "Colour")


def test_spaces_around_names_and_values_are_no_part_of_them(tmp_path: Path) -> None:
    path = write(tmp_path, " size, colour , kind\n 1, red, <=50K\n2,red ,>50K \n 3,blue, <=50K \n")
    rows = read(FileSpec(path, label="kind")).train
    assert rows.y.tolist() == ["<=50K", ">50K", "<=50K"] and rows.columns == ("size", "colour")
    assert rows.X.tolist() == [[1, 1], [2, 1], [3, 0]]
    assert read(FileSpec(path, label="kind", text="colour")).train.X.tolist() == [" red", "red ", "blue"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"header": False}, "dataset.header does not apply to format parquet; leave dataset.header out"),
        ({"encoding": "latin-1"}, "dataset.encoding does not apply to format parquet"),
    ],
)
def test_keys_of_text_are_refused_for_other_tables(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=message):
        read(FileSpec(str(tmp_path / "a.parquet"), **fields))
