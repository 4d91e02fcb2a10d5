"""A user's files as a `Dataset`, prepared once for each content and each way of reading it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ldsvm.datasets import cache, idx
from ldsvm.datasets.dataset import DataError, Dataset, Rows
from ldsvm.datasets.files import faults, snapshots
from ldsvm.datasets.files.find import Found, find
from ldsvm.datasets.files.reading import read_found
from ldsvm.datasets.files.spec import FileSpec

READING = "5"  # raise it when the same files are read into other content: prepared files are then made anew
LICENCE = "Your own files; their licence is not known."


def load(spec: FileSpec, *, name: str, cache_dir: Path) -> Dataset:
    r"""Return a user's files as the data set ``name``, from ``cache_dir`` when they were read before.

    The prepared file is named after the bytes of all files, their names below ``spec.path`` and the fields of
    ``spec``: files that moved together are found again, while a changed byte, name or field is read anew. The pixels
    of IDX images, 0 to 255, become [0, 1]; all other numbers stay as they are, in float32.

    Raises `DataError` for what `read` refuses, and for a cache folder that holds the files to read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "flowers.csv").write_text("size,label\n1.5,rose\n2,lily\n")
    ...     data = load(FileSpec(f"{folder}/flowers.csv"), name="flowers", cache_dir=Path(folder, "prepared"))
    >>> data.X.tolist(), data.y.tolist(), data.name
    ([[1.5], [2.0]], ['rose', 'lily'], 'flowers')
    """
    kept = (cache_dir / snapshots.FOLDER).resolve()
    files = snapshots.plain(spec, kept)
    try:
        return _loaded(files, name, cache_dir, kept)
    except DataError as error:  # what was unpacked has a name of its own
        raise DataError(str(error).replace(files.path, spec.path)) from error


def _loaded(spec: FileSpec, name: str, cache_dir: Path, kept: Path) -> Dataset:
    train, test = find(spec)
    sets = [found for found in (train, test) if found is not None]
    _keep_apart(sets, cache_dir, kept)
    prepared = cache_dir / f"{name}-{_key(sets, spec)[:12]}.parquet"
    raw = cache.read(prepared)
    if raw is None:
        raw = read_found(train, test, spec)
        cache.write(prepared, raw)
    return Dataset(
        name=name,
        train=_scaled(raw.train),
        test=None if raw.test is None else _scaled(raw.test),
        image_shape=_image_shape(train),
        source=raw.source,
        sha256=raw.sha256(),
        licence=LICENCE,
        citation="",
    )


def _key(sets: list[Found], spec: FileSpec) -> str:
    """Return the SHA-256 of the files' names and bytes and of everything that decides how they are read."""
    how = asdict(replace(spec, path="", test_path=None, format=None))
    del how["snapshots"]
    if sets[0].format == "idx":
        how["label"] = None  # a file, which is among the files below
    sizes = [(found.format, len(found.files)) for found in sets]
    digest = hashlib.sha256(json.dumps([READING, cache.VERSION.decode(), how, sizes]).encode())
    for found in sets:
        for file in found.files:
            with faults.reading(file, found.format), file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"\n{_name(file, found)}\n{content}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _name(file: Path, found: Found) -> str:
    """Return the name of a file below the path that was given; labels of images may lie elsewhere."""
    return file.relative_to(found.root).as_posix() if file.is_relative_to(found.root) else file.name


def _keep_apart(sets: list[Found], cache_dir: Path, kept: Path) -> None:
    """Refuse a cache folder that holds the files, and one whose content would be taken for more of them.

    kept: the folder of our own snapshots in it.
    """
    cache_path = cache_dir.resolve()
    for found in sets:
        folders = {folder.resolve() for folder in {file.parent for file in found.files}}
        if all(folder.is_relative_to(kept) for folder in folders):
            continue
        if any(folder.is_relative_to(cache_path) for folder in folders):
            raise DataError(
                f"cache_dir={str(cache_dir)!r} holds files of {found.given}; choose another folder for prepared data."
            )
        deep = found.format == "text" or "**" in found.given or bool(found.values)
        if deep and cache_path.is_relative_to(found.root.resolve()):
            raise DataError(
                f"cache_dir={str(cache_dir)!r} is inside {found.given}; choose another folder for prepared data."
            )


def _image_shape(found: Found) -> tuple[int, int] | None:
    sizes = idx.shape(found.files[0]) if found.format == "idx" else ()
    return (sizes[1], sizes[2]) if len(sizes) == 3 else None


def _scaled(rows: Rows) -> Rows:
    # Only IDX images are uint8. Without the dtype, the division would pass through float64 and double the memory.
    return replace(rows, X=np.divide(rows.X, 255, dtype=np.float32)) if rows.X.dtype == np.uint8 else rows
