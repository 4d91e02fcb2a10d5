"""Quotation marks that close a field in its middle, against the reader of Python's own library."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import FileSpec, quotes, read


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
