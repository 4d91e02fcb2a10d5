"""What training saw of the columns of a mixed table, and the cells of later tables that it does not allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldsvm.datasets.column import Column
from ldsvm.datasets.table_schema import Allowed, Check, seen

DAY = float(np.datetime64("2024-03-01", "s").astype(int))
TABLE = (
    Column("id", "identifier", reason="every row has a value of its own"),
    Column("age", "number"),
    Column("town", "category", ("Bonn", "Kiel", "Ulm")),
    Column("day", "date"),
    Column("paid", "yes/no"),
    Column("note", "text", ("", "a", "b")),
)
X = np.array([[30.0, 2, DAY + 86400, 1, 0], [18, 0, DAY, 0, 1], [50, np.nan, np.nan, 1, 2], [40, 0, DAY, 1, 2]])


def later(**changes: Any) -> pd.DataFrame:
    days = pd.to_datetime(["2024-03-01", "2025-01-01"])
    rows = {"age": [18.0, 50.0], "town": ["Ulm", None], "day": days, "paid": [1.0, 0.0], "note": ["", "c"]}
    return pd.DataFrame(rows | changes)


def said(table: pd.DataFrame, *allowed: Allowed) -> list[str]:
    check = Check(allowed or seen(X, TABLE), edited=bool(allowed))
    check.look(table, "new.csv", 10 + np.arange(len(table)))
    return check.sentences


def test_training_says_ranges_values_and_shares_of_gaps_and_its_own_rows_are_allowed() -> None:
    assert seen(X, TABLE) == [
        Allowed("id", "identifier", "every row has a value of its own"),
        Allowed("age", "number", least=18, largest=50, gaps=0.0),
        Allowed("town", "category", values=("Bonn", "Ulm"), gaps=0.25),
        Allowed("day", "date", least="2024-03-01", gaps=0.25),
        Allowed("paid", "yes/no", gaps=0.0),
        Allowed("note", "text", gaps=0.0),
    ]
    assert said(later()) == []


def test_one_gap_in_very_many_rows_is_a_share_above_zero_and_many_values_are_not_listed() -> None:
    many = Column("town", "category", tuple(f"t{i:05d}" for i in range(51)))
    codes = np.arange(100_000.0) % 51
    codes[7] = np.nan
    (found,) = seen(codes[:, None], [many])
    assert found.gaps == 1e-5 and found.values is None
    assert said(pd.DataFrame({"town": ["Oslo", None]}), found) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"age": [17.5, 99.0]},
            "row 11, counted from 1 without a header, column 'age' is 17.5, and 1 more row is like this; "
            "training saw 18 to 50.",
        ),
        (
            {"age": [20.0, np.nan]},
            "row 12, counted from 1 without a header, column 'age' has no value; training saw no missing values.",
        ),
        (
            {"town": ["Kiel", "Oslo"]},
            "row 11, "
            "counted from 1 without a header, column 'town' is 'Kiel', and 1 more row is like this; training saw the "
            "values 'Bonn', 'Ulm'.",
        ),
        (
            {"day": pd.to_datetime(["2024-02-29", None])},
            "row 11, counted from 1 without a header, column 'day' is '2024-02-29'; training saw 2024-03-01 or later.",
        ),
        (
            {"paid": [np.nan, 1.0]},
            "row 11, counted from 1 without a header, column 'paid' has no value; training saw no missing values.",
        ),
    ],
)
def test_a_cell_that_is_not_allowed_is_named_with_row_column_value_and_what_is(
    changes: dict[str, Any], sentence: str
) -> None:
    assert said(later(**changes)) == [f"new.csv: {sentence}"]


def test_later_tables_add_to_the_count_and_the_first_cell_stays() -> None:
    check = Check(seen(X, TABLE))
    for number, age in enumerate([20.0, 7.0, 8.0, 9.0]):
        check.look(later(age=[age, 30.0]), f"{number}.csv", np.arange(2))
    assert check.sentences == [
        "1.csv: row 1, "
        "counted from 1 without a header, column 'age' is 7, and 2 more rows are like this; "
        "training saw 18 to 50."
    ]


def test_limits_that_people_set() -> None:
    age = Allowed("age", "number", largest=40)
    assert said(later(), age) == [
        "new.csv: row 12, counted from 1 without a header, column 'age' is 50; schema.yaml allows 40 or less."
    ]
    assert said(later(), replace(age, largest=None)) == [] == said(later(), Allowed("gone", "number", least=3.0))
    day = Allowed("day", "date", least="2024-01-01", largest="2024-12-31T12:00:00+01:00")
    assert said(later(), day)[0].endswith("schema.yaml allows 2024-01-01 to 2024-12-31T12:00:00+01:00.")


def test_a_summary_has_five_sentences_and_how_many_columns_there_are_more() -> None:
    check = Check([Allowed(f"c{i}", "number", largest=1) for i in range(9)])
    check.look(pd.DataFrame({f"c{i}": [0.0, 2.0] for i in range(9)}), "new.csv", np.arange(2))
    assert check.summary == [*check.sentences[:5], "4 more columns have such cells."]
