"""Tables of mixed columns: what a column is, codes for its values, and the same table again from the codes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldsvm.datasets import DataError, cache
from ldsvm.datasets.files import FileSpec, read, tables
from ldsvm.datasets.files.coding import coded, coded_table, frame, read_frame
from ldsvm.datasets.files.roles import infer_role, listed
from ldsvm.datasets.files.spellings import Spelling
from ldsvm.datasets.raw_table import RawTable

N = 120
CASES: list[tuple[str, list[Any], str]] = [
    ("a", [1.5, None, 2.0], "number"),
    ("a", ["1", "2", "", "4"], "number"),
    ("a", ["1", "2", "3", "x"], "number"),  # a mistake, which is refused when it is read
    ("a", ["red", "blue", "red", None], "category"),
    ("a", ["1", "red", "blue"], "category"),
    ("a", ["Yes", "no", "NO"], "yes/no"),
    ("a", ["yes", "no", "perhaps"], "category"),
    ("a", [True, False, None], "yes/no"),
    ("a", [date(2024, 1, 31), None, date(2024, 2, 1)], "date"),
    ("a", ["2024-01-31", "2024-02-01T10:00"], "date"),
    ("a", ["31.01.2024", "01.02.2024"], "date"),
    ("a", ["1/31/2024", "2/1/2024"], "date"),
    ("a", ["1/2/2024", "2/1/2024"], "category"),  # of January or of February
    ("a", [f"case {i}" for i in range(N)], "identifier"),
    ("a", [f"what was said of number {i}" for i in range(N)], "text"),
    ("a", [f"{i % 80}x" for i in range(N)], "too many values"),
    ("user_id", [*range(N)], "identifier"),
    ("customerId", [*range(N)], "identifier"),
    ("paid", [*range(N)], "number"),  # only ends in id
    ("user_id", [i % 7 for i in range(N)], "number"),
    ("a", [3, 3, None], "constant"),
    ("a", ["x", "x"], "constant"),
    ("a", ["x", None, "x", None], "category"),  # ticked or not
    ("a", [True, None, True, None], "yes/no"),
    ("a", [3, None, 3, None], "number"),
    ("a", [10**18 + i % 7 for i in range(N)], "category"),  # float64 takes some of them for equal
    ("a", [10**18 + i for i in range(N)], "identifier"),
    ("a", [f"2024-01-{i % 28 + 1:02d}" for i in range(N)] + ["2024-13-45"], "date"),  # a mistake, as among numbers
    ("a", [f"{i % 28 + 1:02d}.01.2024 1{i % 9}:30" for i in range(N)], "date"),
    ("a", [f"{i % 28 + 1:02d}.01.24" for i in range(N)], "date"),
    ("a", [f"{i % 28 + 1:02d}-Feb-2024" for i in range(N)], "date"),
    ("a", ["45 %", "7%", None], "number"),
    ("a", ["NA", "EU", "none", "NA", "null", "EU"], "category"),  # Namibia is no gap
    ("a", [None, None], "constant"),
]


@pytest.mark.parametrize(("name", "values", "role"), CASES, ids=[f"{role}-{i}" for i, (_, _, role) in enumerate(CASES)])
def test_what_a_column_is(name: str, values: list[Any], role: str) -> None:
    whole = pa.array(values)
    for cut in (len(values), 1):  # in one piece, and in two
        found = infer_role(name, [whole[:cut], whole[cut:]], Spelling())
        assert found.role == role
        assert bool(found.reason) == (not found.used)


def table_of(**columns: list[Any]) -> dict[str, list[Any]]:
    return {name: [pa.array(values)] for name, values in columns.items()}


def test_codes_become_the_table_again() -> None:
    when = [datetime(1969, 12, 31, 23, 59, 59, 999_999), None, datetime(2024, 2, 29, 12)]
    columns = table_of(
        size=[0.1, 16_777_217, None], paid=["yes", None, "No"], when=when, town=["Ulm", None, " Bonn "],
        said=["a longer text of words", None, "another longer text of words"],
    )  # fmt: skip
    X, table = coded_table(columns, None, {"said": "text"}, "t", Spelling())
    assert X.dtype == np.float64 and X.shape == (3, 5)
    back = frame(X, table)
    assert back["size"].tolist()[:2] == [0.1, 16_777_217.0]  # more digits than float32 has
    assert back["paid"].tolist()[::2] == [1.0, 0.0] and np.isnan(back["paid"][1])
    assert back["when"].tolist()[::2] == [pd.Timestamp(when[0]), pd.Timestamp(when[2])] and back["when"].isna()[1]
    assert [None if pd.isna(town) else town for town in back["town"]] == ["Ulm", None, "Bonn"]
    assert back["said"].tolist() == ["a longer text of words", "", "another longer text of words"]


def test_a_model_reads_what_came_as_training_did() -> None:
    roles = {"when": "date", "town": "category", "size": "number", "paid": "yes/no"}
    days = {"when": "%d/%m/%Y"}
    came = pd.DataFrame({
        "more": [1, 2], "size": ["3", None], "paid": [True, False], "town": ["Ulm", "Rome"],
        "when": ["01/02/2024", None],
    })  # fmt: skip
    found = RawTable(roles, days).fit(came).transform(came)
    assert list(found) == [*roles]
    assert found["when"][0] == pd.Timestamp(2024, 2, 1)  # as in training, though it may be of January
    iso = RawTable(roles, days).transform(came.assign(when=["2024-02-01", "2024-02-01"], paid=["yes", "no"]))
    assert iso["when"].tolist() == [pd.Timestamp(2024, 2, 1)] * 2
    assert iso["paid"].tolist() == found["paid"].tolist() == [1.0, 0.0]


def test_values_of_several_types_and_other_tables_are_read_too() -> None:
    mixed = pd.DataFrame({"size": pd.Series([1, "2.5", None], dtype=object), "town": ["a", 1, 2.0]})
    found = read_frame(mixed, {"size": "number", "town": "category"}, {})
    assert found["size"].tolist()[:2] == [1.0, 2.5] and found["town"].tolist() == ["a", "1", "2"]
    arrow = pa.table({"size": [1, 2], "town": ["a", "b"]})  # polars has a method of the same name
    assert read_frame(arrow, {"town": "category"}, {})["town"].tolist() == ["a", "b"]
    with pytest.raises(DataError, match="column 'size' is text in row 3, counted from 1 without a header, 'old'"):
        read_frame(pd.DataFrame({"size": [1, 2, "old"]}), {"size": "number"}, {})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": ["1", "2", "big"]}, "column 'size' is text in row 3, counted from 1 without a header, 'big' first"),
        (
            {"paid": ["yes", "perhaps", "no"]},
            "column 'paid' has 'perhaps' in row 2, counted from 1 without a header; allowed: yes and no",
        ),
        (
            {"when": ["2024-02-30", "2024-02-01", None]},
            "column 'when' has '2024-02-30' in row 1, counted from 1 without a header; allowed: dates",
        ),
    ],
)
def test_a_value_of_another_role_is_named(changed: dict[str, list[str]], message: str) -> None:
    came = pd.DataFrame({"size": ["1", "2", "3"], "paid": ["yes", "no", "no"], "when": ["2024-01-31"] * 3} | changed)
    with pytest.raises(DataError, match=message):
        read_frame(came, {"size": "number", "paid": "yes/no", "when": "date"}, {})
    roles = {"size": "number", "paid": "yes/no", "when": "date"}
    columns = {name: [pa.array(values)] for name, values in came.items()}
    name = next(iter(changed))
    with pytest.raises(DataError, match=f"{message}.*correct them.*dataset.columns, such as {{{name}: category}}"):
        coded_table(columns, None, roles, "a file", Spelling())
    with pytest.raises(DataError, match="no column 'size'"):
        read_frame(came.drop(columns="size"), {"size": "number"}, {})


def test_dates_whose_month_is_unknown_are_refused() -> None:
    column = infer_role("a", [pa.array(["1/2/2024", "3/4/2024"])], Spelling())
    assert column.role == "category"
    with pytest.raises(DataError, match=r"'1/2/2024', where either number may be the month; write 2024-12-31"):
        coded(replace(column, role="date", values=()), [pa.array(["1/2/2024", "3/4/2024"])], "t", Spelling())


@pytest.mark.parametrize(
    ("first", "days"), [("day", ["2024-02-01", "2024-04-03"]), ("month", ["2024-01-02", "2024-03-04"])]
)
def test_people_say_whether_the_day_or_the_month_is_first(first: str, days: list[str]) -> None:
    texts = [pa.array(["1/2/2024", "3/4/2024"])]
    doubt = infer_role("a", texts, Spelling()).doubt
    assert "'a' may hold dates, such as '1/2/2024', but no value tells" in doubt and "so it is a category" in doubt
    assert "dataset.columns: {a: date (day first)}, or date (month first)" in doubt
    codes, table = coded_table({"a": texts}, None, {"a": f"date ({first} first)"}, "t", Spelling())
    assert frame(codes, table)["a"].astype(str).tolist() == days and table[0].role == "date"
    again = read_frame(pd.DataFrame({"a": ["3/4/2024"]}), {"a": "date"}, {"a": table[0].how})  # as a model has it
    assert again["a"].astype(str).tolist() == days[1:]
    assert infer_role("a", [pa.array(["1/2/2024", "13/4/2024"])], Spelling()).doubt == ""


ROWS = "id,when,paid,zip,size,label\n" + "".join(
    f"{i + 100},2024-01-{1 + i % 28:02},{'yes' if i % 3 else 'no'},0{1000 + i % 7},{i / 2 if i % 5 else ''},"
    f"{'ab'[i % 2]}\n"
    for i in range(60)
)


def test_a_csv_with_words_dates_and_gaps(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    rows = read(FileSpec(str(tmp_path / "a.csv"), roles=(("zip", "category"),))).train
    assert rows.kind == "table" and rows.table is not None
    assert {one.name: one.role for one in rows.table} == {
        "id": "identifier", "when": "date", "paid": "yes/no", "zip": "category", "size": "number"
    }  # fmt: skip
    assert rows.columns == ("when", "paid", "zip", "size") and rows.X.shape == (60, 4)
    assert rows.table[3].values[0] == "01000"  # as it is written
    assert listed(rows.table) == [
        "Columns: number 'size'; category 'zip'; yes/no 'paid'; date 'when'.",
        "Left out: 'id' (identifier: every row has a different number).",
    ]
    ignored = read(FileSpec(str(tmp_path / "a.csv"), roles=(("when", "ignore"), ("id", "number")))).train
    assert ignored.columns == ("id", "paid", "zip", "size")


def test_a_test_set_has_the_roles_of_the_training_set(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("town,size,label\nUlm,1,0\nBonn,2,1\n")
    (tmp_path / "b.csv").write_text("size,town,label\n3,Aix,0\n4,Aix,1\n")  # by itself a constant
    raw = read(FileSpec(str(tmp_path / "a.csv"), test_path=str(tmp_path / "b.csv")))
    assert raw.test is not None and raw.train.table == raw.test.table and raw.train.table is not None
    assert frame(raw.train.X, raw.train.table)["town"].tolist() == ["Ulm", "Bonn"]
    assert frame(raw.test.X, raw.test.table)["town"].tolist() == ["Aix", "Aix"]


def test_the_cache_keeps_roles_and_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    raw = read(FileSpec(str(tmp_path / "a.csv")))
    cache.write(tmp_path / "a.parquet", raw)
    found = cache.read(tmp_path / "a.parquet")
    assert found is not None and found.train.table == raw.train.table and found.sha256() == raw.sha256()
    np.testing.assert_array_equal(found.train.X, raw.train.X)


def test_types_of_parquet_have_roles(tmp_path: Path) -> None:
    table = pa.table({
        "town": pa.array(["Ulm", "Bonn", None]).dictionary_encode(),
        "price": pa.array(["1.50", "2.25", None]).cast(pa.decimal128(5, 2)),
        "when": pa.array([1, 2, None], pa.timestamp("ms", "Europe/Berlin")), "ok": [True, None, False],
        "label": [0, 1, 0],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")
    rows = read(FileSpec(str(tmp_path / "a.parquet"))).train
    assert rows.table is not None
    assert [one.role for one in rows.table] == ["category", "number", "date", "yes/no"]
    assert rows.X[:, 1].tolist()[:2] == [1.5, 2.25] and rows.X[:, 2].tolist()[:2] == [0.001, 0.002]


def test_a_category_has_only_so_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ASKED", 100)
    for n in (101, 100):
        lines = ["who,size,label", *(f"c{i % n},{i},{'ab'[i % 2]}" for i in range(400))]
        (tmp_path / "a.csv").write_text("\n".join(lines))
        spec = FileSpec(str(tmp_path / "a.csv"), roles=(("who", "category"),))
        if n == 100:
            found = read(spec).train
            assert found.table is not None and len(found.table[0].values) == n
            continue
        with pytest.raises(DataError, match=r"a.csv: column 'who' has too many different values; .* at most 100; in"):
            read(spec)
        text = read(replace(spec, roles=(("who", "text"),))).train  # which has as many as there are
        assert text.table is not None and len(text.table[0].values) == n


def test_a_table_of_numbers_stays_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,label\n1,2.5,0\n2,3,1\n")
    rows = read(FileSpec(str(tmp_path / "a.csv"))).train
    assert rows.kind == "dense" and rows.table is None and rows.X.dtype == np.float32
    chosen = read(FileSpec(str(tmp_path / "a.csv"), roles=(("a", "category"),))).train
    assert chosen.kind == "table"


def test_a_table_without_inputs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,label\n" + "".join(f"n{i},{i % 2}\n" for i in range(30)))
    with pytest.raises(DataError, match=r"no input column is left.*'name' .identifier: every row"):
        read(FileSpec(str(tmp_path / "a.csv")))


@pytest.mark.parametrize(
    "values", [[True, False], [date(2024, 1, 31), datetime(2024, 2, 1, 10)]], ids=["yes/no", "date"]
)
def test_a_file_whose_column_is_empty_and_without_a_type_comes_first(values: list[Any]) -> None:
    pieces = [pa.nulls(2), *(pa.array([value]) for value in values)]
    found = infer_role("a", pieces, Spelling())
    assert found.role == ("yes/no" if values[0] is True else "date")
    codes, _ = coded(found, pieces, "t", Spelling())
    assert np.isnan(codes[:2]).all() and np.isfinite(codes[2:]).all()
