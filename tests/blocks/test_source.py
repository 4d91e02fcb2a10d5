"""Blocks from arrays, Parquet files and mapped arrays: the same rows, and one sentence for each fault."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pandas import DataFrame
from pyarrow import parquet
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier, RowBlocks
from ldsvm.blocks import BlockError, Serial, Threads
from tests.blocks.conftest import cut, far, model

Data = tuple[np.ndarray, np.ndarray]
EMPTY = pa.table({"a": pa.array([], pa.float64()), "digit": pa.array([], pa.int64())})
pytestmark = pytest.mark.slow


def test_bytes_are_inputs_from_0_to_255(train: Data, tmp_path: Path) -> None:
    X, y = np.round(train[0] * 16).astype(np.uint8), train[1]
    values = pa.Array.from_buffers(pa.binary(64), len(X), [None, pa.py_buffer(X)])
    parquet.write_table(pa.table({"pixels": values, "digit": y}).slice(7), tmp_path / "a.parquet", row_group_size=100)
    rows = RowBlocks.parquet(tmp_path, "digit", rows=250)
    found = np.concatenate([rows.read(i)[0] for i in range(len(rows.blocks))])
    assert found.dtype == np.uint8 and np.array_equal(found, X[7:])
    cuts = model(centers="random").fit(cut((X[7:], y[7:])))
    assert far(model(centers="random").fit(rows), cuts) < 1e-4  # features in float32


def test_bytes_as_pandas_writes_them_are_inputs_where_they_are_of_one_length(train: Data, tmp_path: Path) -> None:
    X, y = np.round(train[0] * 16).astype(np.uint8), train[1]
    parquet.write_table(pa.table({"pixels": [row.tobytes() for row in X], "digit": y}), tmp_path / "a.parquet")
    rows = RowBlocks.parquet(tmp_path, "digit", rows=250)
    assert np.array_equal(np.concatenate([rows.read(i)[0] for i in range(len(rows.blocks))]), X)
    parquet.write_table(pa.table({"pixels": [b"abc", b"a"], "digit": [0, 1]}), tmp_path / "a.parquet")
    with pytest.raises(BlockError, match="'pixels' have 1 to 3 bytes; all must have the same length"):
        RowBlocks.parquet(tmp_path, "digit").read(0)


def table(X: np.ndarray, y: Any, lists: bool = False) -> pa.Table:
    if lists:
        values = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
        return pa.table({"pixels": values, "digit": y})
    return pa.table({**{f"p{d}": X[:, d] for d in range(X.shape[1])}, "digit": y})


def written(folder: Path, data: Data, edges: list[int], **options: Any) -> Path:
    X, y = data
    lists = options.pop("lists", False)
    for i, (A, c) in enumerate(zip(np.split(X, edges), np.split(y, edges), strict=True)):
        parquet.write_table(table(A, c, lists), folder / f"part{i}.parquet", **options)
    return folder


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("how", ["folder", "glob", "file", "list"])
def test_parquet_is_the_same_rows(
    how: str, lists: bool, train: Data, whole: LDSVMClassifier, tmp_path: Path
) -> None:  # fmt: skip
    edges = [] if how == "file" else [250, 600]
    written(tmp_path, train, edges, lists=lists, row_group_size=100)
    where = {
        "folder": tmp_path,
        "glob": tmp_path / "part*.parquet",
        "file": tmp_path / "part0.parquet",
        "list": [tmp_path / "part0.parquet", str(tmp_path / "part[12].parquet")],
    }[how]
    rows = RowBlocks.parquet(where, "digit", rows=250)
    assert [block.rows for block in rows.blocks] == (
        [200, 200, 200, 200, 100] if how == "file" else [250, 200, 150, 200, 100]
    )
    read = [np.concatenate(parts) for parts in zip(*(rows.read(i) for i in range(len(rows.blocks))), strict=True)]
    assert np.array_equal(read[0], train[0]) and np.array_equal(read[1], train[1])
    found = model().fit(rows, executor=Threads(2))
    assert far(found, whole) < 1e-8
    assert lists or list(found.feature_names_in_) == [f"p{d}" for d in range(64)]


def test_files_of_a_list_keep_their_order_and_names_that_look_like_globs(tmp_path: Path) -> None:
    paths = [tmp_path / f"part[{i}].parquet" for i in (2, 0, 1)]
    for i, path in enumerate(paths):
        parquet.write_table(pa.table({"a": [float(i)], "b": [0.0], "digit": [i]}), path)
    rows = RowBlocks.parquet(iter(paths), "digit")
    assert [block.name for block in rows.blocks] == [str(path) for path in paths]
    for where, words in [
        ([], "the list of Parquet files is empty"),
        ([paths[0], tmp_path], r"part\[2\]\.parquet is listed more than once"),
        ([paths[0], tmp_path / "gone.parquet"], r"gone\.parquet: no Parquet file found"),
        (3, "3 is not a path; allowed: a Parquet file, a folder, a glob, or a list of these"),
        ([b"a.parquet"], "b'a.parquet' is not a path"),
    ]:
        with pytest.raises(BlockError, match=words):
            RowBlocks.parquet(where, "digit")


def test_mapped_arrays_are_the_same_rows(train: Data, whole: LDSVMClassifier, tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", train[0])
    np.save(tmp_path / "y.npy", train[1])
    rows = RowBlocks.mapped(tmp_path / "X.npy", tmp_path / "y.npy", rows=400)
    assert [block.rows for block in rows.blocks] == [400, 400, 100]
    assert far(model().fit(rows, executor=Serial(memory=0)), whole) < 1e-8


def test_columns_are_chosen_by_name(train: Data, tmp_path: Path) -> None:
    written(tmp_path, train, [300])
    rows = RowBlocks.parquet(tmp_path, "digit", columns=["p20", "p10", "p30"])
    assert np.array_equal(rows.read(0)[0], train[0][:300, [20, 10, 30]])
    assert list(model(n_basis=20).fit(rows).feature_names_in_) == ["p20", "p10", "p30"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: None, r"nothing\.parquet: no Parquet file found"),
        (lambda f: (f / "nothing.parquet").write_bytes(b"PAR1 no"), r"nothing\.parquet is not a readable Parquet file"),
        (lambda f: parquet.write_table(pa.table({"a": [1.0], "d": [1]}), f / "nothing.parquet"), "it has a, d"),
        (lambda f: parquet.write_table(EMPTY, f / "nothing.parquet"), "has no rows"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_at_once(change: Any, words: str, tmp_path: Path) -> None:
    change(tmp_path)
    with pytest.raises(BlockError, match=words):
        RowBlocks.parquet(tmp_path / "nothing.parquet", "digit")


def test_pipes_and_devices_are_not_opened(tmp_path: Path) -> None:
    pipe, array = tmp_path / "rows.parquet", tmp_path / "X.npy"
    os.mkfifo(pipe)
    np.save(array, np.ones((3, 2)))
    (tmp_path / "zero.parquet").symlink_to("/dev/zero")
    for where in (pipe, tmp_path, [tmp_path / "zero.parquet"], str(tmp_path / "*.parquet")):
        with pytest.raises(BlockError, match="is a pipe, a device or a folder; allowed: a regular file"):
            RowBlocks.parquet(where, "digit")
    for files in ((pipe, array), (array, pipe)):
        with pytest.raises(BlockError, match="is a pipe, a device or a folder"):
            RowBlocks.mapped(*files)


def test_files_with_other_columns_are_named(train: Data, tmp_path: Path) -> None:
    written(tmp_path, train, [300])
    parquet.write_table(table(train[0][:, :63], train[1]), tmp_path / "part9.parquet")
    with pytest.raises(BlockError, match=r"part9\.parquet: column 'p63' is not in all files"):
        RowBlocks.parquet(tmp_path, "digit")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": [1.0, None], "digit": [0, 1]}, "column 'a' has 1 missing values"),
        ({"a": [1.0, 2.0], "digit": [0, None]}, "column 'digit' has 1 missing values"),
        ({"a": [1.0, float("nan")], "digit": [0, 1]}, r"NaN in column 0"),
        ({"a": ["x", "y"], "digit": [0, 1]}, "column 'a' is of type string; allowed: numbers"),
        ({"a": [[1.0, 2.0], [3.0]], "digit": [0, 1]}, "lists in column 'a' have 1 to 2 numbers"),
        ({"a": [[1.0]] * 150 + [[1.0, 2.0], []], "digit": [0, 1] * 76}, "lists in column 'a' have 0 to 2 numbers"),
        ({"a": [["x"], ["y"]], "digit": [0, 1]}, "column 'a' is of type list<.*>; allowed: lists of numbers"),
        ({"a": [{"b": 1}, {"b": 2}], "digit": [0, 1]}, "column 'a' is of type struct<b: int64>; allowed: numbers"),
        ({"a": [1.0, 2.0], "digit": [b"x", b"y"]}, "column 'digit' of labels is of type binary; allowed"),
        ({"a": [1.0, 2.0], "digit": [0.5, float("nan")]}, "missing label in row 1"),
    ],
)
def test_values_that_cannot_be_used_are_named_with_their_file(columns: Any, words: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "bad.parquet")
    with pytest.raises(BlockError, match=words) as caught:
        model().fit(RowBlocks.parquet(tmp_path, "digit"))
    assert "bad.parquet" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("executor", [Serial(memory=0), Threads(2, memory=0)], ids=str)
@pytest.mark.parametrize("what", ["gone", "cut", "shorter"])
def test_a_block_that_is_lost_in_the_middle_is_named(what: str, executor: Any, train: Data, tmp_path: Path) -> None:
    written(tmp_path, train, [300, 600])
    file = tmp_path / "part1.parquet"

    def lose(info: dict[str, Any]) -> None:
        if info["iteration"] == 1:
            if what == "gone":
                file.unlink()
            elif what == "cut":
                file.write_bytes(file.read_bytes()[:-20])
            else:
                parquet.write_table(table(train[0][:7], train[1][:7]), file)

    words = "has 7 rows but had 300 before" if what == "shorter" else "cannot be read"
    with pytest.raises(BlockError, match=rf"part1\.parquet {words}"):
        model().fit(RowBlocks.parquet(tmp_path, "digit"), executor=executor, callback=lose)


@pytest.mark.parametrize("memory", [0, None], ids=["read anew", "kept"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 0.5, "gone"])
def test_a_mapped_file_that_changes_in_the_middle_is_named(
    value: Any, memory: Any, train: Data, valid: Data, tmp_path: Path
) -> None:
    for name, array in {"X": train[0], "y": train[1], "V": valid[0]}.items():
        np.save(tmp_path / f"{name}.npy", array)
    rows = RowBlocks.mapped(tmp_path / "X.npy", tmp_path / "y.npy")
    held = RowBlocks.mapped(tmp_path / "V.npy", valid[1])
    for name in ("X", "V"):
        file = tmp_path / f"{name}.npy"
        before = file.read_bytes()

        def change(info: dict[str, Any], file: Path = file) -> None:
            if info["iteration"] == 1 and value == "gone":
                file.unlink()
            elif info["iteration"] == 1:
                array = np.load(file, mmap_mode="r+")
                array[7, 3] = value
                array.flush()

        chosen = {"map": "linear"}  # whose features are the inputs: each pass reads them
        with pytest.raises(BlockError, match=rf"{name}\.npy (has changed since it was first read|cannot be read)"):
            model(**chosen).fit(rows, eval_set=held, executor=Serial(memory=memory), callback=change)
        file.write_bytes(before)


@pytest.mark.parametrize("params", [{"map": "linear"}, {"map": "adaptive_rbf", "center_steps": 30, "n_basis": 10}])
@pytest.mark.parametrize("edges", [[], [300]])
def test_an_array_that_gets_a_nan_in_the_middle_is_named(params: Any, edges: list[int], train: Data) -> None:
    X, y = train

    def change(info: dict[str, Any]) -> None:
        X[-1, 3] = np.nan

    words = rf"block {len(edges)} has changed since it was first read: Input X contains NaN in column 3"
    with pytest.raises(BlockError, match=words):
        model(**params).fit(cut((X, y), *edges), executor=Serial(memory=0 if edges else None), callback=change)


def test_a_parquet_file_with_other_values_of_the_same_number_is_named(train: Data, tmp_path: Path) -> None:
    X, y = train
    written(tmp_path, train, [300, 600])

    def change(info: dict[str, Any]) -> None:
        parquet.write_table(table(X[:300] / 2, y[:300]), tmp_path / "part1.parquet")

    with pytest.raises(BlockError, match=r"part1\.parquet has changed since it was first read; rows must not change"):
        model().fit(RowBlocks.parquet(tmp_path, "digit"), executor=Serial(memory=0), callback=change)
    for memory in (None, 10**9):  # what is in memory stays
        model().fit(RowBlocks.parquet(tmp_path, "digit"), executor=Serial(memory=memory), callback=change)


def test_blocks_that_do_not_go_together_are_told(train: Data) -> None:
    X, y = train
    with pytest.raises(BlockError, match="block 1 has 63 inputs, the blocks before it have 64"):
        model().fit(RowBlocks.arrays([(X, y), (X[:, :63], y)]))
    with pytest.raises(BlockError, match="different numbers of inputs: 63, 64"):
        model().fit(RowBlocks.arrays([(X, y), (X[:, :63], y)]), executor=Threads(2))
    for executor in (Serial(), Threads(2)):
        with pytest.raises(BlockError, match="block 1: its labels are texts, those of the blocks"):
            model().fit(RowBlocks.arrays([(X, y), (X, y.astype(str))]), executor=executor)
    with pytest.raises(BlockError, match=r"block 0 has X of shape \(900,\)"):
        RowBlocks.arrays([(y, y)])
    with pytest.raises(BlockError, match="has no rows"):
        RowBlocks.arrays([])
    with pytest.raises(BlockError, match=r"y\.npy cannot be read"):
        RowBlocks.mapped("X.npy", "y.npy")
    with pytest.raises(BlockError, match="block 0 is not a pair of inputs and labels"):
        RowBlocks.arrays((X, y))
    with pytest.raises(BlockError, match="block 0 has sparse inputs"):
        RowBlocks.arrays([(csr_matrix(X), y)])
    for executor in (Serial(), Threads(2)):
        with pytest.raises(ValueError, match=r"X has type float64 and shape \(900, 0\)"):
            model().fit(RowBlocks.arrays([(X[:, :0], y), (X[:, :0], y)]), executor=executor)
    with pytest.raises(BlockError, match="different numbers of inputs: 1, 64"):
        RowBlocks.arrays([(X, y), (X[:, :1], y)]).scaled(Threads(2))


def test_unsigned_labels_and_labels_with_sign_stay_whole_numbers(train: Data) -> None:
    X, y = train
    large = 2**53 + 1 + 2 * y  # numbers that float64 does not tell apart
    blocks = [(X[:400], large[:400]), (X[:0], []), (X[400:], large[400:].astype(np.uint64))]
    for executor in (Serial(), Threads(3)):
        found = model().fit(RowBlocks.arrays(blocks), executor=executor)
        assert found.classes_.tolist() == np.unique(large).tolist()
    with pytest.raises(BlockError, match="too large for one type"):
        model().fit(RowBlocks.arrays([(X[:400], y[:400]), (X[400:], y[400:].astype(np.uint64) + 2**63)]))


def test_tables_keep_their_names_and_must_have_the_same_columns(train: Data) -> None:
    X, y = train
    names = [f"p{d}" for d in range(64)]
    table = DataFrame(X, columns=names)
    rows = RowBlocks.arrays([(table[:400], y[:400]), (table[400:], y[400:])])
    assert list(model().fit(rows).feature_names_in_) == names
    with pytest.raises(BlockError, match="block 1: its columns differ from those of the blocks before it"):
        RowBlocks.arrays([(table[:400], y[:400]), (table[400:][names[::-1]], y[400:])])
    with pytest.raises(ValueError, match="eval_set has different columns from the training rows, or in another order"):
        model().fit(rows, eval_set=(table[names[::-1]], y))
    again = model().fit(table, y)
    assert not hasattr(again.fit(cut((X[:, :5], y), 400)), "feature_names_in_")


def test_validation_rows_must_go_through_the_same_steps(train: Data, valid: Data) -> None:
    rows, scaler = cut(train, 400).scaled()
    with pytest.raises(ValueError, match="eval_set must have the steps of the training rows"):
        model().fit(rows, eval_set=cut(valid))
    assert model().fit(rows, eval_set=cut(valid).then(scaler)).history_[-1]["valid_error"] < 0.2
    with pytest.raises(BlockError, match="block 0 has 3 inputs, the training rows have 64"):
        model().fit(cut(train), eval_set=(valid[0][:, :3], valid[1]))


def test_values_beyond_the_maps_range_are_told_as_in_memory(train: Data) -> None:
    X, y = train
    with pytest.raises(BlockError, match=r"a value beyond 1e\+18 in column"):
        model().fit(cut((X * 1e19, y), 400))


def test_unfinished_files_are_not_read(train: Data, tmp_path: Path) -> None:
    written(tmp_path, train, [300])
    for name in (".hidden", "_temporary/x", ".ipynb_checkpoints/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        parquet.write_table(table(*train), tmp_path / f"{name}.parquet")
    assert [block.rows for block in RowBlocks.parquet(tmp_path, "digit").blocks] == [300, 600]


@pytest.mark.parametrize("columns", [["p1", "digit"], ["p1", "p1"], [], "digit"])
def test_columns_that_cannot_be_meant_are_refused(columns: Any, train: Data, tmp_path: Path) -> None:
    written(tmp_path, train, [])
    with pytest.raises(BlockError, match=r"columns=.* must name at least one input, each once, and not the label"):
        RowBlocks.parquet(tmp_path, "digit", columns=columns)


@pytest.mark.parametrize("rows", [0, -1, 1.5, "2", True])
def test_rows_of_a_block_are_a_number(rows: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    with pytest.raises(BlockError, match=r"rows=.* must be a whole number of at least 1"):
        RowBlocks.mapped(tmp_path / "a.npy", np.zeros(2), rows=rows)
    with pytest.raises(BlockError, match=r"rows=.* must be a whole number of at least 1"):
        RowBlocks.parquet(tmp_path, "digit", rows=rows)
    with pytest.raises(BlockError, match=r"shape \(2, 2\) and y has shape \(2, 1\)"):
        RowBlocks.mapped(tmp_path / "a.npy", np.zeros((2, 1)))


@pytest.mark.parametrize("executor", [None, Threads(2)], ids=str)
def test_scaling_and_principal_components_are_those_of_all_rows(executor: Any, train: Data, valid: Data) -> None:
    X, _ = train
    rows = cut(train, 100, 650)
    scaled, scaler = rows.scaled(executor)
    ours = StandardScaler().fit(X)
    for name in ("mean_", "var_", "scale_"):
        np.testing.assert_allclose(getattr(scaler, name), getattr(ours, name), atol=1e-12)
    reduced, pca = scaled.principal(12, executor)
    theirs = PCA(12, svd_solver="full").fit(ours.transform(X))
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_", "mean_"):
        np.testing.assert_allclose(getattr(pca, name), getattr(theirs, name), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.abs(pca.components_ @ theirs.components_.T), np.eye(12), atol=1e-4)
    assert reduced.read(0)[0].shape == (100, 12)
    found = model().fit(reduced, executor=executor)
    whole = make_pipeline(scaler, pca, found)
    assert whole.score(*valid) > 0.85
    np.testing.assert_allclose(pca.transform(scaler.transform(X[:100])), reduced.read(0)[0], atol=1e-4)
    with pytest.raises(ValueError, match="n_components=65 must be from 1 to 64"):
        rows.principal(65)
    with pytest.raises(ValueError, match=r"n_components=2.5 must be a whole number"):
        rows.principal(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="executor=5 is not an executor"):
        rows.scaled(5)


def test_a_constant_column_is_left_as_it_is_in_scaling() -> None:
    X = np.c_[np.full(50, 0.1), np.arange(50.0)]
    _, scaler = cut((X, np.arange(50) % 2), 20).scaled()
    assert scaler.scale_[0] == 1.0
    np.testing.assert_allclose(scaler.transform(X), StandardScaler().fit_transform(X), atol=1e-12)


def test_a_step_that_refuses_a_block_is_told(train: Data) -> None:
    rows = cut(train, 500).then(StandardScaler().fit(train[0][:, :3]))
    with pytest.raises(BlockError, match=r"block 0: StandardScaler failed on it \(X has 64 features"):
        model().fit(rows)


@pytest.mark.parametrize("name", ["Unnamed: 0", "pid"])
def test_row_numbers_of_pandas_are_no_inputs(name: str, tmp_path: Path) -> None:
    import pandas

    table = pandas.DataFrame({name: [3, 1, 7], "a": [1.0, 2.0, 4.0], "c": [0, 1, 1]})
    (table.set_index(name) if name == "pid" else table).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(BlockError, match=f"column '{name}' is pandas' row index; name the inputs with columns="):
        RowBlocks.parquet(tmp_path / "a.parquet", "c")
    assert RowBlocks.parquet(tmp_path / "a.parquet", "c", ["a"])


@pytest.mark.parametrize("blocks", ["x.npy", ["x.npy"]])
def test_blocks_that_nothing_made_are_refused_at_once(blocks: Any) -> None:
    with pytest.raises(BlockError, match=r"^RowBlocks has blocks .*x\.npy.*; allowed: those of RowBlocks\.arrays, "):
        RowBlocks(blocks, "y.npy")  # type: ignore[arg-type]
