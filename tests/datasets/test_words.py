"""Values in messages: quoted, cut, at most five."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ldsvm.datasets.words import LONGEST, cut, listing, shown


@pytest.mark.parametrize("length", [0, 1, LONGEST - 1, LONGEST, LONGEST + 1, 10_000])
def test_a_text_is_cut_to_forty_characters(length: int) -> None:
    text = "".join(chr(97 + place % 26) for place in range(length))
    assert cut(text) == (text if length <= 40 else text[:39] + "…") and len(cut(text)) <= 40
    assert shown(text) == repr(cut(text))
    assert listing("label", np.array([text], dtype=object)) == f"label {cut(text)!r}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), "0.5"), (np.str_("a"), "'a'"), (True, "True"), (None, "None"), ((3, 1), "(3, 1)"),
        ("a\nb", "'a\\nb'"), ("\udcff", "'\\udcff'"), (10**60, "1" + "0" * 38 + "…"),
    ],
)  # fmt: skip
def test_other_values(value: Any, expected: str) -> None:
    assert shown(value) == expected


def test_a_list_of_which_only_the_first_are_there() -> None:
    assert listing("column", [1, 2], 2) == "columns 1, 2" and listing("column", [4], 1) == "column 4"
    assert listing("column", [1, 2, 3, 4, 5], 1_000_000) == "columns 1, 2, 3, 4, 5 and 999,995 more"
