"""20 newsgroups: every source gives the same content, in the same order, and every damage is one sentence."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import struct
import tarfile
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ldsvm.datasets import DataError, Dataset, load
from ldsvm.datasets.catalog import catalogue
from ldsvm.datasets.entry import Entry

RAW = os.environ.get("LDSVM_DATA_HOME")
HAS_RAW = bool(RAW) and (Path(RAW or "") / "20news" / "20news-bydate.tar.gz").exists()
ARCHIVE, TRAIN, TEST = "20news-bydate.tar.gz", "20news-bydate-train", "20news-bydate-test"

# Invented. Numbers whose order as text is another one, every byte there is, and one number in two groups.
POSTS = {
    f"{TRAIN}/sci.space/10": b"ten\r\n",
    f"{TRAIN}/sci.space/9": bytes(range(256)),
    f"{TRAIN}/rec.autos/10": b"",
    f"{TEST}/sci.space/200": b"two\nhundred",
    f"{TEST}/rec.autos/31": "Käse".encode("latin-1"),
    f"{TEST}/rec.autos/4": b"four",
    f"{TEST}/alt.atheism/4": b"also four",
}
ORDER = {
    TRAIN: ["rec.autos/10", "sci.space/9", "sci.space/10"],
    TEST: ["alt.atheism/4", "rec.autos/4", "rec.autos/31", "sci.space/200"],
}


@pytest.fixture(autouse=True)
def no_data_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LDSVM_DATA_HOME", raising=False)


def promised() -> str:
    """The digest as data/README.md defines it, written out by hand from the list of names above."""
    digest = hashlib.sha256()
    for part, ending in ((TRAIN, ""), (TEST, "_test")):
        texts = [POSTS[f"{part}/{name}"].decode("latin-1").encode() for name in ORDER[part]]
        for array, values in ("X", texts), ("y", [name.split("/")[0].encode() for name in ORDER[part]]):
            digest.update(b"%s%s text (%d,)\n" % (array.encode(), ending.encode(), len(values)))
            digest.update(struct.pack(f"<{len(values)}q", *map(len, values)) + b"".join(values))
    return digest.hexdigest()


ENTRY = replace(catalogue()["newsgroups"], rows=3, test_rows=4, sha256=promised())


def pack(folder: Path, posts: Mapping[str, bytes] = POSTS, more: Iterable[tarfile.TarInfo] = (), dot: str = "") -> Path:
    """Write the archive with folders among the members, last post first."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / ARCHIVE, "w:gz") as archive:
        for name in (f"{dot}{TRAIN}", f"{dot}{TRAIN}/sci.space"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
        for name in reversed(list(posts)):
            info = tarfile.TarInfo(dot + name)
            info.size = len(posts[name])
            archive.addfile(info, io.BytesIO(posts[name]))
        for info in more:
            archive.addfile(info)
    return folder


def unpacked(folder: Path) -> Path:
    for name, content in POSTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def get(tmp_path: Path, home: Path | None, *, download: bool = False, entry: Entry = ENTRY) -> Dataset:
    entries = {"newsgroups": entry}
    return load("newsgroups", cache_dir=tmp_path / "prepared", data_home=home, download=download, entries=entries)


def expect_posts(data: Dataset) -> None:
    assert data.X.tolist() == [POSTS[f"{TRAIN}/{name}"].decode("latin-1") for name in ORDER[TRAIN]]
    assert data.X_test.tolist() == [POSTS[f"{TEST}/{name}"].decode("latin-1") for name in ORDER[TEST]]
    assert data.y.tolist() == ["rec.autos", "sci.space", "sci.space"]
    assert data.y_test is not None
    assert data.y_test.tolist() == ["alt.atheism", "rec.autos", "rec.autos", "sci.space"]
    assert data.sha256 == promised() and data.train.kind == "text" and data.image_shape is None
    assert [text.encode("latin-1") for text in data.X][1] == bytes(range(256)), "the bytes can be had back"


@pytest.mark.parametrize("dot", ["", "./"])
@pytest.mark.parametrize("folder", ["", "20news"])
def test_the_archive(tmp_path: Path, folder: str, dot: str) -> None:
    pack(tmp_path / "raw" / folder, dot=dot)
    data = get(tmp_path, tmp_path / "raw")
    expect_posts(data)
    assert data.source == "20 newsgroups by date, the archive 20news-bydate.tar.gz."
    assert {path.name for path in (tmp_path / "raw").rglob("*")} == {folder, ARCHIVE} - {""}, "nothing is unpacked"


@pytest.mark.parametrize("folder", ["", "20news"])
def test_the_unpacked_folders(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = unpacked(tmp_path / "raw" / folder)
    (home / TRAIN / ".DS_Store").write_bytes(b"left by a file manager")
    monkeypatch.setenv("LDSVM_DATA_HOME", str(tmp_path / "raw"))
    data = get(tmp_path, None)
    expect_posts(data)
    assert "unpacked folders" in data.source


def fetcher(monkeypatch: pytest.MonkeyPatch, home: Path) -> list[Path]:
    """Replace scikit-learn's download by its own reader of the folders; the list gets the places it was given."""
    from sklearn.datasets import load_files

    given: list[Path] = []

    def fetch(*, data_home: str, subset: str, shuffle: bool) -> SimpleNamespace:
        assert Path(data_home).is_dir() and not shuffle
        given.append(Path(data_home))
        (given[-1] / "20news-bydate.pkz").write_bytes(b"a copy of its own")
        bunch: SimpleNamespace = load_files(home / f"20news-bydate-{subset}", encoding="latin1", random_state=5)
        return bunch

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    return given


def test_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = fetcher(monkeypatch, unpacked(tmp_path / "elsewhere"))
    data = get(tmp_path, tmp_path / "raw", download=True)
    expect_posts(data)
    assert "scikit-learn downloads" in data.source
    assert {path.parent for path in given} == {tmp_path / "prepared"}
    assert [path.name for path in (tmp_path / "prepared").iterdir()] == ["newsgroups.parquet"]


def test_files_on_the_disk_come_before_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = fetcher(monkeypatch, tmp_path / "nowhere")
    home = unpacked(tmp_path / "raw")
    assert "unpacked folders" in get(tmp_path, home, download=True).source
    (tmp_path / "prepared" / "newsgroups.parquet").unlink()
    pack(home)
    assert "the archive" in get(tmp_path, home, download=True).source
    assert given == []


def test_the_second_load_needs_the_prepared_file_only(tmp_path: Path) -> None:
    cold = get(tmp_path, pack(tmp_path / "raw"))
    warm = get(tmp_path, None)
    expect_posts(warm)
    assert warm.source == cold.source


def test_no_download_to_be_had_says_what_else_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(**options: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    with pytest.raises(DataError, match=r"put it, .* since scikit-learn gave no data \(no route to host\)\.$"):
        get(tmp_path, None, download=True)
    assert list((tmp_path / "prepared").iterdir()) == []


@pytest.mark.parametrize("half", [False, True])
def test_missing_names_file_checksum_and_folder(tmp_path: Path, half: bool) -> None:
    if half:  # one of the two folders is no source
        (tmp_path / "raw" / "20news" / TRAIN).mkdir(parents=True)
    with pytest.raises(DataError) as caught:
        get(tmp_path, tmp_path / "raw")
    message = str(caught.value)
    assert message.startswith("newsgroups: 20news-bydate.tar.gz is missing: put it") and "\n" not in message
    assert promised() in message and message.endswith(f"into {tmp_path / 'raw' / '20news'}, or allow the download.")


@pytest.mark.parametrize("cut", [0, 1, 30, 0.5, -9])
def test_a_truncated_archive(tmp_path: Path, cut: float) -> None:
    home = pack(tmp_path / "raw", {**POSTS, f"{TRAIN}/sci.med/1": random.Random(0).randbytes(100_000)})
    whole = (home / ARCHIVE).read_bytes()
    (home / ARCHIVE).write_bytes(whole[: int(cut * len(whole)) if 0 < cut < 1 else int(cut)])
    with pytest.raises(DataError, match=r"20news-bydate\.tar\.gz: cannot be read, is truncated, or is no") as caught:
        get(tmp_path, home)
    assert "\n" not in str(caught.value) and not (tmp_path / "prepared").exists()


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE])
def test_an_archive_that_expands_without_end_is_read_no_further(tmp_path: Path, kind: bytes) -> None:
    # A post, or a header, promises a terabyte; 64 MiB of zeros stand for it, and 3 MB are allowed.
    info = tarfile.TarInfo(f"{TRAIN}/sci.space/1")
    info.size, info.type = 1 << 40, kind
    (tmp_path / ARCHIVE).write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 26), 1))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"20news-bydate\.tar\.gz: expands to more than 3,000,000 bytes, the most"):
            get(tmp_path, tmp_path, entry=replace(ENTRY, size=1_000_000))
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


def test_a_pipe_among_the_posts_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(unpacked(tmp_path) / TRAIN / "sci.space" / "11")
    with pytest.raises(DataError, match=r"'20news-bydate-train/sci\.space/11' is not a post"):
        get(tmp_path, tmp_path)


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"no archive" * 100)], ids=["no gzip", "no archive"])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ARCHIVE).write_bytes(content)
    with pytest.raises(DataError, match="cannot be read, is truncated, or is no"):
        get(tmp_path, tmp_path)


def test_a_flipped_byte(tmp_path: Path) -> None:
    home = pack(tmp_path / "raw", {**POSTS, f"{TRAIN}/sci.space/10": b"Ten\r\n"})
    with pytest.raises(DataError, match=f"newsgroups: the content has sha256 .* must have {promised()}"):
        get(tmp_path, home)


def test_posts_left_out(tmp_path: Path) -> None:
    home = pack(tmp_path / "raw", dict(list(POSTS.items())[1:]))
    with pytest.raises(DataError, match=r"tar\.gz: has 2 \+ 4 posts, but must have 3 \+ 4: it is incomplete"):
        get(tmp_path, home)


def member(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (member("../x"), r"'\.\./x' is not a post: only files such as 20news-bydate-train/sci\.space/61000"),
        (member(f"{TRAIN}/../7"), r"'20news-bydate-train/\.\./7' is not a post"),
        (member(f"/{TRAIN}/sci.space/7"), "'/20news-bydate-train/sci.space/7' is not a post"),
        (member(f"{TRAIN}/sci.space/readme"), "readme' is not a post"),
        (member(f"{TRAIN}/sci.space/٣"), "'20news-bydate-train/sci.space/٣' is not a post"),
        (member(f"{TRAIN}/sci.space/7", tarfile.SYMTYPE), "sci.space/7' is not a post"),
        (member(f"{TRAIN}/sci.space/7", tarfile.LNKTYPE), "sci.space/7' is not a post"),
        (member(f"{TRAIN}/sci.space/7", tarfile.FIFOTYPE), "sci.space/7' is not a post"),
        (member(f"{TRAIN}/sci.space/9"), "sci.space/9' occurs twice"),
        (member(f"{TRAIN}/sci.space/09"), "sci.space/09' occurs twice"),
    ],
)
def test_an_odd_member_is_refused(tmp_path: Path, odd: tarfile.TarInfo, message: str) -> None:
    home = pack(tmp_path / "raw", more=[odd])
    with pytest.raises(DataError, match=message):
        get(tmp_path, home)
    assert [path.name for path in tmp_path.rglob("*")] == ["raw", ARCHIVE]


def test_an_odd_file_among_the_folders_is_refused(tmp_path: Path) -> None:
    home = unpacked(tmp_path / "raw")
    (home / TEST / "rec.autos" / "4.txt").write_text("a copy")
    with pytest.raises(DataError, match=r"raw: '20news-bydate-test/rec\.autos/4\.txt' is not a post"):
        get(tmp_path, home)


@pytest.mark.parametrize("folder", ["", "20news", f"20news/{TRAIN}/sci.space", TEST])
def test_a_cache_among_raw_files_is_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(DataError, match=r"cache_dir=.* holds raw files; choose another folder"):
        load("newsgroups", cache_dir=tmp_path / folder, data_home=tmp_path, entries={"newsgroups": ENTRY})


def test_a_cache_that_is_a_link_to_raw_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prepared").symlink_to(unpacked(tmp_path / "raw"))
    with pytest.raises(DataError, match=r"prepared' holds raw files"):
        get(tmp_path, tmp_path / "raw")


@pytest.mark.slow
@pytest.mark.skipif(not HAS_RAW, reason="LDSVM_DATA_HOME names no folder with 20news/20news-bydate.tar.gz")
def test_the_real_posts(tmp_path: Path) -> None:
    assert RAW is not None
    entry = catalogue()["newsgroups"]
    cold = get(tmp_path, Path(RAW), entry=entry)
    warm = get(tmp_path, None, entry=entry)
    for data in (cold, warm):
        train, test = Counter(data.y.tolist()), Counter(() if data.y_test is None else data.y_test.tolist())
        assert (train.total(), test.total(), len(train), len(test)) == (11_314, 7_532, 20, 20)
        # The two groups of the usual binary problem have 1,168 + 777 posts.
        for group, n, m in (("comp.sys.ibm.pc.hardware", 590, 392), ("comp.sys.mac.hardware", 578, 385)):
            assert (train[group], test[group]) == (n, m)
        assert sum(map(len, data.X)) + sum(map(len, data.X_test)) == entry.size
    assert all(a == b for a, b in zip(cold.X, warm.X, strict=True))
