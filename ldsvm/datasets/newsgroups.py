"""20 newsgroups by date: the archive or its unpacked folders where the user has them, else scikit-learn's download.

Archives get packed again and then have other checksums, so what is verified is their content, in a fixed order.
"""

from __future__ import annotations

import gzip
import os
import re
import tarfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

import numpy as np

from ldsvm.datasets import cache, local
from ldsvm.datasets.dataset import DataError, Dataset, Places, Raw, Rows, finish, require
from ldsvm.datasets.entry import Entry

ARCHIVE = "20news-bydate.tar.gz"
PARTS = TRAIN, TEST = "20news-bydate-train", "20news-bydate-test"
POST = re.compile(rf"({TRAIN}|{TEST})/([a-z][a-z.-]*)/([0-9]{{1,18}})")
BLOCK = 1 << 20  # bytes read at a time
PACKED = 3  # how much larger than its posts an archive may be, unzipped: of its many small files half is padding

# Text by folder, group and number: sorted keys are the order that the checksum is of.
Key = tuple[str, str, int]
Posts = dict[Key, str]


def load(entry: Entry, places: Places) -> Dataset:
    """Return 11,314 posts for training and 7,532 for testing as texts, with the names of their groups as labels.

    The rows are sorted by group, then by the post's number. A text is the post's bytes read as latin-1, so
    ``text.encode("latin-1")`` gives them back. Raises `DataError` when no source has the data, when they are damaged
    or are another edition, and when the prepared file cannot be written or would lie among the raw ones.
    """
    local.keep_apart(entry, places, trees=PARTS)
    prepared = local.prepared(entry, places)
    raw = cache.read(prepared, entry.sha256)
    if raw is None:
        raw = _read(entry, places)
        cache.write(prepared, raw)
    return finish(raw, entry)


def items(entry: Entry, places: Places) -> list[local.Item]:
    """Return the archive and the unpacked folders, those of them that are there; the archive alone when none is."""
    names = {"archive": ARCHIVE, "folders": " and ".join(PARTS)}
    found = _on_disk(entry, places).items()
    there = [
        local.Item(names[kind], where, partial(_checked, entry, read, str(where))) for kind, (where, read) in found
    ]
    return there or [local.Item(ARCHIVE, None, partial(_read, entry, places))]


def _read(entry: Entry, places: Places) -> Raw:
    found = _on_disk(entry, places)
    for kind, sentence in entry.sources.items():
        if kind in found:
            where, read = found[kind]
            return _checked(entry, read, str(where), sentence)
    if not places.download:
        raise DataError(f"{_missing(entry, places)}, or allow the download.")
    return _checked(entry, partial(_download, entry, places), "scikit-learn's download", entry.sources["download"])


def _on_disk(entry: Entry, places: Places) -> dict[str, tuple[Path, Callable[[], Posts]]]:
    """Return the local sources that are there, by kind: where each lies and what reads it."""
    found: dict[str, tuple[Path, Callable[[], Posts]]] = {}
    archive = local.find(entry, places, ARCHIVE)
    if archive is not None:
        found["archive"] = archive, partial(_unpack, archive, PACKED * entry.size)
    for folder in local.folders(entry, places):
        if all(os.path.isdir(folder / part) for part in PARTS):
            found.setdefault("folders", (folder, partial(_walk, folder)))
    return found


def _checked(entry: Entry, read: Callable[[], Posts], where: str, source: str = "") -> Raw:
    """Return the posts in their order, once their count and checksum are the catalogue's."""
    posts = read()
    train, test = ([key for key in sorted(posts) if key[0] == part] for part in PARTS)
    if (len(train), len(test)) != (entry.rows, entry.test_rows):
        raise DataError(
            f"{where}: has {len(train):,} + {len(test):,} posts, but must have {entry.rows:,} + {entry.test_rows:,}: "
            "it is incomplete or another edition."
        )
    return require(Raw(_rows(posts, train), _rows(posts, test), source), entry)


def _rows(posts: Posts, keys: list[Key]) -> Rows:
    X, y = np.empty(len(keys), dtype=object), np.empty(len(keys), dtype=object)
    X[:] = [posts[key] for key in keys]
    y[:] = [group for _, group, _ in keys]
    return Rows(X, y)


class _Bounded:
    """Reads a stream up to so many bytes; raises `DataError` where it goes on."""

    def __init__(self, stream: gzip.GzipFile, path: Path, most: int) -> None:
        self._stream, self._path, self._most, self._left = stream, path, most, most

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise DataError(f"{self._path}: expands to more than {self._most:,} bytes, the most that its posts need.")
        return data


def _unpack(path: Path, most: int) -> Posts:
    """Read an archive in one pass; nothing is written to the disk, so no name in it can do harm.

    most: bytes that it may expand to.
    """
    posts: Posts = {}
    try:
        # gzip notices a file that was cut; the decompression of tarfile itself takes a cut for the end.
        with (
            gzip.open(path) as plain,
            tarfile.open(fileobj=cast(IO[bytes], _Bounded(plain, path, most)), mode="r|", bufsize=BLOCK) as archive,
        ):
            for member in archive:
                if not member.isdir():
                    # Links and devices hold no text of their own.
                    content = archive.extractfile(member) if member.isreg() else None
                    _add(posts, path, member.name.removeprefix("./"), content.read() if content else None)
    except DataError:
        raise
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        raise DataError(f"{path}: cannot be read, is truncated, or is not a .tar.gz file ({error}).") from error
    return posts


def _walk(folder: Path) -> Posts:
    """Read the unpacked folders; hidden files, which file managers leave behind, are skipped."""
    posts: Posts = {}
    for path in (path for part in PARTS for path in (folder / part).rglob("[!.]*")):
        if not path.is_dir():
            try:
                content = path.read_bytes() if path.is_file() else None  # reading a pipe could block for ever
            except OSError as error:
                raise DataError(f"{path}: cannot be read ({error}).") from error
            _add(posts, folder, path.relative_to(folder).as_posix(), content)
    return posts


def _download(entry: Entry, places: Places) -> Posts:
    """Return what scikit-learn downloads; its own copies are removed, since the prepared file is the cache."""
    from sklearn.datasets import fetch_20newsgroups

    try:
        places.cache_dir.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=places.cache_dir, prefix=f".{entry.name}.") as home:
            bunches = [fetch_20newsgroups(data_home=home, subset=name, shuffle=False) for name in ("train", "test")]
    except (OSError, EOFError, ValueError, ImportError, zlib.error, tarfile.TarError) as error:
        raise DataError(f"{_missing(entry, places)}, since scikit-learn gave no data ({error}).") from error
    posts: Posts = {}
    for bunch in bunches:
        for file, text in zip(bunch.filenames, bunch.data, strict=True):
            _add(posts, "scikit-learn's download", "/".join(Path(file).parts[-3:]), text.encode("latin-1"))
    return posts


def _add(posts: Posts, where: Path | str, name: str, content: bytes | None) -> None:
    match = POST.fullmatch(name)
    if match is None or content is None:
        raise DataError(f"{where}: {name!r} is not a post: only files such as {TRAIN}/sci.space/61000 belong there.")
    key = match[1], match[2], int(match[3])
    if key in posts:
        raise DataError(f"{where}: {name!r} occurs twice; the numbers of a group must be unique.")
    posts[key] = content.decode("latin-1")


def _missing(entry: Entry, places: Places) -> str:
    how = f"or {TRAIN} and {TEST} unpacked from it, with sha256 {entry.sha256} of the content as data/README.md has it"
    return local.missing(entry, places, ARCHIVE, how)
