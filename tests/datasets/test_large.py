"""Tables that are too large for memory: the same content as in memory, read from files by columns and by rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldsvm.datasets import files, large
from ldsvm.datasets.dataset import Dataset
from ldsvm.datasets.files import FileSpec
from ldsvm.datasets.files.coding import frame
from ldsvm.datasets.labels import coded
from ldsvm.datasets.large import PickedRows
from ldsvm.datasets.stored_texts import StoredTexts

WORDS = ["price", "late", "broken", "parcel", "refund", "thanks", "slow", "wrong", "size", "never", "again", "order"]


def customers(n: int, seed: int) -> pd.DataFrame:
    """Columns of all roles, with gaps; every text is another one."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame({
        "id": [f"c{seed}-{i}" for i in range(n)], "age": draw.normal(40, 9, n), "visits": draw.integers(0, 9, n),
        "town": draw.choice(["Ulm", "Bonn", "Kiel"], n), "member": draw.choice(["yes", "no"], n),
        "since": (np.datetime64("2020-01-01") + draw.integers(0, 900, n)).astype(str),
        "note": [f"{i} {' '.join(draw.choice(WORDS, 4))}" for i in range(n)], "left": draw.choice(["no", "yes"], n),
    })  # fmt: skip
    return table.mask(draw.random(table.shape) < 0.1).assign(left=table["left"], id=table["id"], note=table["note"])


@pytest.fixture
def spec(tmp_path: Path) -> FileSpec:
    """Two files of training rows and one of test rows."""
    for i, n in enumerate((70, 50)):
        (tmp_path / "train").mkdir(exist_ok=True)
        customers(n, i).to_parquet(tmp_path / "train" / f"{i}.parquet")
    customers(30, 2).to_parquet(tmp_path / "test.parquet")
    return FileSpec(str(tmp_path / "train"), test_path=str(tmp_path / "test.parquet"), label="left")


def loaded(spec: FileSpec, cache: Path) -> Dataset:
    return files.load(spec, name="customers", cache_dir=cache)


def tables(data: Dataset) -> list[pd.DataFrame]:
    assert data.train.table is not None and data.test is not None and data.test.table is not None
    return [frame(data.X, data.train.table), frame(data.X_test, data.test.table)]


@pytest.mark.slow
def test_a_table_in_files_is_the_one_in_memory(spec: FileSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = loaded(spec, tmp_path / "small")
    monkeypatch.setattr(large, "LARGE", 0)
    for _ in range(2):  # as it is read, and from the cache
        found = loaded(spec, tmp_path / "large")
        assert isinstance(found.X, np.memmap)
        assert found.y.tolist() == small.y.tolist()
        for ours, theirs in zip(tables(found), tables(small), strict=True):
            pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


def test_texts_of_a_test_set_may_be_the_larger_ones(
    spec: FileSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    customers(300, 2).to_parquet(tmp_path / "test.parquet")
    small = loaded(spec, tmp_path / "small")
    monkeypatch.setattr(large, "LARGE", 20_000)  # 120 texts lie in memory, 300 in a file
    found = loaded(spec, tmp_path / "large")
    assert found.train.table is not None and isinstance(found.train.table[-1].values, StoredTexts)
    for ours, theirs in zip(tables(found), tables(small), strict=True):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


@pytest.mark.parametrize("columns", [None, ("visits", "age")], ids=["codes", "numbers"])
def test_without_texts_the_digest_is_the_same_too(
    spec: FileSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: tuple[str, ...] | None
) -> None:
    drop = ("note",) if columns is None else ()
    without = FileSpec(spec.path, test_path=spec.test_path, label="left", columns=columns, drop=drop)
    small = loaded(without, tmp_path / "small")
    monkeypatch.setattr(large, "LARGE", 0)
    for _ in range(2):
        found = loaded(without, tmp_path / "large")
        assert isinstance(found.X, np.memmap) and found.X.dtype == small.X.dtype
        assert found.sha256 == small.sha256
        assert found.train.table == small.train.table
        np.testing.assert_array_equal(found.X, small.X)


def test_spelled_numbers_are_read_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i % 7},5;{i} %;{'?' if i % 9 == 4 else i};{'ab'[i % 2]}" for i in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["price;share;count;left", *lines]))
    spec = FileSpec(str(tmp_path / "a.csv"), format="semicolon", label="left", decimal=",", missing_values=("?",))
    small = loaded(spec, tmp_path / "small")
    monkeypatch.setattr(large, "LARGE", 0)
    found = loaded(spec, tmp_path / "large")
    assert isinstance(found.X, np.memmap) and found.sha256 == small.sha256
    np.testing.assert_array_equal(found.X[4], np.float32([4.5, 4, np.nan]))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["train.npy", "test.npy", "6.arrow"])
def test_a_damaged_file_of_the_cache_is_written_anew(
    spec: FileSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(large, "LARGE", 0)
    first = loaded(spec, tmp_path / "large")
    (file,) = (tmp_path / "large").glob(f"*.{ending}")
    content = bytearray(file.read_bytes())
    place = len(content) * 2 // 5
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="is rebuilt"):
        again = loaded(spec, tmp_path / "large")
    assert again.sha256 == first.sha256


def test_some_rows_of_a_file_are_as_those_of_an_array() -> None:
    X = np.arange(60.0).reshape(12, 5)
    rows, mask = np.array([1, 3, 4, 8, 11]), np.array([True, False, True, True, False])
    some, wanted = PickedRows(X, rows), X[rows]
    cases: list[tuple[Any, Any]] = [
        (some[1:4], wanted[1:4]), (some[:, 2], wanted[:, 2]), (some[[0, 4]], wanted[[0, 4]]),
        (some[mask], wanted[mask]),
        (some[mask, 1], wanted[mask, 1]), (PickedRows(some, mask)[:], wanted[mask]), (some[:2, 1:], wanted[:2, 1:]),
    ]  # fmt: skip
    for ours, theirs in cases:
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(np.asarray(some), wanted)
    assert (some.shape, some.dtype, some.nbytes, len(some)) == (wanted.shape, wanted.dtype, wanted.nbytes, 5)


def test_texts_in_files_are_found_by_their_places() -> None:
    import pyarrow as pa

    words = [f"text {i}" for i in range(9)]
    texts = StoredTexts.written(pa.array(words[i : i + 4]) for i in range(0, 9, 4))
    places = np.array([8, 0, 3, 4, 7, 4])
    assert texts.words(places).tolist() == [words[place] for place in places]
    assert (len(texts), texts[-1], [*texts[2:5]]) == (9, "text 8", words[2:5])
    assert [*texts.content()] != [*StoredTexts.written([pa.array(words)]).content()][:1]


@pytest.mark.parametrize("y", [np.array([3, 1, 3]), np.array(["b", "a", "b", "c"], dtype=object), np.array(["b", "a"])])
def test_labels_are_coded_as_numpy_does_it(y: Any) -> None:
    for ours, theirs in zip(coded(y), np.unique(y, return_inverse=True), strict=True):
        assert ours.tolist() == theirs.tolist()
    with pytest.raises(TypeError):
        coded(np.array([1, "a"], dtype=object))
