"""Which files a path stands for, folders of texts, and one sentence for every path that stands for nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import FileSpec, load, read

HOME = os.environ.get("LDSVM_DATA_HOME")
NEWS = next(Path(HOME).rglob("20news-bydate.tar.gz"), None) if HOME else None


def fails(message: str, path: Path | str, **fields: Any) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(FileSpec(str(path), **fields))
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def lay(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return folder


def test_texts_by_class_in_order_of_class_and_name(tmp_path: Path) -> None:
    lay(
        tmp_path / "train",
        {
            "wine/b.txt": "zwei\n",
            "beer/z.txt": "vier",
            "wine/a/10.txt": "eins",
            "beer/y": "für".encode("latin-1"),
            "beer/x": b"\xef\xbb\xbfdr\xc3\xbcben",
            "beer/.hidden": "no",
            "wine/.git/head": "no",
            ".cache/a.txt": "no",
            "README.md": "no",
        },
    )
    lay(tmp_path / "held", {"wine/c.txt": "fünf"})
    raw = read(FileSpec(str(tmp_path / "train"), str(tmp_path / "held")))
    assert raw.train.X.tolist() == ["drüben", "für", "vier", "eins", "zwei\n"]
    assert raw.train.y.tolist() == ["beer"] * 3 + ["wine"] * 2 and raw.train.kind == "text"
    assert raw.test is not None and raw.test.X.tolist() == ["fünf"] and raw.test.y.tolist() == ["wine"]
    assert raw.source == "5 texts in 2 class folders, test set 1 texts in 1 class folders."


def test_folders_that_are_no_texts(tmp_path: Path) -> None:
    fails("holds neither files of a known format nor one subfolder", lay(tmp_path / "a", {"README.md": "x"}))
    (lay(tmp_path / "b", {"x/1": "a"}) / "y").mkdir()
    fails("the class folder 'y' is empty; remove it or put texts into it", tmp_path / "b")
    lay(tmp_path / "b", {"y/.hidden": "a"})
    fails("the class folder 'y' is empty", tmp_path / "b")
    fails("holds train and test instead of classes", lay(tmp_path / "c", {"train/x/1": "a", "test/x/1": "a"}))
    fails("x/1.parquet is not a text; give a glob such as", lay(tmp_path / "d", {"x/1.parquet": "a"}))
    fails("format text needs a folder", tmp_path / "d" / "x" / "1.parquet", format="text")
    fails("dataset.columns does not apply to format text", lay(tmp_path / "e", {"x/1": "a"}), columns=("a",))


TABLE = "x,label\n1,0\n2,1\n"


def test_paths_that_stand_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fails(r"^\./absent\.csv: no such file or folder", "./absent.csv")
    fails(r"^absent/\*\.csv: no file matches this pattern", "absent/*.csv")
    lay(tmp_path, {"here.csv": TABLE})
    fails(r"^there\.csv: no such file or folder", "here.csv", test_path="there.csv")


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    # A pipe that nobody writes into would wait for ever, a device never end.
    os.mkfifo(tmp_path / "a.csv")
    lay(tmp_path, {"b.csv": TABLE})
    fails(r"a\.csv: is a pipe; allowed: regular files and folders of them", tmp_path / "a.csv")
    fails(r"a\.csv: is a pipe", tmp_path / "b.csv", test_path=str(tmp_path / "a.csv"))
    fails("^/dev/zero: is a device; allowed", "/dev/zero", format="npz")
    assert len(read(FileSpec(str(tmp_path))).train) == len(read(FileSpec(str(tmp_path / "*.csv"))).train) == 2


def test_formats_are_not_mixed(tmp_path: Path) -> None:
    lay(tmp_path, {"a.csv": TABLE, "b.tsv": TABLE.replace(",", "\t"), "d/a.npz": "", "d/b.npz": "", "n": ""})
    fails("holds files of 2 formats; set dataset.format to one of csv, tsv", tmp_path)
    assert len(read(FileSpec(str(tmp_path), format="tsv")).train) == 2
    fails(r"matches files of 2 formats \(csv, tsv\); all must have the same", tmp_path / "*.?sv")
    fails(r"holds no parquet file \(ending in .parquet, .pq\)", tmp_path, format="parquet")
    fails("stands for 2 files, but npz data are one file", tmp_path / "d")
    fails(
        "a.csv is csv but .*a.npz is npz: both must have the same",
        tmp_path / "a.csv",
        test_path=str(tmp_path / "d/a.npz"),
    )
    fails("its format is unclear from its name", tmp_path / "[n]")
    # Tables of two formats may be a training and a test set.
    assert read(FileSpec(str(tmp_path / "a.csv"), str(tmp_path / "b.tsv"))).test is not None


def test_a_name_with_brackets_is_a_name_first(tmp_path: Path) -> None:
    lay(tmp_path, {"a[1].csv": TABLE, "a1.csv": "y,label\n1,0\n"})
    assert read(FileSpec(str(tmp_path / "a[1].csv"))).train.columns == ("x",)


def test_home_and_deep_globs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    lay(tmp_path, {"d/1/a.csv": TABLE, "d/2/3/b.csv": TABLE, "d/c.csv": TABLE})
    assert len(read(FileSpec("~/d/c.csv")).train) == 2
    assert len(read(FileSpec("~/d/**/*.csv")).train) == 6


@pytest.mark.slow
@pytest.mark.skipif(NEWS is None, reason="LDSVM_DATA_HOME names no folder with 20news-bydate.tar.gz")
def test_the_real_news_as_a_users_folder(tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", str(NEWS), "-C", str(tmp_path)], check=True)  # six times as quick as tarfile
    folders = {path.name.rpartition("-")[2]: path for path in tmp_path.iterdir()}
    raw = read(FileSpec(str(folders["train"]), str(folders["test"])))
    assert raw.test is not None and (len(raw.train), len(raw.test)) == (11314, 7532)
    names, counts = np.unique(raw.train.y.astype(str), return_counts=True)
    assert len(names) == 20 and (counts.min(), counts.max()) == (377, 600)
    assert min(map(len, raw.train.X)) > 0


def test_paths_that_cannot_be_looked_up(tmp_path: Path) -> None:
    lay(tmp_path, {"a.csv": TABLE})
    long = "a" * 5000
    every: list[dict[str, Any]] = [{"path": long}, {"path": str(tmp_path / "a.csv"), "test_path": long}]
    for fields in every:
        with pytest.raises(DataError, match=r"^a+…: cannot be looked up \(File name too long\)\.$") as caught:
            read(FileSpec(**fields))
        assert len(str(caught.value)) < 300
    fails("^~nobody-of-this-name/a.csv: cannot be looked up .Could not determine", "~nobody-of-this-name/a.csv")


def test_names_that_are_no_utf_8(tmp_path: Path) -> None:
    # As a class such a name could be neither stored nor printed; as a file it does no harm.
    lay(tmp_path, {"texts/a/1": "x", os.fsdecode(b"texts/b\xff/1"): "y"})
    fails(r"^'b\\udcff': the name of this class folder is not UTF-8; rename it", tmp_path / "texts")
    with (tmp_path / os.fsdecode(b"\xff.npz")).open("wb") as file:
        np.savez(file, X=[[0.5], [1.5]], y=[0, 1])
    for _ in range(2):  # read, then from the cache
        spec = FileSpec(str(tmp_path / os.fsdecode(b"\xff.npz")))
        assert load(spec, name="a", cache_dir=tmp_path / "prepared").source == "?.npz."


def test_a_cache_folder_whose_name_is_too_long(tmp_path: Path) -> None:
    lay(tmp_path, {"a.csv": TABLE})
    with pytest.raises(DataError, match=r": the prepared data cannot be read \(File name too long\)\.$"):
        load(FileSpec(str(tmp_path / "a.csv")), name="a", cache_dir=tmp_path / ("a" * 300))


@pytest.mark.parametrize("given", ["a.csv", ".", "*.csv"])
def test_semicolons_by_name_of_the_format(tmp_path: Path, given: str) -> None:
    (tmp_path / "a.csv").write_text('x;label\n"1.5";a\n2;"b;c"\n')
    rows = read(FileSpec(str(tmp_path / given), format="semicolon")).train
    assert rows.X.ravel().tolist() == [1.5, 2.0] and rows.y.tolist() == ["a", "b;c"]
