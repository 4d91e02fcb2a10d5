"""Loading twice: what is read anew, what is found again, and what is rebuilt."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldsvm.datasets.dataset import DataError, Dataset
from ldsvm.datasets.files import FileSpec, load, loading

NAN = float("nan")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "a.csv").write_text("a,b,who,day,label\n1,,7,2024-01-01,x\n2,5,8,2024-01-02,\n")
    (folder / "b.csv").write_text("a,b,who,day,label\n3,6.5,7,2023-01-01,y\n")
    (folder / "test.csv").write_text("a,b,who,day,label\n4,7,9,2025-01-01,x\n")
    return folder


def spec(folder: Path, **fields: Any) -> FileSpec:
    parts: dict[str, Any] = {"test_path": str(folder / "test.csv"), "group": "who", "time": "day", **fields}
    return FileSpec(str(folder / "?.csv"), **parts)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def same(one: Dataset, other: Dataset) -> None:
    assert (one.sha256, one.source, one.licence, one.name) == (other.sha256, other.source, other.licence, other.name)
    assert one.test is not None and other.test is not None
    for rows, again in ((one.train, other.train), (one.test, other.test)):
        np.testing.assert_array_equal(rows.X, again.X)
        assert rows.columns == again.columns and rows.X.dtype == again.X.dtype
        for name in ("y", "groups", "times"):
            np.testing.assert_array_equal(getattr(rows, name), getattr(again, name))
            assert getattr(rows, name).dtype == getattr(again, name).dtype


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after which reading raw files fails."""

    def fail(*_: object) -> None:
        raise AssertionError("the raw files are read")

    return lambda: monkeypatch.setattr(loading, "read_found", fail)


def test_what_load_returns(raw: Path, tmp_path: Path) -> None:
    data = load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    np.testing.assert_array_equal(data.X, np.array([[1, NAN], [2, 5], [3, 6.5]], dtype=np.float32))
    assert data.y.tolist() == ["x", None, "y"] and data.train.columns == ("a", "b")
    assert data.y_test is not None and data.y_test.tolist() == ["x"] and data.X_test.tolist() == [[4, 7]]
    assert data.source == "2 CSV files, test set test.csv, label column label." and data.image_shape is None
    assert data.citation == "" and "Your own files" in data.licence and data.notes == ()
    assert len(files(tmp_path / "prepared")) == 1 and files(tmp_path / "prepared")[0].startswith("mine-")


def test_the_second_load_reads_only_the_cache(raw: Path, tmp_path: Path, unread: Callable[[], None]) -> None:
    cold = load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    unread()
    same(load(spec(raw), name="mine", cache_dir=tmp_path / "prepared"), cold)


def test_moved_files_are_found_again(raw: Path, tmp_path: Path, unread: Callable[[], None]) -> None:
    cold = load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    shutil.move(raw, tmp_path / "elsewhere")
    unread()
    same(load(spec(tmp_path / "elsewhere"), name="mine", cache_dir=tmp_path / "prepared"), cold)


def change_byte(raw: Path) -> None:
    (raw / "b.csv").write_text((raw / "b.csv").read_text().replace("6.5", "6.4"))


def change_test(raw: Path) -> None:
    (raw / "test.csv").write_text((raw / "test.csv").read_text().replace("4,7", "5,7"))


@pytest.mark.parametrize(
    "change",
    [
        change_byte,
        change_test,
        lambda raw: (raw / "b.csv").rename(raw / "c.csv"),
        lambda raw: shutil.copy(raw / "b.csv", raw / "c.csv"),
        lambda raw: (raw / "b.csv").unlink(),
    ],
    ids=["byte", "test set", "name", "another file", "a file less"],
)
def test_changed_files_are_read_anew(raw: Path, tmp_path: Path, change: Callable[[Path], Any]) -> None:
    load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    change(raw)
    load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    assert len(files(tmp_path / "prepared")) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"drop": ("b",)},
        {"columns": ("b", "a")},
        {"columns": ("a", "b")},
        {"label": "a", "drop": ("label",)},
        {"group": None, "drop": ("who",)},
        {"time": None, "drop": ("day",)},
        {"test_path": None},
    ],
    ids=str,
)
def test_another_field_is_another_file(raw: Path, tmp_path: Path, fields: dict[str, Any]) -> None:
    load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    load(spec(raw, **fields), name="mine", cache_dir=tmp_path / "prepared")
    assert len(files(tmp_path / "prepared")) == 2


def test_the_border_between_the_sets_counts(raw: Path, tmp_path: Path) -> None:
    # The same files in the same order, of which the middle one changes sides.
    for path, test_path in (("[ab].csv", "test.csv"), ("a.csv", "[bt]*.csv")):
        load(
            FileSpec(str(raw / path), str(raw / test_path), drop=("day",)), name="mine", cache_dir=tmp_path / "prepared"
        )
    assert len(files(tmp_path / "prepared")) == 2


def test_a_format_that_is_given_or_told_by_the_name_is_the_same(
    raw: Path, tmp_path: Path, unread: Callable[[], None]
) -> None:
    cold = load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    unread()
    same(load(spec(raw, format="csv"), name="mine", cache_dir=tmp_path / "prepared"), cold)


def test_another_way_of_reading_is_another_file(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    monkeypatch.setattr(loading, "READING", "next")
    load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    assert len(files(tmp_path / "prepared")) == 2


def test_a_truncated_cache_is_rebuilt_with_a_warning(raw: Path, tmp_path: Path) -> None:
    cold = load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    (name,) = files(tmp_path / "prepared")
    whole = (tmp_path / "prepared" / name).read_bytes()
    (tmp_path / "prepared" / name).write_bytes(whole[:-30])
    with pytest.warns(UserWarning, match=f"{name} is rebuilt: it cannot be read"):
        same(load(spec(raw), name="mine", cache_dir=tmp_path / "prepared"), cold)
    assert (tmp_path / "prepared" / name).read_bytes() == whole


def test_an_altered_cache_is_rebuilt_with_a_warning(raw: Path, tmp_path: Path) -> None:
    cold = load(spec(raw), name="mine", cache_dir=tmp_path / "prepared")
    (name,) = files(tmp_path / "prepared")
    table = pq.read_table(tmp_path / "prepared" / name)
    place = table.column_names.index("group")
    altered = table.set_column(place, "group", pa.array([1, 2, 3, 4])).replace_schema_metadata(table.schema.metadata)
    pq.write_table(altered, tmp_path / "prepared" / name)
    with pytest.warns(UserWarning, match=f"{name} is rebuilt: its content"):
        same(load(spec(raw), name="mine", cache_dir=tmp_path / "prepared"), cold)


def test_sparse_data_and_texts_come_back_from_the_cache(tmp_path: Path, unread: Callable[[], None]) -> None:
    (tmp_path / "a.svm").write_text("1 2:0.5\n-1 1:3 3:4\n")
    for name in ("x/1", "y/2"):
        (tmp_path / "texts" / name).parent.mkdir(parents=True)
        (tmp_path / "texts" / name).write_text(f"text {name}")
    specs = [FileSpec(str(tmp_path / "a.svm")), FileSpec(str(tmp_path / "texts"))]
    cold = [load(one, name="mine", cache_dir=tmp_path / "prepared") for one in specs]
    unread()
    sparse, texts = (load(one, name="mine", cache_dir=tmp_path / "prepared") for one in specs)
    assert (
        sparse.train.kind == "sparse" and sparse.X.nnz == 3 and sparse.X.toarray().tolist() == [[0, 0.5, 0], [3, 0, 4]]
    )
    assert texts.X.tolist() == ["text x/1", "text y/2"] and texts.y.tolist() == ["x", "y"]
    assert [data.sha256 for data in (sparse, texts)] == [data.sha256 for data in cold]


def test_lists_from_the_cache(tmp_path: Path, unread: Callable[[], None]) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 3)
    pq.write_table(pa.table({"x": lists, "label": [0, 1, 0, 1]}), tmp_path / "a.parquet")
    cold = load(FileSpec(str(tmp_path / "a.parquet")), name="mine", cache_dir=tmp_path / "prepared")
    unread()
    warm = load(FileSpec(str(tmp_path / "a.parquet")), name="mine", cache_dir=tmp_path / "prepared")
    for data in (cold, warm):
        np.testing.assert_array_equal(data.X, values)
        assert data.train.columns == ("x[0]", "x[1]", "x[2]")


def test_the_cache_is_kept_apart(raw: Path, tmp_path: Path) -> None:
    for place in (raw, tmp_path):
        with pytest.raises(DataError, match=r"cache_dir=.* holds files of .*; choose another folder"):
            load(spec(raw), name="mine", cache_dir=place)
    (tmp_path / "texts" / "x").mkdir(parents=True)
    (tmp_path / "texts" / "x" / "1").write_text("a")
    for path in (str(tmp_path / "texts"), str(raw / "**" / "?.csv")):
        inside = (raw if "raw" in Path(path).parts else tmp_path / "texts") / "prepared"
        with pytest.raises(DataError, match=r"cache_dir=.* is inside .*; choose another folder"):
            load(FileSpec(path), name="mine", cache_dir=inside)
    assert files(raw) == ["a.csv", "b.csv", "test.csv"]


def test_faulty_files_leave_no_cache(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dataset\.drop names 'c', which is not a column"):
        load(spec(raw, drop=("c",)), name="mine", cache_dir=tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()
