"""Tables in every format against the numbers an independent writer was given, and one sentence for every fault."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import FileSpec, opening, read
from ldsvm.datasets.files.dialect import look

# Unequal values everywhere; None is a missing value.
HEADER = ["age", "weight", "outcome"]
ROWS: list[list[Any]] = [[61, 70.5, "ill"], [None, 1e-3, "well"], [3, None, "ill"], [-7, 2.25, "well"]]
NAN = float("nan")
X = np.array([[61, 70.5], [NAN, 1e-3], [3, NAN], [-7, 2.25]], dtype=np.float32)


def table(rows: list[list[Any]] = ROWS, header: list[str] = HEADER) -> Any:
    return pa.Table.from_arrays([pa.array(list(column)) for column in zip(*rows, strict=True)], names=header)


def separated(delimiter: str, encoding: str = "utf-8") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with path.open("w", newline="", encoding=encoding) as stream:
            csv.writer(stream, delimiter=delimiter).writerows([HEADER, *ROWS])

    return write


def zipped(path: Path) -> None:
    plain = path.with_suffix("")
    separated(",")(plain)
    data, ending = plain.read_bytes(), path.suffix
    compress: Any = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(ending)
    path.write_bytes(compress(data) if compress else pa.compress(data, "zstd", asbytes=True))
    plain.unlink()


def stream(path: Path) -> None:
    with pa.ipc.new_stream(path, table().schema) as writer:
        writer.write_table(table())


def ipc_file(path: Path) -> None:
    with pa.ipc.new_file(path, table().schema) as writer:
        writer.write_table(table())


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.parquet": lambda path: pq.write_table(table(), path),
    "a.csv": separated(","),
    "bom.csv": separated(",", "utf-8-sig"),
    "a.tsv": separated("\t"),
    "a.csv.gz": zipped,
    "a.csv.bz2": zipped,
    "a.csv.xz": zipped,
    "a.csv.zst": zipped,
    "a.arrow": ipc_file,
    "stream.arrow": stream,
    "a.feather": lambda path: feather.write_feather(table(), str(path), compression="zstd"),
}


def write(folder: Path, text: str, name: str = "a.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def fails(message: str, path: str, **fields: Any) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(FileSpec(path, **fields))
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_table(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    raw = read(FileSpec(str(tmp_path / name), label="outcome"))
    np.testing.assert_array_equal(raw.train.X, X)
    assert raw.train.X.dtype == np.float32 and raw.train.X.flags.c_contiguous
    assert raw.train.y.tolist() == ["ill", "well", "ill", "well"] and raw.train.columns == ("age", "weight")
    assert raw.test is None and raw.source == f"{name}, label column outcome."
    assert str(tmp_path) not in raw.source


def test_format_by_name_or_given(tmp_path: Path) -> None:
    WRITERS["a.csv"](tmp_path / "data.txt")
    fails(
        "data.txt: its format is unclear from its name; set dataset.format to one of parquet",
        str(tmp_path / "data.txt"),
    )
    raw = read(FileSpec(str(tmp_path / "data.txt"), format="csv", label="outcome"))
    np.testing.assert_array_equal(raw.train.X, X)
    fails(
        "dataset.format='parket' is unknown, nearest 'parquet': use one of parquet, csv",
        str(tmp_path / "data.txt"),
        format="parket",
    )


def test_a_folder_and_a_glob_are_read_in_order_of_name_with_columns_by_name(tmp_path: Path) -> None:
    # Written in another order than that of the names, the second file with its columns turned round.
    pq.write_table(table(ROWS[2:]).select(HEADER[::-1]), tmp_path / "b.parquet")
    pq.write_table(table(ROWS[:2]), tmp_path / "a.parquet")
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / ".hidden.parquet").write_bytes(b"no table")
    for path in (str(tmp_path), str(tmp_path / "*.parquet")):
        raw = read(FileSpec(path, label="outcome"))
        np.testing.assert_array_equal(raw.train.X, X)
        assert raw.train.y.tolist() == ["ill", "well", "ill", "well"]
        assert raw.source == "2 Parquet files, label column outcome."


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    pq.write_table(table(), tmp_path / "year=2024" / "a.parquet")
    assert read(FileSpec(str(tmp_path / "year=2024"), label="outcome")).train.columns == ("age", "weight")


def test_official_test_set_has_the_columns_of_the_training_set(tmp_path: Path) -> None:
    train = write(tmp_path, "a,b,label\n1,2,0\n3,4,1\n")
    test = write(tmp_path, "label,b,a\n1,5,6\n", "t.csv")
    raw = read(FileSpec(train, test))
    assert raw.test is not None and raw.test.X.tolist() == [[6, 5]] and raw.test.y.tolist() == [1]
    assert raw.test.columns == raw.train.columns == ("a", "b") and raw.source.startswith("a.csv, test set t.csv, ")
    fails(
        r"no_b.csv: column 'b' is missing; .*a\.csv has it",
        train,
        test_path=write(tmp_path, "a,label\n1,0\n", "no_b.csv"),
    )
    more = write(tmp_path, "a,b,c,label\n1,2,3,0\n", "more.csv")
    fails(r"more.csv has a column 'c', which .*a\.csv lacks", train, test_path=more)
    assert read(FileSpec(train, more, columns=("b",))).test.X.tolist() == [[2]]  # type: ignore[union-attr]
    words = write(tmp_path, "a,b,label\n1,2,yes\n", "words.csv")
    fails("labels differ: whole numbers in the training set .* but text in the test set", train, test_path=words)


def test_files_of_one_set_must_have_the_same_columns(tmp_path: Path) -> None:
    write(tmp_path, "a,b,label\n1,2,0\n", "1.csv")
    write(tmp_path, "a,label\n1,0\n", "2.csv")
    fails(r"2\.csv: column 'b' is missing; .*1\.csv has it", str(tmp_path))
    write(tmp_path, "a,b,c,label\n1,2,3,0\n", "2.csv")
    fails(r"2\.csv has a column 'c', which .*1\.csv lacks", str(tmp_path / "*.csv"))


def test_columns_keep_the_order_given_and_drop_leaves_out(tmp_path: Path) -> None:
    path = write(tmp_path, "id,a,b,label\nx,1,2,0\ny,3,4,1\n")
    assert read(FileSpec(path, columns=("b", "a"))).train.X.tolist() == [[2, 1], [4, 3]]
    raw = read(FileSpec(path, drop=("id",)))
    assert raw.train.X.tolist() == [[1, 2], [3, 4]] and raw.train.columns == ("a", "b")


def every_type() -> dict[str, Any]:
    return {
        "bool": pa.array([True, None, False]),
        "int8": pa.array([-3, None, 4], pa.int8()),
        "uint64": pa.array([2**24 + 1, None, 0], pa.uint64()),  # float32 cannot hold it exactly
        "half": pa.array(np.array([1.5, np.nan, 2], dtype=np.float16)),
        "double": pa.array([0.1, float("nan"), None]),
        "decimal": pa.array([Decimal("1.25"), None, Decimal("-2")]),
        "nothing": pa.nulls(3),
        "coded": pa.array([7, None, 9]).dictionary_encode(),
    }


def test_every_type_of_number_becomes_float32(tmp_path: Path) -> None:
    columns = every_type()
    pq.write_table(pa.table({**columns, "label": [0, 1, 0]}), tmp_path / "a.parquet")
    raw = read(FileSpec(str(tmp_path / "a.parquet")))
    for place, (name, column) in enumerate(columns.items()):
        slow = [NAN if value is None else float(value) for value in column.to_pylist()]
        np.testing.assert_array_equal(raw.train.X[:, place], np.array(slow, dtype=np.float32), name)
    assert raw.train.columns == tuple(columns)


LISTS: list[Any] = [[1.0, 2.0, 3.0], [4.0, None, 6.0], None, [7.0, 8.0, 9.0]]
EXPECTED = np.array([[1, 2, 3], [4, NAN, 6], [NAN, NAN, NAN], [7, 8, 9]], dtype=np.float32)


@pytest.mark.parametrize(
    "type", [pa.list_(pa.float64()), pa.large_list(pa.int16()), pa.list_(pa.float32(), 3)], ids=str
)
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_column_of_lists_is_the_matrix(tmp_path: Path, type: Any, pieces: int) -> None:
    table = pa.table({"x": pa.array(LISTS, type), "label": [0, 1, 0, 1]})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=4 // pieces)
    raw = read(FileSpec(str(tmp_path / "a.arrow")))
    np.testing.assert_array_equal(raw.train.X, EXPECTED)
    assert raw.train.columns == ("x[0]", "x[1]", "x[2]")


def test_a_column_of_lists_of_fixed_size_is_not_copied(tmp_path: Path) -> None:
    values = np.arange(60_000, dtype=np.float32).reshape(20_000, 3)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 3)
    spec = FileSpec(str(tmp_path / "a.arrow"))
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema({"x": lists.type, "label": pa.int8()})) as writer:
        writer.write_table(pa.table({"x": lists, "label": pa.array(np.arange(20_000) % 2, pa.int8())}))
    before = pa.total_allocated_bytes()
    X = read(spec).train.X
    np.testing.assert_array_equal(X, values)
    assert not X.flags.owndata and pa.total_allocated_bytes() - before < X.nbytes / 2  # the file itself is mapped


def test_lists_in_parquet(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 3)
    pq.write_table(pa.table({"x": lists, "label": [0, 1, 0, 1]}), tmp_path / "a.parquet", row_group_size=3)
    np.testing.assert_array_equal(read(FileSpec(str(tmp_path / "a.parquet"))).train.X, values)


def test_lists_and_numbers_side_by_side(tmp_path: Path) -> None:
    columns = {"a": [10, 20, 30, 40], "x": pa.array(LISTS), "b": [5, 6, 7, 8], "label": [0, 1, 0, 1]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    raw = read(FileSpec(str(tmp_path / "a.parquet")))
    np.testing.assert_array_equal(raw.train.X, np.column_stack([columns["a"], EXPECTED, columns["b"]]))
    assert raw.train.columns == ("a", "x[0]", "x[1]", "x[2]", "b")


def test_faulty_lists_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [[1, 2], [3], [4, 5], [6]], "label": [0, 1, 0, 1]}), path)
    fails(
        "column 'x' holds lists of 2 numbers, but 1 in rows 2, 4, "
        "counted from 1 without a header; all must have one length",
        str(path),
    )
    pq.write_table(pa.table({"x": [["1", "2"], ["3", "4"]], "label": [0, 1]}), path)
    fails(r"column 'x' is of type list<.*string>, but inputs must be numbers", str(path))
    pq.write_table(pa.table({"x": pa.array([[], []], pa.list_(pa.float32())), "label": [0, 1]}), path)
    fails("column 'x' holds lists without numbers", str(path))


def test_quoted_texts_keep_line_breaks_and_texts_stay_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [["007", 'she said "so",\nand left', 1], ["8", "", 0], ["9", "NA", 1]]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["code", "words", "label"], *rows])
    raw = read(FileSpec(str(path), text="words"))
    assert raw.train.X.tolist() == [row[1] for row in rows] and raw.train.kind == "text" and raw.train.columns is None
    assert read(FileSpec(str(path), text="code")).train.X.tolist() == ["007", "8", "9"]


def test_quoted_line_breaks_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BLOCK", 64)
    texts = [f"{row}\n" * (row % 7) for row in range(50)]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["words", "label"], *([text, row % 2] for row, text in enumerate(texts))])
    assert read(FileSpec(str(tmp_path / "a.csv"), text="words")).train.X.tolist() == texts


def test_a_missing_text_is_empty(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": ["a", None], "label": [0, 1]}), tmp_path / "a.parquet")
    assert read(FileSpec(str(tmp_path / "a.parquet"), text="t")).train.X.tolist() == ["a", ""]


def test_latin_1_where_it_is_no_utf_8(tmp_path: Path) -> None:
    # The header too; and the byte of Ã at the very end is the start of a longer UTF-8 sign.
    for text in ("größe,label\n1,für\n2,über\n", "a,label\n1,x\n2,Ã"):
        (tmp_path / "a.csv").write_bytes(text.encode("latin-1"))
        raw = read(FileSpec(str(tmp_path / "a.csv")))
        assert raw.train.columns == (text.split(",")[0],) and raw.train.y.tolist() == [
            line[2:] for line in text.split("\n")[1:3]
        ]


def test_a_type_without_a_role_is_refused(tmp_path: Path) -> None:
    table = pa.table({"city": ["x", "y"], "part": [{"a": 1}, {"a": 2}], "label": [0, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    fails("column 'part' is of type struct.*; allowed: numbers, words, yes/no, dates", str(tmp_path / "a.parquet"))


COMMA = 'set dataset.decimal to "," if the comma is the decimal mark'


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (["1,5", "2,25", "3"], COMMA),
        (["1,234", "12"], COMMA + ', or dataset.thousands to "," if it separates thousands'),
        (
            ["1.234,5", "1.234.567,5"],
            r'set dataset.thousands to "\."',
        ),
        (["1,234,567.8", "12"], 'set dataset.thousands to ","'),
        (["1 234", "12"], 'set dataset.thousands to " "'),
        (["1’234.5", "12"], 'set dataset.thousands to "\'"'),
        (["12%", "1.5 %", "3"], "write % in all cells or in none"),
        (["1", "?", " - ", "3"], r"list '\?', '-' in dataset.missing_values if that marks missing values"),
        (
            ["1,5", "?", "3"],
            COMMA + r"; list '\?' in dataset.missing_values if that marks missing values",
        ),
        (["1,5", "red", "3"], "list these columns in dataset.drop"),
    ],
    ids=str,
)
def test_numbers_in_other_spellings_have_a_remedy(tmp_path: Path, values: list[str], remedy: str) -> None:
    path = write(tmp_path, "a;label\n" + "".join(f"{value};{row % 2}\n" for row, value in enumerate(values)))
    fails(rf"column 'a' is text.*, but inputs must be numbers; {remedy}[^;]*\.$", path, format="semicolon")


def test_decimal_commas_and_marks_of_missing_values_are_read_where_they_are_named(tmp_path: Path) -> None:
    text = "when;a;b;label\n10,5;1,5;?;1\n9,5;-2,25e1; - ;0\n8;3;-999;1\n7;;-999,0;0\n"
    keys: dict[str, Any] = {"decimal": ",", "missing_values": ("?", "-", -999), "time": "when"}
    found = read(FileSpec(write(tmp_path, text), format="semicolon", **keys)).train
    np.testing.assert_array_equal(found.X, [[1.5, NAN], [-22.5, NAN], [3, NAN], [NAN, NAN]])
    assert found.times is not None and found.times.tolist() == [10.5, 9.5, 8, 7] and found.y.tolist() == [1, 0, 1, 0]
    quoted = write(tmp_path, 'a,label\n"1,5",0\n2,1\n')
    assert read(FileSpec(quoted, decimal=",")).train.X.tolist() == [[1.5], [2]]
    # Numbers in columns of texts, and a mark as another type of number holds it.
    held = {"a": ["1,5", "?"], "b": pa.array([-99.99, 2], pa.float32()), "c": [0.5, -99.99], "label": [0, 1]}
    pq.write_table(pa.table(held), tmp_path / "a.parquet")
    spec = FileSpec(str(tmp_path / "a.parquet"), decimal=",", missing_values=("?", -99.99))
    np.testing.assert_array_equal(read(spec).train.X, [[1.5, NAN, 0.5], [NAN, 2, NAN]])


@pytest.mark.parametrize(
    ("thousands", "decimal", "values"),
    [
        (",", None, ["1,234.5", "-12", "1,234,567", "?"]),
        (".", ",", ["1.234,5", "-12", "1.234.567", "?"]),
        (".", None, ["1.234,5", "-12", "1.234.567", "?"]),
        (" ", ",", ["1 234,5", "-12", "1\u202f234\u00a0567", "?"]),
        ("'", ".", ["1'234.5", "-12", "1’234’567", "?"]),
    ],
)
def test_marks_of_thousands_are_read_and_found_out(
    tmp_path: Path, thousands: str, decimal: str | None, values: list[str]
) -> None:
    path = write(tmp_path, "a;label\n" + "".join(f"{value};{row % 2}\n" for row, value in enumerate(values)))
    keys: dict[str, Any] = {"missing_values": ("?",), "thousands": thousands, "decimal": decimal}
    found = read(FileSpec(path, format="semicolon", **keys)).train
    np.testing.assert_array_equal(found.X[:, 0], np.float32([1234.5, -12, 1234567, NAN]))
    spec = look(FileSpec(path)).spec
    comma = "," if "4,5" in values[0] else None
    assert (spec.thousands, spec.decimal, spec.missing_values) == (thousands, comma, ("?",))
    np.testing.assert_array_equal(read(spec).train.X, found.X)
    path = write(tmp_path, "a;label\n1;0\n2;1\n1,23,4;0\n7;1\n")
    fails(
        "column 'a' is text in row 3, counted from 1 without a header, '1,23,4' first, but inputs",
        path,
        format="semicolon",
        **keys,
    )


def test_thousands_where_no_decimals_tell_them_from_fractions(tmp_path: Path) -> None:
    # Only another column says that 1.234 is a thousand; nothing does for 1,234.
    path = write(tmp_path, "a;b;label\n1.234;10,5;u\n2.500;9,5;v\n3;8;u\n")
    spec = look(FileSpec(path)).spec
    assert (spec.thousands, spec.decimal) == (".", ",")
    assert read(spec).train.X.tolist() == [[1234, 10.5], [2500, 9.5], [3, 8]]
    spec = look(FileSpec(write(tmp_path, 'a,label\n"1,234",u\n2,v\n'))).spec
    assert (spec.thousands, spec.decimal) == (None, None)
    assert look(replace(spec, decimal=".")).spec.thousands == ","
    fails("dataset.thousands and dataset.decimal are both ','", path, decimal=",", thousands=",")
    fails("dataset.thousands='_' is unknown; allowed: ',', '.', ' ' and \"'\"", path, thousands="_")


def test_where_the_comma_is_the_decimal_mark_a_point_is_no_number(tmp_path: Path) -> None:
    def refused(values: list[str], remedy: str) -> None:  # 1.234 may be a thousand
        path = write(tmp_path, "a;label\n" + "".join(f"{value};{row % 2}\n" for row, value in enumerate(values)))
        fails(f"column 'a' is text.*; {remedy}", path, format="semicolon", decimal=",")

    refused(["1.234", "2.345"], 'set dataset.thousands to "." if 1.234 is a thousand, and write 1,5 where 1.5 is meant')
    refused(["1,5", "2.5", "3"], "write all decimals with a comma, 1,5 and not 1.5")
    fails("dataset.decimal=';' is unknown; allowed: '.' and ','", write(tmp_path, "a,label\n1,0\n"), decimal=";")


def test_a_stray_word_is_found_by_its_row(tmp_path: Path) -> None:
    numbers = [str(number) for number in range(20)]
    for row in (3, 7, 8, 11, 12, 19):
        numbers[row] = '"12,abc"'
    numbers[4], numbers[5] = "", "NaN"  # missing, not stray
    path = write(tmp_path, "a,label\n" + "".join(f"{number},{row % 2}\n" for row, number in enumerate(numbers)))
    fails(
        "column 'a' is text in rows 4, 8, 9, 12, 13 and 1 more, "
        "counted from 1 without a header, '12,abc' first, but inputs must be numbers",
        path,
    )
    mostly = read(FileSpec(write(tmp_path, "a,label\n12,0\nred,1\ngreen,0\n")))
    assert mostly.train.table is not None and mostly.train.table[0].values == ("12", "green", "red")
    secret = "a word that is longer than any number"
    with pytest.raises(
        DataError, match="column 'a' is text in row 2, counted from 1 without a header, but inputs"
    ) as caught:
        read(FileSpec(write(tmp_path, f"a,label\n1,0\n{secret},1\n3,0\n4,1\n")))
    assert secret not in str(caught.value)


def test_values_beyond_float32_are_found_by_their_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,label\n1,2,0\n1,1e39,1\n1,3.4e38,0\n1,-1e300,1\n1,,0\n")
    fails(
        r"column 'b' is infinite or beyond ±3.4e38, the range of float32, in rows 2, 4, "
        r"counted from 1 without a header; allowed",
        path,
    )
    assert read(FileSpec(path, drop=("b",))).train.X.tolist() == [[1]] * 5
    pq.write_table(pa.table({"x": [[1.0, 2.0], [3.0, 1e39]], "label": [0, 1]}), tmp_path / "a.parquet")
    fails("column 'x' is infinite .* in row 2, counted from 1 without a header", str(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "dataset.label names 'label', which is not a column: the columns are 'id', 'age', 'sex', 'when', 'klass'"),
        ({"label": "class"}, "dataset.label names 'class', which is not a column, nearest 'klass': the columns are"),
        ({"label": "c8"}, r"'c8', which is not a column: .*\. With header: false they are c0, c1 and so on\.$"),
        (
            {"label": "klass", "columns": ("aeg",)},
            "dataset.columns names 'aeg', which is not a column, nearest 'age': the columns are",
        ),
        (
            {"label": "klass", "drop": ("idd",)},
            "dataset.drop names 'idd', which is not a column, nearest 'id': the columns are",
        ),
        (
            {"label": "klass", "group": "sax"},
            "dataset.group names 'sax', which is not a column, nearest 'sex': the columns are",
        ),
        (
            {"label": "klass", "time": "wehn"},
            "dataset.time names 'wehn', which is not a column, nearest 'when': the columns are",
        ),
        ({"label": "klass", "text": "txt"}, "dataset.text names 'txt', which is not a column: the"),
        ({"label": "klass", "columns": ("age", "age")}, "dataset.columns names 'age' twice"),
        ({"label": "klass", "columns": ("age", "klass")}, "'klass' is both dataset.label and dataset.columns"),
        ({"label": "klass", "drop": ("klass",)}, "'klass' is both dataset.drop and dataset.label"),
        ({"label": "klass", "drop": ("age",), "columns": ("age",)}, "'age' is both dataset.drop and dataset.columns"),
        ({"label": "klass", "text": "sex", "columns": ("age",)}, "dataset.text and dataset.columns are both given"),
        (
            {"label": "klass", "text": "age"},
            "dataset.text 'age' holds numbers; dataset.text must name a column of text",
        ),
        ({"label": "klass", "drop": ("id", "age", "sex", "when")}, "no input column is left"),
    ],
    ids=str,
)
def test_names_that_are_absent_or_clash(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    pq.write_table(
        pa.table({"id": [1], "age": [2], "sex": ["f"], "when": ["2001-01-01"], "klass": [0]}), tmp_path / "a.parquet"
    )
    fails(message, str(tmp_path / "a.parquet"), **fields)


def test_at_most_ten_columns_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, ",".join(f"c{place}" for place in range(25)) + "\n" + ",".join(["1"] * 25) + "\n")
    fails("dataset.label names 'label', which is not a column: the columns are 'c0', .*'c9' and 15 more", path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,a,label\n1,2,3,0\n", "the column 'a' occurs 2 times"),
        (
            ",a,label\n0,1,0\n",
            r"column 0 has no name \(''\), so it seems to hold row numbers; list it in dataset.drop, or",
        ),
        ("Unnamed: 0,a,label\n0,1,0\n", r"column 0 has no name \('Unnamed: 0'\), so it seems to hold row numbers"),
        ("a,Unnamed: 0.1,label\n0,1,0\n", r"column 1 has no name \('Unnamed: 0.1'\)"),
        ("", r"a\.csv is empty; a table needs column names and at least one row\.$"),
        ("\n", r"a\.csv is empty; a table needs"),
        ("a,label\n", r"a\.csv holds column names but no rows; at least one row is needed\.$"),
        (
            "a,b,label\n1,2,0\n3,4,1\nsecret,5\n6,7,1\n",
            "a.csv: row 3, counted from 1 without a header, has 2 fields, but the header has 3; quote",
        ),
        (
            "Of 2024\na,b,label\n1,2,0\n",
            "a.csv: row 1, "
            "counted from 1 without a header, has 3 fields, but the header has 1; remove lines, such as a title",
        ),
        (
            'a,label\n1,x\n2,"y\n3,z\n',
            r'a quotation mark \("\) in row 2, counted from 1 without a header, is never closed',
        ),
        (
            'a,label\n\n1,x\n2,"so \\"y\\" z"\n',
            "no separator follows a closing quotation mark .* in row 2, counted from 1 without a header; a mark inside",
        ),
        (
            'a,label\r\n1,"x\\""\r\n2,"y"\r\n3,z\r\n',
            "no separator follows a closing quotation mark .* in row 1, counted from 1 without a header",
        ),
        ('a,"la"bel\n1,x\n', "no separator follows a closing quotation mark .* in the header"),
    ],
)
def test_faulty_csv_files(tmp_path: Path, content: str, message: str) -> None:
    fails(message, write(tmp_path, content))
    with pytest.raises(DataError) as caught:
        read(FileSpec(str(tmp_path / "a.csv")))
    assert "secret" not in str(caught.value)


def test_a_row_index_without_a_name_may_be_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, ",a,label\n0,5,0\n1,6,1\n")
    assert read(FileSpec(path, drop=("",))).train.X.tolist() == [[5], [6]]
    assert read(FileSpec(path, columns=("a",))).train.X.tolist() == [[5], [6]]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_the_index_of_a_table_of_pandas_is_no_input(tmp_path: Path, name: str) -> None:
    path, frame = tmp_path / name, pd.DataFrame({"x": [0.5, 1.5], "label": [0, 1]})
    frame.index = pd.Index([7, 9], name="pid")

    def save(table: Any) -> None:
        if name == "a.parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)

    save(pa.Table.from_pandas(frame))
    fails(f"{name}: column 'pid' is the row index by the file's pandas metadata; list it in dataset.drop", str(path))
    assert read(FileSpec(str(path), drop=("pid",))).train.columns == ("x",)
    assert read(FileSpec(str(path), columns=("x", "pid"))).train.X.tolist() == [[0.5, 7], [1.5, 9]]
    assert read(FileSpec(str(path), label="pid", drop=("label",))).train.y.tolist() == [7, 9]
    for metadata in (b"{", b"3", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}]}', b"{}"):
        save(pa.table({"pid": [7, 9], "label": [0, 1]}).replace_schema_metadata({b"pandas": metadata}))
        assert read(FileSpec(str(path))).train.columns == ("pid",)


@pytest.mark.parametrize("name", WRITERS)
def test_every_truncation_is_one_sentence_or_fewer_rows(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    messages = []
    for length in range(0, len(whole) - 1, max(1, len(whole) // 15)):
        (tmp_path / name).write_bytes(whole[:length])
        try:
            rows = read(FileSpec(str(tmp_path / name), label="outcome")).train
        except DataError as error:
            messages.append(str(error))
        else:
            # Plain text and streams have no end mark: what is there counts.
            assert name.endswith((".csv", ".tsv", "stream.arrow")) and 0 < len(rows) <= 4
    assert messages and all(name in message and "\n" not in message for message in messages)


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv"])
def test_a_file_of_another_format_is_refused(tmp_path: Path, format: str) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(256)) * 4)
    fails(r"a\.bin", str(tmp_path / "a.bin"), format=format)


def test_checksums_of_parquet_pages_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({"x": [1.25, 2.5], "label": [0, 1]}), path, write_page_checksum=True, **plain)
    data = path.read_bytes()
    assert data.count(np.float64(2.5).tobytes()) >= 1
    path.write_bytes(data.replace(np.float64(1.25).tobytes() + np.float64(2.5).tobytes(), np.ones(2).tobytes()))
    fails("a.parquet: is damaged, .* of format parquet .*(CRC|checksum)", str(path))


def test_text_that_is_no_utf_8_inside_a_parquet_file(tmp_path: Path) -> None:
    faulty = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xffa")]
    )
    pq.write_table(pa.table({"a": [1, 2], "label": faulty}), tmp_path / "a.parquet")
    fails(
        "a.parquet: is damaged, truncated, unreadable, or not of format parquet .*[Uu][Tt][Ff]",
        str(tmp_path / "a.parquet"),
    )


SECRET = "a letter of somebody who wants it to stay unread" * 3


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (f"{SECRET}1,{SECRET}2\n1,0\n", {}),
        (f"{SECRET}1,{SECRET}2\n1,0\n", {"label": f"{SECRET}3"}),
        (f"a,{SECRET}1,label\n1,2,0\n3,x,1\n4,1,1\n2,1,1\n", {}),
        (f"a,{SECRET}1,label\n1,1e39,0\n3,4,1\n", {}),
        (f"{SECRET}1,{SECRET}1,label\n1,2,0\n", {}),
        (f"a,{SECRET}1,label\n1,,0\n2,1,1\n", {"group": f"{SECRET}1"}),
        (f"a,{SECRET}1,label\n1,1,0\n2,1,1\n", {"text": f"{SECRET}2"}),
        (f"a,{SECRET}1,label\n1,1,0\n2,1,1\n", {"drop": (f"{SECRET}1", f"{SECRET}1")}),
        (f"a,{SECRET}1\n1,0.5\n", {"label": f"{SECRET}1"}),
    ],
    ids=range(9),
)
def test_no_message_shows_more_of_a_name_than_forty_characters(
    tmp_path: Path, content: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match="a letter of somebody") as caught:
        read(FileSpec(write(tmp_path, content), **fields))
    assert "unread" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-32"])
def test_encodings_are_found_out_or_named(tmp_path: Path, encoding: str) -> None:
    text = 'größe,label\n1,"€\n"\n2,x\n3,y "z" ł\n'
    for start in ("", "\ufeff"):
        (tmp_path / "a.csv").write_bytes((start * (encoding != "utf-16") + text).encode(encoding))
        raw = read(FileSpec(str(tmp_path / "a.csv")))
        assert raw.train.columns == ("größe",) and raw.train.y.tolist() == ["€", "x", 'y "z" ł']
    (tmp_path / "a.csv").write_bytes(text.encode("cp1250"))  # which is also Windows-1252, with other letters
    assert read(FileSpec(str(tmp_path / "a.csv"))).train.y[2] == 'y "z" ³'
    assert read(FileSpec(str(tmp_path / "a.csv"), encoding="cp1250")).train.y[2] == 'y "z" ł'
    for name in ("utf-8", "UTF8", "ascii"):
        fails(r"a.csv is not .* text.*dataset.encoding", str(tmp_path / "a.csv"), encoding=name)


def test_what_windows_1252_has_not_is_latin_1(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("a,label\n1,ü\x81\n2,y\n".encode("latin-1"))
    assert read(FileSpec(str(tmp_path / "a.csv"))).train.y[0] == "ü\x81"
    (tmp_path / "a.csv").write_bytes("a,label\n1,„€“\n2,y\n".encode("cp1252"))
    assert read(FileSpec(str(tmp_path / "a.csv"))).train.y[0] == "„€“"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_hexadecimal_numbers_are_text(tmp_path: Path, name: str) -> None:
    def content(values: str) -> str:
        text = "a,b,label\n" + "".join(f"{value},{row},{row % 2}\n" for row, value in enumerate(values.split()))
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        return str(tmp_path / name)

    fails(
        "column 'a' is text in row 4, counted from 1 without a header, '0x1f' first, but inputs",
        content("7 8 9 0x1f 10"),
    )
    raw = read(FileSpec(content("0x1f 8 9 0X2A 10"), label="a", drop=("label",)))
    assert raw.train.y.tolist() == ["0x1f", "8", "9", "0X2A", "10"]
    # A word elsewhere, and 0x inside one, leave numbers alone.
    raw = read(FileSpec(write(tmp_path, "a,id,label\n7,0x1f,0\n8,10x2,1\n", "w.csv"), drop=("id",)))
    assert raw.train.X.tolist() == [[7], [8]]
