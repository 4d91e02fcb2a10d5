"""Loading by name, through every source, cold and from the prepared file."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ldsvm.datasets import DataError, Dataset, load, relabel
from ldsvm.datasets.catalog import catalogue

if TYPE_CHECKING:
    from conftest import Mini

RAW = os.environ.get("LDSVM_DATA_HOME")


@pytest.fixture(autouse=True)
def no_data_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LDSVM_DATA_HOME", raising=False)


def expect_mini(data: Dataset, mini: Mini) -> None:
    X, y, X_test, y_test = mini.arrays.values()
    np.testing.assert_allclose(data.X * 255, X.reshape(7, 10), rtol=1e-6)
    np.testing.assert_allclose(data.X_test * 255, X_test.reshape(3, 10), rtol=1e-6)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.y_test, y_test)
    assert data.X.dtype == data.X_test.dtype == np.float32 and data.y.dtype == np.int64
    assert data.image_shape == (2, 5) and data.sha256 == mini.entry.sha256


def test_digits(tmp_path: Path) -> None:
    data = load("digits", cache_dir=tmp_path)
    assert data.X.shape == (1797, 64) and data.X.dtype == np.float32 and data.y.dtype == np.int64
    assert (data.X.min(), data.X.max()) == (0.0, 1.0)
    assert data.X_test is None and data.y_test is None and data.image_shape == (8, 8)
    assert np.bincount(data.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert "scikit-learn" in data.source and data.licence == "CC BY 4.0" and "Alpaydin" in data.citation
    assert "array" not in repr(data)
    assert not list(tmp_path.iterdir()), "what is installed needs no cache"


def test_digits_with_a_changed_pixel_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.datasets

    bunch = sklearn.datasets.load_digits()
    bunch.data[1796, 63] = 15
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: bunch)
    with pytest.raises(DataError, match=r"digits: the content has sha256 .* but must have 662926b0"):
        load("digits", cache_dir=tmp_path)


@pytest.mark.parametrize("folder", ["", "mnist"])
@pytest.mark.parametrize("by_environment", [False, True])
def test_raw_files_are_found(
    mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, by_environment: bool
) -> None:
    home = tmp_path / "raw"
    mini.write(home / folder, compress=lambda name: name.startswith("train"))
    if by_environment:
        monkeypatch.setenv("LDSVM_DATA_HOME", str(home))
    data = load(
        "mnist",
        cache_dir=tmp_path / "prepared",
        data_home=None if by_environment else home,
        download=False,
        entries=mini.entries,
    )
    expect_mini(data, mini)
    assert data.source == "MNIST, the four original IDX files."


def test_files_named_alike_are_not_mixed_up(mini: Mini, tmp_path: Path) -> None:
    """MNIST's files have the same names, and may lie above the folder of Fashion-MNIST."""
    home, prepared = mini.write(tmp_path / "raw"), tmp_path / "prepared"
    entry = replace(catalogue()["fashion-mnist"], sha256=mini.entry.sha256, files=mini.entry.files)
    entries = {"fashion-mnist": entry}
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte is missing: .* into .*raw/fashion-mnist, or allow"):
        load("fashion-mnist", cache_dir=prepared, data_home=home, download=False, entries=entries)
    mini.write(home / "fashion-mnist")
    (home / "train-images-idx3-ubyte").write_bytes(b"another")
    expect_mini(load("fashion-mnist", cache_dir=prepared, data_home=home, entries=entries), mini)


def test_second_load_needs_no_raw_files(mini: Mini, tmp_path: Path) -> None:
    home = mini.write(tmp_path / "raw")
    load("mnist", cache_dir=tmp_path / "prepared", data_home=home, entries=mini.entries)
    shutil.rmtree(home)
    expect_mini(load("mnist", cache_dir=tmp_path / "prepared", download=False, entries=mini.entries), mini)


def test_damaged_prepared_file_is_rebuilt_with_a_warning(mini: Mini, tmp_path: Path) -> None:
    home, prepared = mini.write(tmp_path / "raw"), tmp_path / "prepared"
    load("mnist", cache_dir=prepared, data_home=home, entries=mini.entries)
    whole = (prepared / "mnist.parquet").read_bytes()
    (prepared / "mnist.parquet").write_bytes(whole[:-40])
    with pytest.warns(UserWarning, match=r"mnist\.parquet is rebuilt") as caught:
        expect_mini(load("mnist", cache_dir=prepared, data_home=home, entries=mini.entries), mini)
    assert [warning.filename for warning in caught] == [__file__], "the warning points at who called load"
    assert (prepared / "mnist.parquet").read_bytes() == whole
    assert [file.name for file in prepared.iterdir()] == ["mnist.parquet"]


def test_damaged_raw_file_is_an_error_and_not_a_reason_to_download(mini: Mini, tmp_path: Path) -> None:
    home = mini.write(tmp_path / "raw")
    (home / "t10k-labels-idx1-ubyte").write_bytes(b"\x00\x00\x08\x01\x00\x00\x00\x03ab")
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte is truncated: it has 10 bytes"):
        load("mnist", cache_dir=tmp_path / "prepared", data_home=home, entries=mini.entries)
    assert not (tmp_path / "prepared").exists()


def test_a_raw_file_that_is_a_pipe_is_not_opened(mini: Mini, tmp_path: Path) -> None:
    home = mini.write(tmp_path / "raw")
    (path := home / "t10k-labels-idx1-ubyte").unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte: is a pipe; allowed: regular files"):
        load("mnist", cache_dir=tmp_path / "prepared", data_home=home, entries=mini.entries)


def test_missing_file_names_file_checksum_and_folder(mini: Mini, tmp_path: Path) -> None:
    home = mini.write(tmp_path / "raw")
    (home / "t10k-images-idx3-ubyte").unlink()
    with pytest.raises(DataError) as caught:
        load("mnist", cache_dir=tmp_path / "prepared", data_home=home, download=False, entries=mini.entries)
    message = str(caught.value)
    assert "t10k-images-idx3-ubyte is missing" in message and mini.entry.files[2].sha256 in message
    assert str(home / "mnist") in message and "allow the download" in message


def test_no_data_home_names_the_variable(mini: Mini, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte is missing: .* into \$LDSVM_DATA_HOME/mnist"):
        load("mnist", cache_dir=tmp_path, download=False, entries=mini.entries)


@pytest.mark.parametrize("folder", ["", "mnist"])
def test_cache_beside_raw_files_is_refused(mini: Mini, tmp_path: Path, folder: str) -> None:
    mini.write(tmp_path / folder)
    with pytest.raises(DataError, match=r"cache_dir=.* holds raw files"):
        load("mnist", cache_dir=tmp_path / folder, data_home=tmp_path, entries=mini.entries)


def openml_table(mini: Mini, monkeypatch: pytest.MonkeyPatch, dataset: str = "mnist_784", **changes: Any) -> None:
    X, y, X_test, y_test = mini.arrays.values()
    # As scikit-learn gives them: int64 or float64 pixels and digits as strings, training rows first.
    table = {
        "data": np.concatenate([X, X_test]).reshape(10, 10).astype(np.float64),
        "target": np.concatenate([y, y_test]).astype(str).astype(object),
    }

    def fetch(name: str, *, version: int, as_frame: bool, cache: bool) -> SimpleNamespace:
        assert (name, version, as_frame, cache) == (dataset, 1, False, False)
        return SimpleNamespace(**{**table, **{key: change(table[key]) for key, change in changes.items()}})

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)


def test_openml_gives_the_same_data(mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openml_table(mini, monkeypatch)
    data = load("mnist", cache_dir=tmp_path, data_home=tmp_path / "nothing", entries=mini.entries)
    expect_mini(data, mini)
    assert "OpenML" in data.source
    monkeypatch.undo()
    again = load("mnist", cache_dir=tmp_path, download=False, entries=mini.entries)
    assert again.source == data.source


def test_fashion_mnist_has_its_own_name_on_openml(
    mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    openml_table(mini, monkeypatch, dataset="Fashion-MNIST")
    entries = {"fashion-mnist": replace(mini.entry, name="fashion-mnist")}
    expect_mini(load("fashion-mnist", cache_dir=tmp_path, data_home=tmp_path / "nothing", entries=entries), mini)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": lambda table: table[::-1]}, "OpenML: sha256 .* train-images-idx3-ubyte must have"),
        ({"target": lambda y: np.roll(y, 1)}, "OpenML: sha256 .* train-labels-idx1-ubyte must have"),
        (
            {"data": lambda table: table[:-1]},
            r"OpenML: t10k-images-idx3-ubyte needs sizes \(3, 2, 5\), but the table gives",
        ),
    ],
    ids=["order", "labels", "rows"],
)
def test_openml_with_other_content_is_refused(
    mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    openml_table(mini, monkeypatch, **changes)
    with pytest.raises(DataError, match=message):
        load("mnist", cache_dir=tmp_path, entries=mini.entries)
    assert not list(tmp_path.iterdir())


def test_openml_out_of_reach_says_what_else_to_do(mini: Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*args: object, **options: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(DataError, match=r"put it, .* since OpenML gave no data \(no route to host\)"):
        load("mnist", cache_dir=tmp_path, entries=mini.entries)


def test_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"name='minst' is not a known data set: use one of digits, .*, mnist, .*mean mnist"
    ):
        load("minst", cache_dir=tmp_path)


def test_options_are_for_generated_data_only(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="digits takes no options, but 'noise' was given: only spirals has some"):
        load("digits", cache_dir=tmp_path, options={"noise": 0.1})
    assert load("digits", cache_dir=tmp_path, options={}).name == "digits"


def test_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mini: Mini) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"needs pyarrow, .*: pip install 'ldsvm\[pipeline\]'"):
        load("mnist", cache_dir=tmp_path, entries=mini.entries)


def test_parity_and_original_labels() -> None:
    y = np.array([0, 7, 2, 9, 9], dtype=np.uint8)
    assert relabel(y, "parity").tolist() == [0, 1, 0, 1, 1]
    assert relabel(y, "original").tolist() == [0, 7, 2, 9, 9]
    assert relabel(y, "parity").dtype == np.int64
    with pytest.raises(DataError, match="how='odd' is unknown; allowed: original, parity"):
        relabel(y, "odd")
    with pytest.raises(DataError, match="dtype float64; parity needs whole numbers"):
        relabel([1.0, 2.0], "parity")


@pytest.mark.slow
@pytest.mark.skipif(not RAW, reason="LDSVM_DATA_HOME names no folder of raw files")
def test_the_real_mnist(tmp_path: Path) -> None:
    cold = load("mnist", cache_dir=tmp_path, data_home=RAW, download=False)
    warm = load("mnist", cache_dir=tmp_path, download=False)
    for data in (cold, warm):
        assert data.X_test is not None and data.y_test is not None
        assert data.X.shape == (60_000, 784) and data.X_test.shape == (10_000, 784)
        assert np.bincount(data.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert np.bincount(data.y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
        assert data.X_test.max() == 1.0 and data.image_shape == (28, 28)
    np.testing.assert_array_equal(cold.X_test, warm.X_test)
