"""A cell means the same whatever stands in the other rows of its column, as rows of JSON may have several types."""

from __future__ import annotations

from datetime import date
from typing import Any

import pandas
import pytest

from ldsvm.datasets.files.coding import read_frame

CELLS: list[Any] = [12.0, 12, 1.5, True, "12", " a ", 1e20, 1e-7, date(2024, 1, 2), None, 2**63 - 1, -0.0]


def read(cells: list[Any]) -> list[Any]:
    found = read_frame(pandas.DataFrame({"code": pandas.Series(cells, dtype=object)}), {"code": "category"}, {})
    return [None if pandas.isna(cell) else cell for cell in found["code"]]


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_by_itself_and_beside_texts_is_the_same(cell: Any) -> None:
    assert read([cell, "red", True])[0] == read([cell])[0]


def test_a_whole_number_is_the_category_that_a_file_has() -> None:
    assert read([12.0, "red", None]) == ["12", "red", None]
