"""The prepared file: what is read equals what was written, every damage is noticed, nothing is left half written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldsvm.datasets import DataError, cache
from ldsvm.datasets.dataset import Raw

if TYPE_CHECKING:
    from conftest import Mini


def test_round_trip(mini: Mini, tmp_path: Path) -> None:
    raw = mini.raw()
    cache.write(tmp_path / "new" / "a.parquet", raw)
    back = cache.read(tmp_path / "new" / "a.parquet", raw.sha256())
    assert back is not None and back.source == raw.source
    for name in ("X", "y", "X_test", "y_test"):
        np.testing.assert_array_equal(getattr(back, name), getattr(raw, name))
        assert getattr(back, name).dtype == np.uint8


def test_round_trip_without_a_test_set(tmp_path: Path) -> None:
    raw = Raw(np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([7, 9], dtype=np.uint8), None, None, "No test set.")
    cache.write(tmp_path / "a.parquet", raw)
    back = cache.read(tmp_path / "a.parquet", raw.sha256())
    assert back is not None and back.X_test is None and back.y_test is None
    np.testing.assert_array_equal(back.X, raw.X)


def test_the_file_says_what_it_is(mini: Mini, tmp_path: Path) -> None:
    cache.write(tmp_path / "a.parquet", mini.raw())
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert schema.field("pixels").type == pa.list_(pa.uint8(), 10)
    assert schema.field("label").type == pa.uint8()
    assert schema.metadata[b"ldsvm.version"] == b"1"
    assert schema.metadata[b"ldsvm.sha256"].decode() == mini.entry.sha256
    assert schema.metadata[b"ldsvm.source"] == b"A tiny test source."


def test_absent_is_no_fault(tmp_path: Path) -> None:
    assert cache.read(tmp_path / "absent.parquet", "0" * 64) is None


def test_every_truncation_is_noticed(mini: Mini, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    cache.write(path, mini.raw())
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // 12):
        path.write_bytes(whole[:length])
        with pytest.warns(UserWarning, match=r"a\.parquet is rebuilt: "):
            assert cache.read(path, mini.entry.sha256) is None


@pytest.mark.parametrize(
    ("column", "value"), [("pixels", [[1] * 10] * 10), ("label", [0] * 10)], ids=["pixels", "label"]
)
def test_other_content_is_noticed(mini: Mini, tmp_path: Path, column: str, value: list[object]) -> None:
    # A valid file with the old digest in its metadata: only a digest that is computed again can tell.
    path = tmp_path / "a.parquet"
    cache.write(path, mini.raw())
    table = pq.read_table(path)
    place = table.column_names.index(column)
    changed = table.set_column(place, table.schema.field(column), pa.array(value, table.schema.field(column).type))
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    with pytest.warns(UserWarning, match="its content does not have the expected sha256"):
        assert cache.read(path, mini.entry.sha256) is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (b"ldsvm.version", b"0", "format version 0, not 1"),
        (b"ldsvm.version", None, "cannot be read"),
        (b"ldsvm.train_rows", b"6", "expected sha256"),
        (b"ldsvm.train_rows", b"many", "cannot be read"),
    ],
)
def test_other_metadata_is_noticed(mini: Mini, tmp_path: Path, key: bytes, value: bytes | None, message: str) -> None:
    path = tmp_path / "a.parquet"
    cache.write(path, mini.raw())
    table = pq.read_table(path)
    about = {**table.schema.metadata, key: value}
    if value is None:
        del about[key]
    pq.write_table(table.replace_schema_metadata(about), path)
    with pytest.warns(UserWarning, match=message):
        assert cache.read(path, mini.entry.sha256) is None


def test_another_column_type_is_noticed(mini: Mini, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    cache.write(path, mini.raw())
    table = pq.read_table(path)
    structs = pa.array([{"pixel": row[0]} for row in table["pixels"].to_pylist()])
    pq.write_table(table.set_column(0, "pixels", structs).replace_schema_metadata(table.schema.metadata), path)
    with pytest.warns(UserWarning, match="pixels have type struct"):
        assert cache.read(path, mini.entry.sha256) is None


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"old")

    def disk_full(table: object, where: Path, **options: object) -> None:
        Path(where).write_bytes(b"half of i")
        raise OSError("no space left")

    monkeypatch.setattr(pq, "write_table", disk_full)
    with pytest.raises(DataError, match=r"a\.parquet: the prepared data cannot be written \(no space left\)"):
        cache.write(path, mini.raw())
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_a_cache_folder_that_is_a_file_is_named(mini: Mini, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"):
        cache.write(tmp_path / "file" / "a.parquet", mini.raw())
