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
        ([True, False, True], [1, 0, 1]),
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
        ([True, None], [1, None]),
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
        ([None, None], "holds no label at all; at least one row must have a class"),
        (["", None], "holds no label at all"),
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
    with pytest.raises(DataError, match=f"dataset.{role} '{role}' is missing in rows 1, 3; every row needs one"):
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
        assert found.groups is not None and found.groups.tolist() == [7, 7]


def test_a_group_may_be_an_input_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,t,label\n1,5,0\n2,6,1\n")
    found = read(FileSpec(str(tmp_path / "a.csv"), columns=("x", "t"), time="t")).train
    assert found.X.tolist() == [[1, 5], [2, 6]] and found.times.tolist() == [5, 6]  # type: ignore[union-attr]
