"""NPZ archives, svmlight text and IDX images against the arrays they were written from."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_files

from ldsvm.datasets import idx, room
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import FileSpec, expansion, load, opening, read

HOME = os.environ.get("LDSVM_DATA_HOME")
X = np.array([[1.5, 0, -2], [0, 0, 3], [4, 5, 0], [0, 0, 0]])
Y = np.array([7, -1, 7, 2])


def fails(message: str, path: Path, **fields: Any) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(FileSpec(str(path), **fields))
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def npz(folder: Path, name: str = "a.npz", /, **arrays: Any) -> Path:
    np.savez_compressed(folder / name, **arrays)
    return folder / name


def test_npz(tmp_path: Path) -> None:
    rows = read(FileSpec(str(npz(tmp_path, X=X, y=Y)))).train
    assert rows.X.dtype == np.float32 and rows.y.dtype == np.int64 and rows.columns is None and rows.groups is None
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, Y)


def test_npz_with_everything(tmp_path: Path) -> None:
    days = np.array(["2024-01-02", "2024-01-01", "2023-01-01", "2025-01-01"], dtype="M8[D]")
    words = np.array(["b", "a", "b", "c"])
    parts = {"X": X, "kind": words, "groups": Y, "times": days}
    path = npz(tmp_path, **parts, **{f"{name}_test": part[1:] for name, part in parts.items()})
    raw = read(FileSpec(str(path), label="kind"))
    assert raw.test is not None
    for rows, start in ((raw.train, 0), (raw.test, 1)):
        np.testing.assert_array_equal(rows.X, X[start:])
        assert rows.y.tolist() == words[start:].tolist() and rows.groups is not None and rows.times is not None
        np.testing.assert_array_equal(rows.groups, Y[start:])
        np.testing.assert_array_equal(rows.times, days[start:])


def test_npz_test_set_in_a_file_of_its_own(tmp_path: Path) -> None:
    train, test = npz(tmp_path, X=X, y=Y), npz(tmp_path, "t.npz", X=X[:1], y=Y[:1])
    raw = read(FileSpec(str(train), str(test)))
    assert raw.test is not None and raw.test.X.tolist() == [[1.5, 0, -2]] and raw.source == "a.npz, test set t.npz."
    fails("numbers of inputs differ: 3 .* but 2", train, test_path=str(npz(tmp_path, "t.npz", X=X[:, :2], y=Y)))
    both = npz(tmp_path, "both.npz", X=X, y=Y, X_test=X, y_test=Y)
    fails("holds X_test, but dataset.test_path is also given", both, test_path=str(train))
    grouped = npz(tmp_path, "g.npz", X=X, y=Y, groups=Y)
    fails("groups differ: whole numbers .* but none", grouped, test_path=str(train))


def test_sparse_npz_stays_sparse(tmp_path: Path) -> None:
    S = csr_matrix(X)
    parts = {"X_data": S.data, "X_indices": S.indices, "X_indptr": S.indptr, "X_shape": S.shape}
    rows = read(FileSpec(str(npz(tmp_path, **parts, y=Y)))).train
    assert rows.kind == "sparse" and rows.X.dtype == np.float32 and rows.X.nnz == 5
    np.testing.assert_array_equal(rows.X.toarray(), X)
    turned = {**parts, "X_data": S.data[[1, 0, 2, 3, 4]], "X_indices": S.indices[[1, 0, 2, 3, 4]]}
    again = read(FileSpec(str(npz(tmp_path, **turned, y=Y)))).train.X
    assert again.indices.tolist() == S.indices.tolist() and again.data.tolist() == S.data.tolist()
    fails("a.npz: is damaged", npz(tmp_path, **{**parts, "X_indices": S.indices + 1}, y=Y))
    wide = npz(tmp_path, **{**parts, "X_shape": [4, 1 << 31]}, y=Y)
    fails("X has 2,147,483,648 columns; allowed: at most 100,000,000", wide)
    big = np.array([1.5, -2, 1e39, 4, 5])  # the third value lies in row 1
    fails(
        "X is infinite or beyond .* in row 2, counted from 1 without a header; allowed",
        npz(tmp_path, **{**parts, "X_data": big}, y=Y),
    )
    half = npz(tmp_path, **{**parts, "X_indices": S.indices + 0.5}, y=Y)
    fails("array 'X_indices' is of type float64, but it must hold whole numbers", half)
    dense = npz(tmp_path, **parts, y=Y, X_test=X, y_test=Y)
    fails("inputs differ: sparse in the training set .* but dense in the test set", dense)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X, "y": Y}, "there is no array 'X': the arrays are 'x', 'y'"),
        ({"X": X, "yy": Y}, "there is no array 'y', nearest 'yy': the arrays are"),
        ({"X": X, "y": Y[:3]}, r"array 'y' has shape \(3,\), but X has 4 rows"),
        ({"X": X, "y": Y[:, None]}, r"array 'y' has shape \(4, 1\)"),
        ({"X": X[0], "y": Y}, r"array 'X' has shape \(3,\), but must have a row per sample"),
        ({"X": X.astype(str), "y": Y}, "array 'X' is of type <U.*, but inputs must be numbers"),
        ({"X": X.astype(complex), "y": Y}, "array 'X' is of type complex128, but inputs must be numbers"),
        ({"X": X.astype(object), "y": Y}, "a.npz: is damaged, .* of format npz .Object arrays cannot be loaded"),
        ({"X": X[:0], "y": Y[:0]}, "X has 0 rows and 3 columns; at least one of each"),
        ({"X": X[:, :0], "y": Y}, "X has 4 rows and 0 columns; at least one of each"),
        (
            {"X": X * 1e38, "y": Y},
            "X is infinite or beyond ±3.4e38, the range of float32, in row 3, counted from 1 without a header; allowed",
        ),
        ({"X": X, "y": Y + 0.5}, "array 'y' holds 7.5; classes must be whole numbers or text"),
        ({"X": X, "y": Y, "X_test": X}, "there is no array 'y_test'"),
        ({"X": X, "y": Y, "groups": Y, "X_test": X, "y_test": Y}, "there is no array 'groups_test'"),
    ],
    ids=str,
)
def test_faulty_npz(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    fails(message, npz(tmp_path, **arrays))


def test_one_array_is_no_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    fails("a.npz: is damaged, .* of format npz .one array without a name", tmp_path / "a.npz")


def svm(path: Path, inputs: Any, y: Any, *, zero_based: bool = True) -> Path:
    dump_svmlight_file(inputs, y, str(path), zero_based=zero_based)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["a.svm", "a.libsvm", "a.svmlight.gz"])
def test_svmlight(tmp_path: Path, name: str, zero_based: bool) -> None:
    inputs = X[:, [2, 1, 0]]  # a column 0 with values, so that counting from 0 can be told
    rows = read(FileSpec(str(svm(tmp_path / name, inputs, Y, zero_based=zero_based)))).train
    assert rows.kind == "sparse" and rows.X.dtype == np.float32 and rows.X.nnz == 5 and rows.y.dtype == np.int64
    np.testing.assert_array_equal(rows.X.toarray(), inputs)
    np.testing.assert_array_equal(rows.y, Y)


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_sets_have_the_same_columns(tmp_path: Path, zero_based: bool) -> None:
    # Column 0 occurs in the training set only, the last column in the test set only.
    train = random_array((30, 9), density=0.3, random_state=np.random.default_rng(1)).tocsr()
    test = random_array((20, 11), density=0.3, random_state=np.random.default_rng(2)).tocsr()
    test = test @ csr_matrix(np.diag([0.0, *[1.0] * 10]))
    test.eliminate_zeros()
    files = [
        svm(tmp_path / name, part, np.arange(part.shape[0]) % 3, zero_based=zero_based)
        for name, part in (("a.svm", train), ("b.svm", test))
    ]
    raw = read(FileSpec(str(files[0]), str(files[1])))
    theirs = load_svmlight_files([str(file) for file in files], dtype=np.float32)
    assert raw.test is not None and raw.train.n_features == raw.test.n_features == 11
    np.testing.assert_array_equal(raw.train.X.toarray(), theirs[0].toarray())
    np.testing.assert_array_equal(raw.test.X.toarray(), theirs[2].toarray())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2 2:x\n", "a.svm: is damaged, truncated, unreadable, or not of format svmlight"),
        ("1 1:2\nsomebodys-confidential-word 1:2\n", "of format svmlight .could not convert string to float: …"),
        ("1,2,3\n4,5,6\n", "a.svm: is damaged, truncated, unreadable, or not of format svmlight"),
        ("1 99999999999999999999:1\n", "a.svm: is damaged, truncated, unreadable, or not of format svmlight"),
        ("", "a.svm holds no rows"),
        ("1 1:1\n0.5 1:1\n", "the label holds 0.5; classes"),
        ("1 1:1\n0 1:1e39\n", "X is infinite .* in row 2, counted from 1 without a header"),
    ],
    ids=str,
)
def test_faulty_svmlight(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.svm").write_text(text)
    fails(message, tmp_path / "a.svm")
    good = svm(tmp_path / "good.svm", X, Y)
    fails(message, good, test_path=str(tmp_path / "a.svm"))


def test_svmlight_without_any_value(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1\n0\n")
    fails("X has 2 rows and 0 columns; at least one of each", tmp_path / "a.svm")
    # As a test set it is two rows of zeros.
    raw = read(FileSpec(str(svm(tmp_path / "good.svm", X, Y)), str(tmp_path / "a.svm")))
    assert raw.test is not None and raw.test.X.toarray().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_fields_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    rule = "format npz; leave dataset.drop out; allowed: path, .* time"
    fails(f"dataset.drop does not apply to {rule}", npz(tmp_path, X=X, y=Y), drop=("a",))
    rule = "format svmlight; leave dataset.label out; allowed"
    fails(f"dataset.label does not apply to {rule}", svm(tmp_path / "a.svm", X, Y), label="y")


def test_a_label_that_only_tables_have_is_to_be_left_out(tmp_path: Path) -> None:
    rule = "dataset.label is 'label', but there is no such array; leave dataset.label out for the array 'y'"
    fails(rule, npz(tmp_path, X=X, y=Y), label="label")
    fails("there is no array 'label': the arrays are 'X'", npz(tmp_path, X=X), label="label")
    idx_file(tmp_path / "a-labels-idx1-ubyte", DIGITS)
    images = idx_file(tmp_path / "a-images-idx3-ubyte", PIXELS)
    fails("the labels label are not beside the images; leave dataset.label out to have them", images, label="label")


@pytest.mark.parametrize("dtype", [">i8", ">i2", ">f4", np.longdouble], ids=str)
def test_npz_of_another_machine(tmp_path: Path, dtype: Any) -> None:
    parts = csr_matrix(X)
    sparse = {
        "X_data": parts.data.astype(">f8"), "X_indices": parts.indices.astype(">i4"),
        "X_indptr": parts.indptr.astype(">i4"), "X_shape": np.array(X.shape, ">i8"),
    }  # fmt: skip
    for inputs in ({"X": X.astype(">f8")}, sparse):
        path = npz(tmp_path, **inputs, y=Y.astype(dtype), groups=Y.astype(dtype), times=Y.astype(dtype))
        rows = read(FileSpec(str(path))).train
        np.testing.assert_array_equal(rows.X.toarray() if rows.kind == "sparse" else rows.X, X)
        assert rows.y.tolist() == rows.groups.tolist() == rows.times.tolist() == Y.tolist()  # type: ignore[union-attr]
        assert rows.groups.dtype.isnative and rows.y.dtype.isnative  # type: ignore[union-attr]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_npz_times_of_every_unit(tmp_path: Path, unit: str) -> None:
    times = np.array(["1970-01-01", "2004-01-01", "1998-01-01", "2026-01-01"], dtype=f"M8[{unit}]")
    rows = read(FileSpec(str(npz(tmp_path, X=X, y=Y, times=times)))).train
    assert rows.times is not None and rows.times.dtype == "M8[us]"
    np.testing.assert_array_equal(rows.times, times)


def test_npz_times_that_are_none(tmp_path: Path) -> None:
    allowed = "allowed: numbers, dates or text"
    fails(f"array 'times' is of type complex128; {allowed}", npz(tmp_path, X=X, y=Y, times=Y.astype(complex)))


def test_a_header_that_promises_more_than_there_is_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    promise = {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**6)}
    np.lib.format.write_array_header_1_0(header, promise)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue())
        archive.writestr("y.npy", header.getvalue())
    fails("a.npz: is damaged, truncated, unreadable, or not of format npz .Unable to allocate", tmp_path / "a.npz")


def test_many_columns_of_which_few_are_stored(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 3:1 100000000:1\n0 3:2\n")
    rows = read(FileSpec(str(tmp_path / "a.svm"))).train
    assert rows.n_features == 10**8 and rows.X.indices.tolist() == [2, 10**8 - 1, 2]
    (tmp_path / "a.svm").write_text("1 3:1 2147483647:1\n0 3:2\n")
    fails("a.svm: X has 2,147,483,647 columns; allowed: at most 100,000,000", tmp_path / "a.svm")


def test_what_expands_too_far_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Zeros shrink to a thousandth; a random matrix hardly shrinks, so the same limits let it through.
    monkeypatch.setattr(expansion, "FREE", 100_000)
    monkeypatch.setattr(opening, "BLOCK", 1 << 15)
    rule = "expands to more than .* times its compressed size; if that is intended, store it uncompressed"
    zeros = np.zeros((10_000, 4))
    fails(f"a.npz: {rule}", npz(tmp_path, X=zeros, y=np.arange(10_000)))
    fails(f"a.npz: {rule}", npz(tmp_path, X=X, y=np.zeros(100_000)))
    noise = np.random.default_rng(0).random((10_000, 4))
    assert read(FileSpec(str(npz(tmp_path, X=noise, y=np.arange(10_000) % 2)))).train.n_features == 4
    for name, row in (("a.csv.gz", b"0,0\n"), ("a.svm.gz", b"0 1:1\n")):
        head = b"x,label\n" * (name == "a.csv.gz")
        (tmp_path / name).write_bytes(gzip.compress(head + row * 10_000))
        assert read(FileSpec(str(tmp_path / name))).train.X.shape == (10_000, 1)
        (tmp_path / name).write_bytes(gzip.compress(head + row * 200_000))
        fails(f"{name}: {rule}", tmp_path / name)


def test_what_has_no_room_in_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 100,000 equal cells are a few bytes of Parquet, and little of compressed Arrow; as a matrix they are 400,000.
    table = pa.table({"x": np.zeros(100_000, np.float32), "label": np.arange(100_000) % 2})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    feather.write_feather(table, tmp_path / "a.arrow", compression="zstd", chunksize=10_000)
    for name in ("a.parquet", "a.arrow"):
        assert read(FileSpec(str(tmp_path / name))).train.X.shape == (100_000, 1)
    for name in ("texts/a/1.txt", "texts/b/2.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        with (tmp_path / name).open("wb") as file:
            file.truncate(100_001)
    with (tmp_path / "images.idx3-ubyte").open("wb") as file:
        file.write(idx._header((10, 100, 100)))
        file.truncate(100_016)
    (tmp_path / "labels.idx1-ubyte").write_bytes(idx.to_bytes(np.arange(10, dtype=np.uint8)))
    monkeypatch.setattr(room, "available", lambda: 500_000)
    rows = "its 100,000 rows of 2 columns need 0.0 GiB of memory, but only 0.0 GiB are free"
    fails(f"a.parquet: {rows}", tmp_path / "a.parquet")
    fails("1.txt: its letters need", tmp_path / "texts")
    fails("images.idx3-ubyte: its 100,016 bytes need", tmp_path / "images.idx3-ubyte")
    monkeypatch.setattr(expansion, "FREE", 100_000)
    monkeypatch.setattr(expansion, "FACTOR", 2)
    fails("a.arrow: expands to more than .* its compressed size; if that is intended", tmp_path / "a.arrow")


def test_a_hole_in_a_text_of_numbers_is_no_row(tmp_path: Path) -> None:
    with (tmp_path / "a.svm").open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    fails("a.svm: has a row of more than 16,777,216 bytes; allowed: shorter rows", tmp_path / "a.svm")
    (tmp_path / "a.SVM.GZ").write_bytes(gzip.compress(b"1 1:2\n0 1:3\n"))
    assert read(FileSpec(str(tmp_path / "a.SVM.GZ"))).train.X.toarray().tolist() == [[2], [3]]


PIXELS = (np.arange(7 * 2 * 5) * 37 % 256).astype(np.uint8).reshape(7, 2, 5)
DIGITS = np.array([3, 1, 4, 1, 5, 9, 2], dtype=np.uint8)


def idx_file(path: Path, array: np.ndarray[Any, Any]) -> Path:
    data = (
        bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">i", size) for size in array.shape) + bytes(array.ravel())
    )
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(
    ("images", "labels", "label"),
    [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", None),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte", None),
        ("train-images.idx3-ubyte", "train-labels.idx1-ubyte.gz", None),
        ("pictures.idx", "answers.idx", "answers.idx"),
    ],
)
def test_idx(tmp_path: Path, images: str, labels: str, label: str | None) -> None:
    idx_file(tmp_path / labels, DIGITS)
    spec = FileSpec(str(idx_file(tmp_path / images, PIXELS)), label=label)
    rows = read(spec).train
    np.testing.assert_array_equal(rows.X, PIXELS.reshape(7, 10))
    np.testing.assert_array_equal(rows.y, DIGITS)
    assert rows.X.dtype == np.uint8 and rows.y.dtype == np.int64
    for _ in range(2):  # read, then from the cache
        data = load(spec, name="mine", cache_dir=tmp_path / "prepared")
        np.testing.assert_allclose(data.X * 255, PIXELS.reshape(7, 10), rtol=1e-6)
        assert data.X.dtype == np.float32 and data.image_shape == (2, 5) and data.sha256 == read(spec).sha256()
        assert data.source == f"{images} with {labels}."


def test_idx_of_another_rank_is_no_picture(tmp_path: Path) -> None:
    idx_file(tmp_path / "labels", DIGITS)
    path = idx_file(tmp_path / "vectors.idx", PIXELS.reshape(7, 10))
    assert load(FileSpec(str(path), label="labels"), name="a", cache_dir=tmp_path / "prepared").image_shape is None
    assert idx.shape(path) == (7, 10)
    fails(r"vectors.idx: has sizes \(7,\), but images need", idx_file(path, DIGITS), label="labels")


def test_faulty_idx(tmp_path: Path) -> None:
    images, labels = tmp_path / "a-images-idx3-ubyte", tmp_path / "a-labels-idx1-ubyte"
    fails("the labels a-labels-idx1-ubyte are not beside the images", idx_file(images, PIXELS))
    idx_file(labels, DIGITS[:6])
    fails(r"a-labels-idx1-ubyte: has sizes \(6,\), but there are 7 images", images)
    idx_file(labels, DIGITS)
    whole = images.read_bytes()
    for data, message in (
        (whole[:-1], "is truncated: it has 85 bytes, but its header says 86"),
        (whole[:9], "is truncated inside its header, 9 of 16 bytes"),
        (whole + b"\0", "is too long"),
        (b"\0\0\x0d" + whole[3:], "starts with bytes 00 00 0d 03, but an IDX file of bytes with 00 00 08"),
        (bytes([0, 0, 8, 200]) + bytes([0, 0, 0, 1] * 200) + b"\0", "of format IDX .*dimension"),
    ):
        images.write_bytes(data)
        fails(f"a-images-idx3-ubyte.*{message}", images)


@pytest.mark.skipif(not HOME, reason="LDSVM_DATA_HOME names no folder of raw files")
def test_the_real_mnist_as_a_users_files() -> None:
    found = next(Path(str(HOME)).rglob("t10k-images-idx3-ubyte*"))
    rows = read(FileSpec(str(found))).train
    assert rows.X.shape == (10_000, 784)
    assert np.bincount(rows.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
