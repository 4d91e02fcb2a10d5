"""The prepared file: what is read equals what was written, every damage is noticed, nothing is left half written."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from ldsvm.datasets import DataError, cache, columns
from ldsvm.datasets.dataset import Raw, Rows

if TYPE_CHECKING:
    from conftest import Mini


def same(first: Rows | None, second: Rows | None) -> None:
    """Equal content and types, part by part."""
    assert first is not None and second is not None
    assert first.columns == second.columns and first.kind == second.kind
    for name in ("X", "y", "groups", "times"):
        one, two = getattr(first, name), getattr(second, name)
        if issparse(one):
            assert one.dtype == two.dtype and one.nnz == two.nnz
            np.testing.assert_array_equal(one.toarray(), two.toarray())
        elif one is None:
            assert two is None
        else:
            assert one.dtype == two.dtype and one.shape == two.shape
            np.testing.assert_array_equal(one, two)


def words(*items: Any) -> NDArray[Any]:
    return np.array(items, dtype=object)


DAYS = np.array(["2024-02-29", "2020-01-01", "1999-12-31"], dtype="datetime64[ms]")
SPARSE = csr_matrix(np.array([[0, 0, 2.5, 0], [0, 0, 0, 0], [1, 0, 0, np.nan]], dtype=np.float32))
KINDS = {
    "text": Rows(words("naïve\n\ttabs", "", "日本"), words("a", "b", "a")),
    "text, a label missing": Rows(words("x", "y", "z"), words("a", None, "b")),
    "sparse": Rows(SPARSE, np.array([2, -1, 2], dtype=np.int64), ("p", "q", "r", "s"), groups=words("g", "h", "g")),
    "dense, a value and a label missing": Rows(
        np.array([[1, np.nan], [-0.0, 3], [5, 6]], dtype=np.float32), words(3, None, 5), ("a", "b"), times=DAYS
    ),
    "bytes": Rows(np.arange(9, dtype=np.uint8).reshape(3, 3), np.array([7, 9, 7], dtype=np.uint8)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("test", [None, [1, 0]], ids=["without test set", "with test set"])
def test_round_trip(tmp_path: Path, kind: str, test: list[int] | None) -> None:
    rows = KINDS[kind]
    raw = Raw(rows, None if test is None else rows.take(test), "A source.")
    cache.write(tmp_path / "new" / "a.parquet", raw)
    back = cache.read(tmp_path / "new" / "a.parquet", raw.sha256())
    assert back is not None and back.source == "A source."
    same(back.train, rows)
    assert (back.test is None) == (test is None)
    if test is not None:
        same(back.test, rows.take(test))
    unnamed = cache.read(tmp_path / "new" / "a.parquet")
    assert unnamed is not None and unnamed.sha256() == raw.sha256()


def test_the_digest_depends_on_every_part_and_on_the_cut() -> None:
    rows = KINDS["dense, a value and a label missing"]
    changes: list[dict[str, Any]] = [
        {}, {"X": rows.X[:, ::-1]}, {"X": rows.X.astype(np.float64)}, {"y": words(3, "", 5)}, {"columns": None},
        {"columns": ("a", "c")}, {"times": DAYS[::-1]}, {"groups": words("a", "b", "c")},
    ]  # fmt: skip
    every = [Raw(replace(rows, **change), None, "s").sha256() for change in changes]
    cuts = [Raw(rows.take(np.arange(n)), rows.take(np.arange(n, 3)), "s").sha256() for n in (1, 2)]
    assert len({*every, *cuts}) == len(changes) + 2
    glued = [Raw(Rows(words(*pair), np.array([0, 1])), None, "s").sha256() for pair in (("ab", "c"), ("a", "bc"))]
    assert glued[0] != glued[1]


def test_rows_are_taken_by_number_and_by_mask() -> None:
    rows = KINDS["sparse"]
    same(rows.take([0, 2]), rows.take(np.array([True, False, True])))
    assert rows.take([2]).X.toarray()[0, 0] == 1 and rows.take([2]).y.tolist() == [2]


def test_the_file_says_what_it_is(mini: Mini, tmp_path: Path) -> None:
    cache.write(tmp_path / "a.parquet", mini.raw(), {"configuration": "label: y"})
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert schema.field("features").type == pa.list_(pa.uint8(), 10)
    assert "RLE_DICTIONARY" in pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(1).encodings
    assert schema.metadata[b"ldsvm.version"] == b"2"
    assert schema.metadata[b"ldsvm.sha256"].decode() == mini.entry.sha256
    assert schema.metadata[b"ldsvm.source"] == b"A tiny test source."
    assert schema.metadata[b"ldsvm.configuration"] == b"label: y"
    assert schema.metadata[b"ldsvm.code"]


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
    ("column", "value"), [("features", [[1] * 10] * 10), ("label", [0] * 10)], ids=["features", "label"]
)
def test_other_content_is_noticed(mini: Mini, tmp_path: Path, column: str, value: list[object]) -> None:
    # A valid file with the old digest in its metadata: only a digest that is computed again can tell.
    path = tmp_path / "a.parquet"
    cache.write(path, mini.raw())
    table = pq.read_table(path)
    place = table.column_names.index(column)
    changed = table.set_column(place, table.schema.field(column), pa.array(value).cast(table.schema.field(column).type))
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    with pytest.warns(UserWarning, match="its content does not have the expected sha256"):
        assert cache.read(path, mini.entry.sha256) is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (b"ldsvm.version", b"0", "format version 0, not 2"),
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
    structs = pa.array([{"pixel": row[0]} for row in table["features"].to_pylist()])
    pq.write_table(table.set_column(0, "features", structs).replace_schema_metadata(table.schema.metadata), path)
    with pytest.warns(UserWarning, match="features have type struct"):
        assert cache.read(path, mini.entry.sha256) is None


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"old")

    def disk_full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", disk_full)
    with pytest.raises(DataError, match=r"a\.parquet: the prepared data cannot be written \(no space left\)"):
        cache.write(path, mini.raw())
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_parts_whose_labels_have_no_common_type_cannot_be_one_file(tmp_path: Path) -> None:
    rows = Rows(np.zeros((2, 1), dtype=np.float32), np.array([1, 2]))
    with pytest.raises(DataError, match="cannot be written"):
        cache.write(tmp_path / "a.parquet", Raw(rows, replace(rows, y=words("a", "b")), "s"))
    assert list(tmp_path.iterdir()) == []


def test_many_groups_of_rows_are_put_together_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "GROUP", 1)  # one row in each group
    for name, rows in KINDS.items():
        cache.write(tmp_path / f"{name}.parquet", Raw(rows, rows.take([1, 0]), "s"))
        assert pq.ParquetFile(tmp_path / f"{name}.parquet").num_row_groups > 2
        back = cache.read(tmp_path / f"{name}.parquet")
        assert back is not None
        same(back.train, rows)
        same(back.test, rows.take([1, 0]))


def test_a_cache_folder_that_is_a_file_is_named(mini: Mini, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"):
        cache.write(tmp_path / "file" / "a.parquet", mini.raw())


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("promise", [b"100000000000000", b"1000000000", b"-1", b"1e400", b'"a"', b"null"])
def test_an_absurd_number_of_columns_is_noticed_and_costs_no_memory(tmp_path: Path, kind: str, promise: bytes) -> None:
    # One column only, which NumPy would spread over as many as there are.
    inputs = np.ones((3, 1), dtype=np.float32)
    raw = Raw(Rows(csr_matrix(inputs) if kind == "sparse" else inputs, np.array([0, 1, 0])), None, "s")
    cache.write(tmp_path / "a.parquet", raw)
    table = pq.read_table(tmp_path / "a.parquet")
    about = {**table.schema.metadata, b"ldsvm.n_features": promise}
    pq.write_table(table.replace_schema_metadata(about), tmp_path / "a.parquet")
    tracemalloc.start()
    with pytest.warns(UserWarning, match=r"a\.parquet is rebuilt: "):
        assert cache.read(tmp_path / "a.parquet") is None
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


def test_values_in_lists_of_fixed_size_are_noticed(tmp_path: Path) -> None:
    cache.write(tmp_path / "a.parquet", Raw(KINDS["bytes"], None, "s"))
    table = pq.read_table(tmp_path / "a.parquet")
    names = ["values" if name == "features" else name for name in table.column_names]
    renamed = table.rename_columns(names).replace_schema_metadata(table.schema.metadata)
    pq.write_table(renamed, tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="values have type fixed_size_list"):
        assert cache.read(tmp_path / "a.parquet") is None


@pytest.mark.parametrize(
    "error", [MemoryError(), OverflowError("too large"), AttributeError("no such"), RecursionError()]
)
def test_whatever_an_altered_file_leads_to_is_a_reason_to_rebuild(
    mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    cache.write(tmp_path / "a.parquet", mini.raw())

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(columns, "read_rows", fail)
    with pytest.warns(UserWarning, match=rf"it cannot be read \({str(error) or type(error).__name__}\)"):
        assert cache.read(tmp_path / "a.parquet") is None


def test_a_name_that_cannot_be_looked_up_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"…: the prepared data cannot be read \(File name too long\)\.$"):
        cache.read(tmp_path / ("a" * 300))
