"""Labels, groups and times: which type each kind of column becomes, what is missing, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldsvm.datasets import ordered
from ldsvm.datasets.dataset import DataError, Rows
from ldsvm.datasets.files import FileSpec, read

NOON = dt.datetime(2024, 3, 1, 12)


def rows(folder: Path, *, label: Any = None, **fields: Any) -> Rows:
    """Write a table whose columns are given, and read it with the fields named after them."""

    def named(role: str) -> str | None:
        return role if role in fields else None

    n = len(next(iter(fields.values()))) if fields else len(label)
    columns = {"x": pa.array([0.5] * n), "label": pa.array([0, 1] * n)[:n] if label is None else pa.array(label)}
    columns |= {name: pa.array(values) for name, values in fields.items()}
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return read(FileSpec(str(folder / "a.parquet"), group=named("group"), time=named("time"))).train


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ([3, -1, 2**40], [3, -1, 2**40]),
        (pa.array([1, 0, 255], pa.uint8()), [1, 0, 255]),
        ([2.0, -1.0, 7.0], [2, -1, 7]),
        ([Decimal("2"), Decimal("3.0")], [2, 3]),
        (pa.array([4, 5, 4]).dictionary_encode(), [4, 5, 4]),
    ],
    ids=str,
)
def test_whole_numbers_are_int64(tmp_path: Path, label: Any, expected: list[int]) -> None:
    y = rows(tmp_path, label=label).y
    assert y.dtype == np.int64 and y.tolist() == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (["a", None, "b", ""], ["a", None, "b", None]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array(["b", "a", None]).dictionary_encode(), ["b", "a", None]),
        (["NA", "01"], ["NA", "01"]),
        ([2**53 + 1, None], [2**53 + 1, None]),  # by way of floats it would be another number
        ([1.0, float("nan"), None], [1, None, None]),
        ([True, None], ["True", None]),
        ([True, False], ["True", "False"]),  # as people read them
    ],
    ids=str,
)
def test_text_and_missing_labels_are_objects(tmp_path: Path, label: Any, expected: list[Any]) -> None:
    y = rows(tmp_path, label=label).y
    assert y.dtype == object and y.tolist() == expected
    assert [type(value) for value in y] == [type(value) for value in expected]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([1.0, 0.37, 2.5], "dataset.label 'label' holds 0.37; classes must be whole numbers or text"),
        ([1.0, float("inf")], "holds inf; classes must be"),
        ([1.0, 1e300], r"holds 1e\+300; classes must be"),
        (pa.array([2**64 - 1], pa.uint64()), r"holds 1.84467e\+19; classes"),
        ([NOON, NOON], r"is of type timestamp\[us\]; classes must be whole numbers or text"),
        ([[1], [2]], "is of type list<.*>; classes must be"),
        ([None, None], "holds no labels; at least one row must have one"),
        (["", None], "holds no labels"),
    ],
    ids=str,
)
def test_other_labels_are_refused(tmp_path: Path, label: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        rows(tmp_path, label=label)
    assert "\n" not in str(caught.value)


def test_labels_of_two_files_may_differ_in_type_but_not_in_kind(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "label": pa.array([2], pa.int8())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": [1.5], "label": [3.0]}), tmp_path / "2.parquet")
    assert read(FileSpec(str(tmp_path))).train.y.tolist() == [2, 3]
    pq.write_table(pa.table({"x": [1.5], "label": ["3"]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match="holds numbers and text; classes must be whole numbers or text, not both"):
        read(FileSpec(str(tmp_path)))


BERLIN = pa.array([NOON, dt.datetime(1999, 1, 1)]).cast(pa.timestamp("s")).cast(pa.timestamp("ns", tz="Europe/Berlin"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1], np.array([3, 1], dtype=np.int64)),
        ([0.5, -1.0], np.array([0.5, -1.0])),
        ([dt.date(2024, 3, 1), dt.date(1999, 1, 1)], np.array(["2024-03-01", "1999-01-01"], dtype="M8[us]")),
        ([NOON, dt.datetime(1999, 1, 1)], np.array(["2024-03-01T12:00", "1999-01-01"], dtype="M8[us]")),
        (BERLIN, np.array(["2024-03-01T12:00", "1999-01-01"], dtype="M8[us]")),  # the same moments, in UTC
        (["2024-03", "1999-01"], np.array(["2024-03", "1999-01"], dtype=object)),
    ],
    ids=["int", "float", "date", "timestamp", "zone", "text"],
)
def test_times_and_groups(tmp_path: Path, values: Any, expected: np.ndarray[Any, Any]) -> None:
    for role in ("time", "group"):
        found = rows(tmp_path, **{role: values})
        array = found.times if role == "time" else found.groups
        assert array is not None and array.dtype == expected.dtype and found.columns == ("x",)
        np.testing.assert_array_equal(array, expected)


def test_groups_of_other_types_are_spelled_out(tmp_path: Path) -> None:
    assert rows(tmp_path, group=[True, False]).groups.tolist() == [1, 0]  # type: ignore[union-attr]
    assert rows(tmp_path, group=[dt.time(10), dt.time(9, 30)]).groups.tolist() == [  # type: ignore[union-attr]
        "10:00:00.000000",
        "09:30:00.000000",
    ]


@pytest.mark.parametrize("role", ["group", "time"])
@pytest.mark.parametrize(
    "values",
    [[1, None, 2, None], [1.5, float("nan"), 2, None], ["a", "", "b", None], [NOON, None, NOON, None]],
    ids=str,
)
def test_a_missing_group_or_time_is_an_error(tmp_path: Path, role: str, values: list[Any]) -> None:
    with pytest.raises(
        DataError,
        match=f"dataset.{role} '{role}' is missing in rows 2, 4, counted from 1 without a header; every row needs one",
    ):
        rows(tmp_path, **{role: values})


def test_impossible_groups_and_times_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dataset.time 'time' is of type 'time64\[us\]'; times must be numbers, dates"):
        rows(tmp_path, time=[dt.time(10), dt.time(9)])
    with pytest.raises(DataError, match=r"dataset\.group 'group' is of type 'list<.*>'; groups must be single values"):
        rows(tmp_path, group=[[1], [2]])


def test_csv_files_tell_dates_by_themselves(tmp_path: Path) -> None:
    text = "x,who,day,at,label\n1,7,2024-03-01,2024-03-01 12:00:00,0\n2,7,1999-01-01,1999-01-01 00:00:00,1\n"
    (tmp_path / "a.csv").write_text(text)
    for time, expected in (("day", "2024-03-01"), ("at", "2024-03-01T12:00")):
        spec = FileSpec(str(tmp_path / "a.csv"), columns=("x",), group="who", time=time)
        found = read(spec).train
        assert found.times is not None and found.times[0] == np.datetime64(expected) and found.times.dtype == "M8[us]"
        assert found.groups is not None and found.groups.tolist() == ["7", "7"]


def groups_of(folder: Path, *contents: str, **fields: Any) -> list[Any]:
    """Write CSV files of a group a line, with a constant input, and return the groups as they are read."""
    for place, content in enumerate(contents):
        lines = "".join(f"0.5,{group},{row % 2}\n" for row, group in enumerate(content.split("|")))
        (folder / f"{place}.csv").write_text(f"x,g,label\n{lines}")
    found = read(FileSpec(str(folder), group="g", **fields)).train.groups
    assert found is not None
    return found.tolist()


def test_equal_groups_are_spelled_alike_whatever_else_a_file_holds(tmp_path: Path) -> None:
    plain = groups_of(tmp_path, "000|001|012", "000|001|012|ZZ1")
    assert plain[:3] == plain[3:6] == ["0", "1", "12"] and plain[6] == "ZZ1"
    floats = groups_of(tmp_path, "7.0|0.50|-3", " 7|0.5 |-3.00|word")
    assert floats[:3] == floats[3:6] and len(set(floats)) == 4
    words = groups_of(tmp_path, "a|true|NA", "b|true|NA")
    assert words == ["a", "true", "NA", "b", "true", "NA"]
    days = groups_of(tmp_path, "2024-01-01|2024-01-02", "2024-01-01|x")
    assert days[0] == days[2]
    # Where the groups are inputs as well, all files must have numbers.
    numbers = groups_of(tmp_path, "7|8", "7.0|9.5", columns=("x", "g"))
    assert numbers[0] == numbers[2] and len(set(numbers)) == 3


BIG = 2**60


def test_groups_of_any_types_in_parquet_files_are_exact(tmp_path: Path) -> None:
    pieces = [
        pa.array([BIG, BIG + 1, 7]),
        pa.array([BIG, BIG + 1, 2**64 - 1], pa.uint64()),
        pa.array([Decimal(BIG), Decimal(BIG + 1), Decimal("7.0")]),
        pa.array([float(BIG), 7.0, 0.5]),
        pa.array([str(BIG), f"{BIG + 1}.0", "00.50"]),
    ]
    for place, piece in enumerate(pieces):
        pq.write_table(pa.table({"x": [0.5] * 3, "g": piece, "label": [0, 1, 0]}), tmp_path / f"{place}.parquet")
    groups = read(FileSpec(str(tmp_path), group="g")).train.groups
    assert groups is not None
    one, two, seven, half, most = str(BIG), str(BIG + 1), "7", groups[11], str(2**64 - 1)
    assert groups.tolist() == [one, two, seven, one, two, most, one, two, seven, one, seven, half, one, two, half]


def test_decimal_groups_alone_are_exact(tmp_path: Path) -> None:
    groups = rows(tmp_path, group=[Decimal(BIG), Decimal(BIG + 1), Decimal(BIG)]).groups
    assert groups is not None and groups.tolist() == [str(BIG), str(BIG + 1), str(BIG)]


def test_bytes_that_are_no_text_are_no_groups(tmp_path: Path) -> None:
    assert rows(tmp_path, group=[b"a", b"b"]).groups.tolist() == ["a", "b"]  # type: ignore[union-attr]
    with pytest.raises(DataError, match=r"dataset\.group 'group' holds bytes that are not UTF-8 text; allowed"):
        rows(tmp_path, group=[b"\xff1", b"b"])


def test_times_beyond_what_they_become_do_not_wrap_around(tmp_path: Path) -> None:
    table = pa.table({"x": [0.5] * 2, "time": pa.array([2**62, 1], pa.timestamp("s")), "label": [0, 1]})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    for fields in ({"time": "time"}, {"group": "time"}):
        with pytest.raises(DataError, match=r"holds a value too large for timestamp\[us\]"):
            read(FileSpec(str(tmp_path / "a.arrow"), **fields))  # type: ignore[arg-type]
    nanoseconds = rows(tmp_path, time=pa.array([1_500, 999], pa.timestamp("ns"))).times
    assert nanoseconds is not None and nanoseconds.astype(int).tolist() == [1, 0]
    for place, piece in enumerate(([2**53 + 1], [0.5], [Decimal("0.25")])):
        pq.write_table(pa.table({"x": [0.5], "time": piece, "label": [place]}), tmp_path / f"{place}.parquet")
    (tmp_path / "a.parquet").unlink()
    times = read(FileSpec(str(tmp_path / "*.parquet"), time="time")).train.times
    assert times is not None and times.tolist() == [2.0**53, 0.5, 0.25]
    with pytest.raises(DataError, match=r"dataset\.time 'time' holds a value too large for int64"):
        rows(tmp_path, time=pa.array([2**64 - 1, 1], pa.uint64()))


def test_dates_and_texts_of_two_files_are_times_of_one_kind(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x,t,label\n1,2024-01-01,0\n2,2024-01-03,1\n")
    (tmp_path / "2.csv").write_text("x,t,label\n1,20240102T050000,0\n2,20240104T050000,1\n")
    times = read(FileSpec(str(tmp_path), time="t")).train.times
    assert times is not None
    assert ordered(times, train=0.5, validation=0.25, test=0.25).train.tolist() == [0, 2]


def test_a_group_may_be_an_input_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,t,label\n1,5,0\n2,6,1\n")
    found = read(FileSpec(str(tmp_path / "a.csv"), columns=("x", "t"), time="t")).train
    assert found.X.tolist() == [[1, 5], [2, 6]] and found.times.tolist() == [5, 6]  # type: ignore[union-attr]
