"""Models of mixed tables take them as people have them: of pandas, polars or pyarrow, in any order and in any type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import Pipeline, make_pipeline

from ldsvm import LDSVMClassifier
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.raw_table import RawTable
from ldsvm.datasets.table_step import TableFeatures

ROLES = {"age": "number", "paid": "yes/no", "town": "category", "day": "date"}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({
        "age": rng.normal(40, 9, 90), "paid": rng.choice([True, False], 90),
        "town": rng.choice(["Ulm", "Bonn", None], 90),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 90), unit="D"),
    })  # fmt: skip
    made.loc[::7, "age"] = np.nan
    return made


@pytest.fixture(scope="module")
def model(rows: pd.DataFrame) -> Pipeline:
    steps = RawTable(ROLES), TableFeatures(ROLES), LDSVMClassifier(n_basis=20, random_state=0)
    return make_pipeline(*steps).fit(rows, rows["age"].fillna(0) > 40)


def turned(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows.columns[::-1]].assign(more=1)


TABLES: dict[str, Any] = {
    "pandas, another order": turned,
    "pandas, nullable": lambda rows: rows.convert_dtypes(),
    "pandas, categories": lambda rows: rows.astype({"town": "category", "paid": "category"}),
    "pandas, texts": lambda rows: rows.astype(object).assign(
        day=rows["day"].astype(str), paid=rows["paid"].astype(str)
    ),
    "pandas, a zone": lambda rows: rows.assign(day=rows["day"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")),
    "pyarrow": lambda rows: pa.Table.from_pandas(rows),
    "pyarrow, dictionary": lambda rows: pa.Table.from_pandas(rows.astype({"town": "category"})),
    "polars": lambda rows: pl.from_pandas(turned(rows)),
    "polars, categories and days": lambda rows: pl.from_pandas(rows).with_columns(
        pl.col("town").cast(pl.Categorical), pl.col("day").cast(pl.Date)
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_answers_are_the_same(kind: str, model: Pipeline, rows: pd.DataFrame) -> None:
    np.testing.assert_array_equal(model.decision_function(TABLES[kind](rows)), model.decision_function(rows))


def test_what_polars_tables_lack_is_one_sentence(model: Pipeline, rows: pd.DataFrame) -> None:
    table = pl.from_pandas(rows)
    with pytest.raises(DataError, match="The table has no column 'town'; the model needs columns 'age', 'paid'"):
        model.predict(table.drop("town"))
    with pytest.raises(DataError, match="column 'age' is text, but inputs must be numbers"):
        model.predict(table.with_columns(age=pl.lit("old")))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda rows: rows.to_numpy(),
            "The table is ndarray; allowed: a table of pandas, polars or pyarrow with the col",
        ),
        (lambda rows: rows.to_dict("records"), "The table is list; allowed: "),
        (lambda rows: rows["age"], "The table is Series; allowed: "),
        (lambda rows: rows.iloc[:0], r"The table has no rows; allowed: at least one\."),
        (
            lambda rows: pd.concat([rows, rows["age"]], axis=1),
            "The table has column 'age' more than once; allowed: once",
        ),
    ],
)
def test_what_is_no_such_table_is_one_sentence(change: Any, said: str, model: Pipeline, rows: pd.DataFrame) -> None:
    with pytest.raises(DataError, match=f"^{said}"):
        model.predict(change(rows))


@pytest.mark.parametrize(
    ("role", "values", "allowed"),
    [
        ("number", ["1", "x", "2"], "inputs must be numbers; correct them"),
        ("number", ["1", "1,5", "2"], "inputs must be numbers; write numbers like 1234.5, without other marks"),
        ("number", ["1", "-", "2"], "inputs must be numbers; leave cells empty, None or NaN, where '-' marks missing"),
        ("number", [["a"], ["b"], ["c"]], "allowed: numbers, words, yes/no, dates and texts."),
        ("yes/no", ["yes", "no", "perhaps"], "allowed: yes and no, true and false; correct them"),
        ("date", ["2024-01-01", "2024-01-02", "soon"], "allowed: dates such as 2024-12-31; correct them"),
        ("date", ["1/2/2024", "2/3/2024", "3/4/2024"], "where either number may be the month; write 2024-12-31."),
    ],
)
def test_a_model_says_what_those_with_the_rows_can_do(role: str, values: list[Any], allowed: str) -> None:
    table = pd.DataFrame({"it": values})
    with pytest.raises(DataError) as caught:
        RawTable({"it": role}).fit(table).transform(table)
    said = str(caught.value)
    assert said.startswith("The table: column 'it' ") and allowed in said and "dataset." not in said
